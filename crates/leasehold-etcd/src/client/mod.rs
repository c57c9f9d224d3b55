//! The connection of a client to one of the servers, and what is sent on it.

mod channel;
mod connection;
mod connector;
mod duplex;
mod failure;
mod keep_alives;
mod watches;

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures_util::FutureExt as _;
use futures_util::future::Shared;
use leasehold::clock::{BootInstant, within};
use leasehold::store::{BoxFuture, SessionContext};
use leasehold::{Error, ErrorKind};

use crate::proto::Unary;
use crate::settings::Settings;
pub(crate) use connection::Connection;
use connector::Connector;
pub(crate) use failure::Failure;
pub(crate) use watches::{Watch, WatchedKeys};

/// Calls one of the servers. It stays with a server that answers, and takes the next one otherwise.
pub(crate) struct EtcdClient {
    connector: Arc<Connector>,
    context: SessionContext,
    /// The last attempt to connect. All who want a connection meanwhile wait for it.
    connecting: Mutex<Option<Connecting>>,
}

type Connecting = Shared<BoxFuture<'static, Result<Arc<Connection>, Error>>>;

impl EtcdClient {
    pub(crate) fn new(settings: Arc<Settings>, context: SessionContext) -> Self {
        Self {
            connector: Arc::new(Connector::new(settings, context.clone())),
            context,
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
                Err(Failure::Other(error)) if error.is_unreachable() => {
                    connection.close();
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
                connection.close();
                Err(silent(&connection, limit).into_error())
            }
        }
    }

    /// Returns the open connection, if there is one.
    pub(crate) fn current(&self) -> Option<Arc<Connection>> {
        self.connector.current()
    }

    /// Returns the connection, or waits for one until `end`. An error has no effect.
    async fn connection(&self, end: BootInstant) -> Result<Arc<Connection>, Error> {
        if let Some(connection) = self.current() {
            return Ok(connection);
        }
        let connected = self.in_time(end, self.connecting()).await;
        connected.unwrap_or_else(|| {
            let text = "no connection in time";
            let servers = self.connector.settings.to_string();
            Err(Error::new(ErrorKind::Unreachable, text).with_store(servers))
        })
    }

    /// Begins to connect, unless that is under way. A task goes on with it when the caller no longer waits: a request
    /// may have less time than a login takes.
    fn connecting(&self) -> Connecting {
        let mut last = self
            .connecting
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let useful = last.clone().filter(|connecting| match connecting.peek() {
            None => true,
            Some(Ok(connection)) => connection.is_open(),
            Some(Err(_)) => false,
        });
        useful.unwrap_or_else(|| {
            let connector = Arc::clone(&self.connector);
            let connecting: BoxFuture<'static, _> =
                Box::pin(async move { connector.connect().await });
            let connecting = connecting.shared();
            self.context.spawn(connecting.clone().map(drop));
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
    let text = format!("no answer within {limit:?}");
    let error = Error::new(ErrorKind::Unreachable, text).with_store(connection.server.clone());
    Failure::Other(error.with_unknown_effect())
}
