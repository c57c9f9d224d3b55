use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use leasehold::clock::within;
use leasehold::store::{SessionContext, locked};
use leasehold::{Error, ErrorKind};
use leasehold_credentials::{HostPort, TlsClient, race};
use tonic::metadata::AsciiMetadataValue;

use super::caller::Caller;
use super::channel;
use super::connection::Connection;
use super::failure::Failure;
use crate::proto::AuthenticateRequest;
use crate::settings::Settings;

/// Opens connections, and keeps the current one.
#[derive(Debug)]
pub(super) struct Connector {
    pub(super) settings: Arc<Settings>,
    tls: Option<Arc<TlsClient>>,
    context: SessionContext,
    current: Mutex<Option<Arc<Connection>>>,
    /// The number of the server to connect to at first. All connectors of a client leave a dead one together.
    server: Arc<AtomicUsize>,
}

/// How long the servers may take to accept a connection and a login. It may be longer than a request takes, since servers
/// make the check of a password slow.
const LIMIT: Duration = Duration::from_secs(5);

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

    /// Connects to the server that answers first. It begins with the server of the last connection.
    /// An error has no effect.
    pub(super) async fn connect(&self) -> Result<Arc<Connection>, Error> {
        let servers = &self.settings.servers;
        let first = self.server.load(Ordering::Relaxed);
        let order = (0..servers.len()).map(|number| (first + number) % servers.len());
        let opened = race(order, async |number: usize| {
            let opened = self.open(&servers[number]).await;
            match opened.map_err(|error| error.with_store(servers[number].to_string())) {
                Err(error) if error.is_unreachable() => Err(error),
                // Another server gives the same answer to a wrong password.
                decided => Ok((number, decided)),
            }
        });
        let clock = &self.context.env().clock;
        let failed = match within(&**clock, clock.now() + LIMIT, opened).await {
            Some(Ok((number, caller))) => {
                let caller = caller.map_err(Error::without_effect)?;
                self.server.store(number, Ordering::Relaxed);
                let server = (number, servers[number].to_string());
                let probe = self.settings.probe();
                let connection = Connection::new(server, caller, &self.context, probe);
                *locked(&self.current) = Some(Arc::clone(&connection));
                return Ok(connection);
            }
            Some(Err(failures)) => failures.into_iter().next_back(),
            None => Some(Error::no_connection_within(LIMIT).with_store(self.servers())),
        };
        let failed =
            failed.unwrap_or_else(|| Error::new(ErrorKind::InvalidInput, "no server is named"));
        Err(failed.without_effect())
    }

    /// Names the servers.
    pub(super) fn servers(&self) -> String {
        let servers = self.settings.servers.iter().map(ToString::to_string);
        servers.collect::<Vec<_>>().join(",")
    }

    /// Connects to one server, and logs in. A server that is one of several also proves that it answers and reaches its leader.
    async fn open(&self, server: &HostPort) -> Result<Caller, Error> {
        let caller = self.log_in(server).await?;
        if self.settings.servers.len() > 1 {
            match caller.call(self.settings.probe()).await {
                Err(Failure::Other(error)) if error.is_unreachable() && !error.is_not_ready() => {
                    return Err(error);
                }
                // It answers.
                _ => {}
            }
        }
        Ok(caller)
    }

    async fn log_in(&self, server: &HostPort) -> Result<Caller, Error> {
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
