//! Redis servers as a store: locks by the engine, everything else by the members themselves.

mod as_store;
mod waits;

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use leasehold::ambient::Ambient;
use leasehold::{ClientId, ClientInfo, Error, ErrorKind, Quorum, Store};

use crate::RedisMember;
use crate::driver::{Driver, DriverConfig};
use waits::Waits;

/// One Redis server, or a quorum of several, as a store.
///
/// The connections are opened with the first lock.
pub struct RedisStore {
    urls: Vec<String>,
    ambient: Ambient,
    /// Shows locks, breaks them and keeps records, on connections of its own.
    members: Arc<dyn Store>,
    max_ttl: Duration,
    clock_tolerance: Duration,
    enforced: bool,
    clients: Mutex<HashMap<ClientId, Arc<Session>>>,
}

/// The connections and waits of one client.
#[derive(Debug)]
struct Session {
    driver: Driver,
    waits: Waits,
}

impl RedisStore {
    /// Returns the store of the servers at `urls`: one server, or a quorum.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::InvalidInput`], naming the URL and the rule it breaks.
    pub fn new(urls: impl IntoIterator<Item = impl AsRef<str>>) -> Result<Self, Error> {
        let urls: Vec<String> = urls
            .into_iter()
            .map(|url| url.as_ref().to_owned())
            .collect();
        let quorum = Quorum::new(RedisMember::all(&urls)?)?;
        let set = quorum.set().clone();
        Ok(Self {
            enforced: set.ids.len() >= 3,
            max_ttl: set.max_ttl,
            clock_tolerance: set.clock_tolerance,
            urls,
            ambient: Ambient::default(),
            members: quorum.into(),
            clients: Mutex::default(),
        })
    }

    /// Returns the session of a client, which begins with its first request.
    fn session(&self, client: &Arc<ClientInfo>) -> Result<Arc<Session>, Error> {
        let mut clients = self.clients.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(session) = clients.get(&client.id) {
            return Ok(Arc::clone(session));
        }
        let driver = Driver::open(DriverConfig {
            urls: self.urls.clone(),
            max_ttl: self.max_ttl,
            clock_tolerance: self.clock_tolerance,
            enforced: self.enforced,
            foreign_gap: Quorum::FOREIGN_GAP,
            client: Arc::clone(client),
            ambient: self.ambient.clone(),
        })?;
        let session = Arc::new(Session {
            driver,
            waits: Waits::default(),
        });
        clients.insert(client.id, Arc::clone(&session));
        Ok(session)
    }

    fn sessions(&self) -> Vec<Arc<Session>> {
        let clients = self.clients.lock().unwrap_or_else(PoisonError::into_inner);
        clients.values().cloned().collect()
    }
}

impl fmt::Debug for RedisStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The URLs may have passwords.
        f.debug_struct("RedisStore")
            .field("members", &self.members)
            .finish_non_exhaustive()
    }
}

fn unexpected() -> Error {
    Error::new(ErrorKind::Garbled, "not the outcome of what was asked")
}
