use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use leasehold::clock::within;
use leasehold::store::{LockRequest, SessionContext, exact_span, locked};
use leasehold::{Error, ErrorKind};
use leasehold_credentials::{HostPort, TlsClient};
use tonic::metadata::AsciiMetadataValue;

use super::caller::Caller;
use super::channel;
use super::connection::Connection;
use crate::proto::AuthenticateRequest;
use crate::settings::Settings;

/// Opens connections, and keeps the current one.
#[derive(Debug)]
pub(super) struct Connector {
    pub(super) settings: Arc<Settings>,
    tls: Option<Arc<TlsClient>>,
    context: SessionContext,
    current: Mutex<Option<Arc<Connection>>>,
    /// The number of the server to connect to. All connectors of a client leave a dead one together.
    server: Arc<AtomicUsize>,
}

/// How long a server may take to accept a connection and a login. It may be longer than a request takes, since servers
/// make the check of a password slow.
const LIMIT: Duration = LockRequest::LIMIT_MAX;

impl Connector {
    pub(super) fn new(
        settings: Arc<Settings>,
        context: SessionContext,
        server: Arc<AtomicUsize>,
    ) -> Self {
        let tls = settings.tls.clone().map(channel::encryption);
        Self {
            settings,
            tls,
            context,
            current: Mutex::default(),
            server,
        }
    }

    /// Returns the open connection, if there is one.
    pub(super) fn current(&self) -> Option<Arc<Connection>> {
        let current = locked(&self.current).clone();
        current.filter(|connection| connection.is_open())
    }

    /// Returns what the connectors of a client share: which server they use.
    pub(super) fn server(&self) -> Arc<AtomicUsize> {
        Arc::clone(&self.server)
    }

    /// Takes the next server from now on, unless that was decided since the client took the one with this `number`.
    pub(super) fn leave(&self, number: usize) {
        let next = (number + 1) % self.settings.servers.len().max(1);
        let order = Ordering::Relaxed;
        let _ = self.server.compare_exchange(number, next, order, order);
    }

    /// Tries each server once. An error has no effect.
    pub(super) async fn connect(&self) -> Result<Arc<Connection>, Error> {
        let servers = &self.settings.servers;
        let mut failed = None;
        for _ in servers {
            let number = self.server.load(Ordering::Relaxed);
            let server = &servers[number];
            let clock = &self.context.env().clock;
            let opened = within(&**clock, clock.now() + LIMIT, self.open(server)).await;
            let opened = opened.unwrap_or_else(|| {
                let text = format!("no connection within {}", exact_span(LIMIT));
                Err(Error::new(ErrorKind::Unreachable, text))
            });
            match opened {
                Ok(caller) => {
                    let server = (number, server.to_string());
                    let connection = Connection::new(server, caller, &self.context);
                    *locked(&self.current) = Some(Arc::clone(&connection));
                    return Ok(connection);
                }
                Err(error) => {
                    let error = error.with_store(server.to_string()).without_effect();
                    // Another server gives the same answer to a wrong password.
                    if !error.is_unreachable() {
                        return Err(error);
                    }
                    self.leave(number);
                    failed = Some(error);
                }
            }
        }
        Err(failed.unwrap_or_else(|| Error::new(ErrorKind::InvalidInput, "no server is named")))
    }

    /// Connects to one server, and logs in.
    async fn open(&self, server: &HostPort) -> Result<Caller, Error> {
        let channel = channel::open(server, self.tls.as_ref()).await?;
        let Some(login) = &self.settings.login else {
            return Ok(Caller::new(channel, None));
        };
        let request = AuthenticateRequest {
            name: login.user.clone(),
            password: login.password.read().await?,
        };
        let answer = Caller::new(channel.clone(), None).call(request).await?;
        let mut token = AsciiMetadataValue::try_from(answer.token).map_err(|_| {
            let text = "the token of the server is not text";
            Error::new(ErrorKind::InvalidResponse, text)
        })?;
        // It does not show in `Debug`.
        token.set_sensitive(true);
        Ok(Caller::new(channel, Some(token)))
    }
}
