//! The store: opens sessions, and says what it promises.

mod acquire;
mod admin;
mod examine;
mod inspection;
mod leases;
mod records;
mod release;
mod renew;
mod session;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use leasehold::store::{
    Exclusion, Expiry, Guarantees, LeaseTerms, Order, Owner, Session, SessionContext, Store,
};
use leasehold::{Error, Key};

use crate::locking::{Names, Position, lease_id};
use crate::settings::Settings;
pub use examine::{EtcdFacts, ServerFacts, ServerStatus};
use session::EtcdSession;

/// Locks on an etcd ensemble.
#[derive(Clone, Debug)]
pub struct EtcdStore {
    settings: Arc<Settings>,
}

impl EtcdStore {
    /// Returns the store at `url`: `etcd://[user:password@]host[:port][,host[:port]…]`, or `etcds://` for TLS. Opens no
    /// connection.
    ///
    /// | parameter | |
    /// |---|---|
    /// | `prefix` | in front of each key of the store; other prefixes have other locks |
    /// | `ca` | a file with the authorities of the servers, in PEM; without it those of the machine |
    /// | `cert`, `key` | files with the certificate of this client and its key, in PEM |
    /// | `password_file` | a file with the password of the user before the hosts |
    ///
    /// The client reads the files again for each connection.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::InvalidInput`](leasehold::ErrorKind::InvalidInput), with the rule that the URL breaks, or the file
    /// that cannot be read.
    ///
    /// # Examples
    ///
    /// ```
    /// use leasehold_etcd::EtcdStore;
    ///
    /// let store = EtcdStore::new("etcd://locks:secret@10.0.0.1,10.0.0.2,10.0.0.3?prefix=app/")?;
    /// assert!(!store.to_string().contains("secret"));
    /// # Ok::<(), leasehold::Error>(())
    /// ```
    pub fn new(url: &str) -> Result<Self, Error> {
        let settings = Settings::parse(url)?;
        settings.check_files()?;
        let settings = Arc::new(settings);
        Ok(Self { settings })
    }

    /// Returns the key that `owner` writes for an exclusive lock or a permit. It exists while the owner holds the lock
    /// or waits for it, with a create revision of its own. So a transaction that compares this revision takes effect
    /// only while the lock is held.
    ///
    /// The key of a lock that was taken [ahead of the queue](leasehold::Lock::barging), or shared, has a letter in front
    /// of its last part.
    ///
    /// # Examples
    ///
    /// ```
    /// use leasehold::{Key, env::SystemEntropy};
    /// use leasehold::store::{ClientId, Owner};
    /// use leasehold_etcd::EtcdStore;
    ///
    /// let store = EtcdStore::new("etcd://10.0.0.1?prefix=app/")?;
    /// let owner = Owner::random(ClientId::random(&SystemEntropy), &SystemEntropy);
    /// assert!(store.entry_key(&Key::new("job")?, owner).starts_with("app/job/"));
    /// # Ok::<(), leasehold::Error>(())
    /// ```
    pub fn entry_key(&self, key: &Key, owner: Owner) -> String {
        let names = Names::new(&self.settings.prefix);
        let entry = names.entry(key, Position::Queue, lease_id(owner));
        String::from_utf8_lossy(&entry).into_owned()
    }

    /// Returns the addresses of the servers, without credentials.
    pub fn servers(&self) -> impl Iterator<Item = String> {
        self.settings.servers.iter().map(ToString::to_string)
    }
}

/// The shortest lease of a server with default settings.
const TTL_MIN: Duration = Duration::from_secs(2);

impl Store for EtcdStore {
    fn locations(&self) -> Vec<String> {
        let Settings {
            servers, prefix, ..
        } = &*self.settings;
        let room = if prefix.is_empty() {
            String::new()
        } else {
            format!(", prefix {prefix:?}")
        };
        let location = |server: &_| format!("etcd {server}{room}");
        servers.iter().map(location).collect()
    }

    fn guarantees(&self) -> Guarantees {
        Guarantees::new(Exclusion::Fence, Expiry::Lease, Order::Fifo)
            .with_shared()
            .with_permits()
    }

    fn terms(&self) -> LeaseTerms {
        let mut terms = LeaseTerms::single();
        terms.ttl_min = TTL_MIN;
        terms
    }

    fn open(&self, context: SessionContext) -> Arc<dyn Session> {
        Arc::new(EtcdSession::open(Arc::clone(&self.settings), context))
    }
}

impl fmt::Display for EtcdStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.settings.fmt(f)
    }
}

impl From<EtcdStore> for Arc<dyn Store> {
    fn from(store: EtcdStore) -> Self {
        Arc::new(store)
    }
}

/// Reads bytes as a record and as a break, for the fuzz target.
#[cfg(any(test, fuzzing))]
pub(crate) fn read_values(bytes: &[u8]) {
    records::read_any(bytes);
    admin::read_any(bytes);
}
