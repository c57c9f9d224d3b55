//! The connection of a client to one of the servers, and what is sent on it.

mod batches;
mod caller;
mod channel;
mod connection;
mod connector;
mod duplex;
mod failure;
mod keep_alives;
mod watches;

use std::fmt;
use std::sync::atomic::AtomicUsize;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::FutureExt as _;
use futures_util::future::Shared;
use leasehold::clock::{BootInstant, within};
use leasehold::store::{BoxFuture, SessionContext, locked};
use leasehold::{Error, ErrorKind};
use tokio::sync::oneshot;

use crate::proto::Unary;
use crate::settings::Settings;
use batches::Batches;
pub(crate) use connection::Connection;
use connector::Connector;
pub(crate) use failure::Failure;
pub(crate) use watches::{Watch, WatchedKeys};

/// Calls one of the servers. It stays with a server that answers, and takes the next one otherwise.
pub(crate) struct EtcdClient {
    connector: Arc<Connector>,
    context: SessionContext,
    /// What it calls with if the runtime of its context cannot drive connections.
    fallback: Option<Arc<Self>>,
    batches: Batches,
    /// The last attempt to connect. All who want a connection meanwhile wait for it.
    connecting: Mutex<Option<Connecting>>,
}

/// `None` if the runtime has ended, or has no I/O.
type Connecting = Shared<BoxFuture<'static, Option<Result<Arc<Connection>, Error>>>>;

impl EtcdClient {
    /// Its connections are driven by the runtime of `context`.
    pub(crate) fn new(
        settings: Arc<Settings>,
        context: SessionContext,
        fallback: Option<Arc<Self>>,
    ) -> Self {
        let server = fallback.as_ref().map(|other| other.connector.server());
        // The clients of an ensemble spread over its members.
        let count = settings.servers.len().max(1) as u64;
        let random = context.env().entropy.next_u64() % count;
        let server = server.unwrap_or_else(|| Arc::new(AtomicUsize::new(random as usize)));
        Self {
            connector: Arc::new(Connector::new(settings, context.clone(), server)),
            context,
            fallback,
            batches: Batches::default(),
            connecting: Mutex::default(),
        }
    }

    /// Calls a method, and returns the answer if it comes within `limit`. A server that does not answer by then, or
    /// that cannot reach its leader, is left for the next one.
    pub(crate) async fn call<T: Unary>(
        &self,
        request: T,
        limit: Duration,
    ) -> Result<T::Answer, Failure> {
        let end = self.now() + limit;
        let mut has_renewed_login = false;
        loop {
            let connection = self.connection(end).await.map_err(Failure::Other)?;
            let answer = self.in_time(end, connection.call(request.clone())).await;
            match answer.unwrap_or_else(|| Err(silent(&connection, limit))) {
                Err(Failure::LoginExpired) if !has_renewed_login => {
                    has_renewed_login = true;
                    connection.close();
                }
                Err(Failure::Other(error)) if error.is_unreachable() && !error.is_not_ready() => {
                    self.leave(&connection);
                    return Err(Failure::Other(error));
                }
                answer => return answer,
            }
        }
    }

    /// Renews a lease. Returns its new TTL; `None` if it does not exist.
    pub(crate) async fn keep_alive(
        &self,
        id: i64,
        limit: Duration,
    ) -> Result<Option<Duration>, Error> {
        let end = self.now() + limit;
        let connection = self.connection(end).await?;
        match self.in_time(end, connection.keep_alives().renew(id)).await {
            Some(Some(seconds)) => Ok(u64::try_from(seconds)
                .ok()
                .filter(|seconds| *seconds > 0)
                .map(Duration::from_secs)),
            _ => {
                self.leave(&connection);
                Err(silent(&connection, limit).into_error())
            }
        }
    }

    /// Runs a task where its connections are driven.
    pub(crate) fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        self.context.spawn(task);
    }

    /// Returns whether it has a connection now.
    pub(crate) fn is_open(&self) -> bool {
        self.connector.current().is_some()
    }

    /// Returns the open connection, if there is one.
    pub(crate) fn current(&self) -> Option<Arc<Connection>> {
        let fallback = || self.fallback.as_ref()?.connector.current();
        self.connector.current().or_else(fallback)
    }

    /// Closes a connection whose server does not answer, or cannot reach its leader.
    fn leave(&self, connection: &Connection) {
        connection.close();
        self.connector.leave(connection.number);
    }

    /// Returns the connection, or waits for one until `end`. An error has no effect.
    async fn connection(&self, end: BootInstant) -> Result<Arc<Connection>, Error> {
        if let Some(connection) = self.connector.current() {
            return Ok(connection);
        }
        let mut connected = self.in_time(end, self.connecting()).await;
        if let (Some(None), Some(fallback)) = (&connected, &self.fallback) {
            connected = self.in_time(end, fallback.connecting()).await;
        }
        connected.flatten().unwrap_or_else(|| {
            let text = "no connection in time";
            let servers = self.connector.servers();
            Err(Error::new(ErrorKind::Unreachable, text).with_store(servers))
        })
    }

    /// Begins to connect, unless that is under way. A task does it, on the runtime that drives the connection. It goes on when
    /// the caller no longer waits: a request may have less time than a login takes.
    fn connecting(&self) -> Connecting {
        let mut last = locked(&self.connecting);
        let useful = last.clone().filter(|connecting| match connecting.peek() {
            None => true,
            Some(Some(Ok(connection))) => connection.is_open(),
            Some(Some(Err(_))) => false,
            // It stays so.
            Some(None) => true,
        });
        useful.unwrap_or_else(|| {
            let (connector, (tell, told)) = (Arc::clone(&self.connector), oneshot::channel());
            self.context.spawn(async move {
                // The callers may be gone.
                let _ = tell.send(connector.connect().await);
            });
            let connecting: BoxFuture<'static, _> = Box::pin(told.map(Result::ok));
            let connecting = connecting.shared();
            *last = Some(connecting.clone());
            connecting
        })
    }

    async fn in_time<T>(&self, end: BootInstant, work: impl Future<Output = T>) -> Option<T> {
        within(&*self.context.env().clock, end, work).await
    }

    fn now(&self) -> BootInstant {
        self.context.env().clock.now()
    }
}

impl fmt::Debug for EtcdClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EtcdClient")
            .field("connector", &self.connector)
            .finish_non_exhaustive()
    }
}

fn silent(connection: &Connection, limit: Duration) -> Failure {
    let error = Error::no_answer_within(limit).with_store(connection.server.clone());
    Failure::Other(error.with_unknown_effect())
}
