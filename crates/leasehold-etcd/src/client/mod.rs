//! The connection of a client to one of the servers, and what is sent on it.

mod connection;
mod duplex;
mod failure;
mod keep_alives;
mod watches;

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use leasehold::clock::{BootInstant, within};
use leasehold::store::SessionContext;
use leasehold::{Error, ErrorKind};
use tonic::metadata::AsciiMetadataValue;
use tonic::transport::{Channel, Endpoint};

use crate::proto::{AuthenticateRequest, Unary};
use crate::settings::{Server, Settings};
use connection::Caller;
pub(crate) use connection::Connection;
pub(crate) use failure::Failure;
pub(crate) use watches::{Watch, WatchedKeys};

/// Calls one of the servers. It stays with a server that answers, and takes the next one otherwise.
#[derive(Debug)]
pub(crate) struct EtcdClient {
    settings: Arc<Settings>,
    context: SessionContext,
    current: Mutex<Option<Arc<Connection>>>,
    /// The number of the server to connect to next. Held by the caller that connects.
    next: tokio::sync::Mutex<usize>,
}

impl EtcdClient {
    pub(crate) fn new(settings: Arc<Settings>, context: SessionContext) -> Self {
        Self {
            settings,
            context,
            current: Mutex::default(),
            next: tokio::sync::Mutex::default(),
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

    /// Returns the connection, or opens one by `end`. An error has no effect.
    pub(crate) async fn connection(&self, end: BootInstant) -> Result<Arc<Connection>, Error> {
        if let Some(connection) = self.current() {
            return Ok(connection);
        }
        let connecting = self.in_time(end, self.connect(end)).await;
        connecting.unwrap_or_else(|| {
            let text = "no connection in time";
            let servers = self.settings.to_string();
            Err(Error::new(ErrorKind::Unreachable, text).with_store(servers))
        })
    }

    /// Returns the open connection, if there is one.
    pub(crate) fn current(&self) -> Option<Arc<Connection>> {
        let current = self.current.lock().unwrap_or_else(PoisonError::into_inner);
        current.clone().filter(|connection| connection.is_open())
    }

    /// Tries each server once, from the next one on.
    async fn connect(&self, end: BootInstant) -> Result<Arc<Connection>, Error> {
        let mut next = self.next.lock().await;
        if let Some(connection) = self.current() {
            return Ok(connection);
        }
        let servers = &self.settings.servers;
        let mut failed = None;
        for _ in servers {
            let server = &servers[*next % servers.len()];
            *next += 1;
            // A server that drops packets must not take all of the time.
            let now = self.now();
            let share = now + end.since(now) / 2;
            let opening = self.in_time(share, self.open(server)).await;
            let opened = opening.unwrap_or_else(|| {
                let text = "no connection in time";
                Err(Error::new(ErrorKind::Unreachable, text))
            });
            match opened {
                Ok(caller) => {
                    let connection = Connection::new(server.to_string(), caller, &self.context);
                    let mut current = self.current.lock().unwrap_or_else(PoisonError::into_inner);
                    *current = Some(Arc::clone(&connection));
                    return Ok(connection);
                }
                Err(error) => {
                    let error = error.with_store(server.to_string()).without_effect();
                    // Another server gives the same answer to a wrong password.
                    if !error.is_unreachable() {
                        return Err(error);
                    }
                    failed = Some(error);
                }
            }
        }
        Err(failed.unwrap_or_else(|| Error::new(ErrorKind::InvalidInput, "no server is named")))
    }

    /// Connects to one server, and logs in.
    async fn open(&self, server: &Server) -> Result<Caller, Error> {
        let endpoint = self.settings.endpoint(server)?;
        let channel = connected(&endpoint).await?;
        let Some(login) = &self.settings.login else {
            return Ok(Caller::new(channel, None));
        };
        let request = AuthenticateRequest {
            name: login.user.clone(),
            password: login.password.clone(),
        };
        let answer = Caller::new(channel.clone(), None).call(request).await?;
        let token = AsciiMetadataValue::try_from(answer.token).map_err(|_| {
            Error::new(
                ErrorKind::InvalidResponse,
                "the token of the server is not text",
            )
        })?;
        Ok(Caller::new(channel, Some(token)))
    }

    async fn in_time<T>(&self, end: BootInstant, work: impl Future<Output = T>) -> Option<T> {
        within(&*self.context.env().clock, end, work).await
    }

    fn now(&self) -> BootInstant {
        self.context.env().clock.now()
    }
}

async fn connected(endpoint: &Endpoint) -> Result<Channel, Error> {
    endpoint.connect().await.map_err(|error| {
        let mut text = error.to_string();
        let mut source = std::error::Error::source(&error);
        while let Some(reason) = source {
            text = format!("{text}: {reason}");
            source = reason.source();
        }
        Error::new(ErrorKind::Unreachable, text)
    })
}

fn silent(connection: &Connection, limit: Duration) -> Failure {
    let text = format!("no answer within {limit:?}");
    let error = Error::new(ErrorKind::Unreachable, text).with_store(connection.server.clone());
    Failure::Other(error.with_unknown_effect())
}
