//! The store: opens sessions, and says what it promises.

mod acquire;
mod admin;
mod crowds;
mod examine;
mod inner;
mod inspection;
mod leases;
mod pool;
mod records;
mod release;
mod renew;
mod session;
mod successors;
mod waiting;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use leasehold::env::Env;
use leasehold::store::{
    Exclusion, Expiry, Guarantees, LeaseTerms, Order, Session, SessionContext, Store,
};
use leasehold::{Error, Fence, Key};
use leasehold_credentials::{Login, Password, TlsSource, rustls};
use tokio::runtime::Handle;

use crate::locking::Entry;
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

    /// The same store, which logs in as `user` with this password, in place of the login of the URL.
    /// [`Password::from_fn`] calls a function at each login.
    #[must_use]
    pub fn login(self, user: impl Into<String>, password: Password) -> Self {
        let mut settings = Settings::clone(&self.settings);
        settings.login = Some(Login {
            user: user.into(),
            password,
        });
        Self {
            settings: Arc::new(settings),
        }
    }

    /// The same store, which encrypts with this configuration in place of the files that the URL names.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::InvalidInput`](leasehold::ErrorKind::InvalidInput) without `etcds://`.
    pub fn tls_config(self, config: Arc<rustls::ClientConfig>) -> Result<Self, Error> {
        let mut settings = Settings::clone(&self.settings);
        TlsSource::replace(&mut settings.tls, config, "etcds://")?;
        Ok(Self {
            settings: Arc::new(settings),
        })
    }

    /// Returns the key of the guard that holds the lock with this fence; `None` if none does.
    ///
    /// It exists while the guard holds the lock, with a create revision of its own. So a transaction that compares this
    /// revision takes effect only while the lock is held. The method opens a connection of its own.
    ///
    /// # Errors
    ///
    /// If no server answers, or the login may not read the keys.
    ///
    /// # Cancel safety
    ///
    /// May be dropped at any time. Needs a Tokio runtime.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// # async fn example() -> Result<(), leasehold::Error> {
    /// use leasehold::Client;
    /// use leasehold_etcd::EtcdStore;
    ///
    /// let store = EtcdStore::new("etcd://10.0.0.1,10.0.0.2,10.0.0.3")?;
    /// let locks = Client::new(store.clone());
    /// let guard = locks.lock("nightly").acquire().await?;
    /// let key = store.holder_key(guard.key(), guard.fence()).await?;
    /// // Read its create revision, and compare that in the transaction of your client.
    /// # let _ = key; Ok(()) }
    /// ```
    pub async fn holder_key(&self, key: &Key, fence: Fence) -> Result<Option<String>, Error> {
        let env = Env::default();
        let info = Arc::new(env.this_process(None));
        let context = SessionContext::new(env, info, Handle::current());
        let session = EtcdSession::open(Arc::clone(&self.settings), context);
        let entries = session.0.entries_of(key).await?;
        let is_of = |entry: &Entry| entry.stored.as_ref().and_then(|it| it.fence) == Some(fence);
        let found = entries.into_iter().find(is_of);
        Ok(found.map(|entry| String::from_utf8_lossy(&entry.key).into_owned()))
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
