mod acquire;
mod admin;
mod attempt;
mod counters;
mod draw;
mod inspection;
mod looks;
#[cfg(test)]
mod memory_tests;
mod node_data;
mod questions;
mod records;
mod refusal;
mod release;
mod renew;
mod session;
mod wakeup;

use std::fmt;
use std::sync::Arc;

use leasehold::env::Env;
use leasehold::store::{
    Exclusion, Expiry, Guarantees, LeaseTerms, Order, Session, SessionContext, Store,
};
use leasehold::{Error, Fence, Key};
use leasehold_credentials::{Login, Password, TlsSource, rustls};
use tokio::runtime::Handle;

use crate::client::Servers;
use crate::url::EnsembleUrl;
use session::LockSession;

/// Locks at a ZooKeeper ensemble: the servers and the path of a URL.
///
/// All locks of a [`Client`](leasehold::Client) live in one session, and end with it. The store offers shared mode and
/// permits, and serves waiters in order. Its locks and those of Curator's `InterProcessMutex` exclude each other.
///
/// # Examples
///
/// ```no_run
/// # pollster::block_on(async {
/// use leasehold::Client;
/// use leasehold_zookeeper::ZooKeeperStore;
///
/// let store = ZooKeeperStore::new("zk://zk1,zk2,zk3/locks?timeout=10s")?;
/// let locks = Client::new(store);
/// let guard = locks.lock("nightly").acquire().await?;
/// guard.release().await?;
/// # Ok::<(), leasehold::Error>(()) }).unwrap();
/// ```
#[derive(Clone, Debug)]
pub struct ZooKeeperStore {
    servers: Arc<Servers>,
}

impl ZooKeeperStore {
    /// Returns the store at a URL: `zk://[user:password@]host[:port][,host..][/path]`, or `zks://` for TLS. Reads the
    /// files that the URL names, and connects to nothing.
    ///
    /// The path is the node of all locks, `/leasehold` by default. The first lock creates it. Parameters are:
    ///
    /// - `timeout`: the session timeout to ask for, such as `10s`; the TTL of the first lock by default. The server
    ///   keeps it within its own limits.
    /// - `ca`, `cert`, `key`: files in PEM with the authorities to trust, and with the certificate of the client and its
    ///   key; for `zks://`.
    /// - `password_file`: a file with the password of the user before the hosts.
    ///
    /// The client reads the files again for each connection.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::InvalidInput`](leasehold::ErrorKind::InvalidInput), with the rule that the URL or a file breaks.
    pub fn new(url: impl AsRef<str>) -> Result<Self, Error> {
        let url = EnsembleUrl::parse(url.as_ref())?;
        let servers = Arc::new(Servers::new(url)?);
        Ok(Self { servers })
    }

    /// The same store, which logs in as `user` with this password, in place of the login of the URL.
    /// [`Password::from_fn`] calls a function at each login.
    #[must_use]
    pub fn login(self, user: impl Into<String>, password: Password) -> Self {
        let mut url = self.servers.url.clone();
        url.login = Some(Login {
            user: user.into(),
            password,
        });
        Self {
            servers: Arc::new(Servers::unchecked(url)),
        }
    }

    /// The same store, which encrypts with this configuration in place of the files that the URL names.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::InvalidInput`](leasehold::ErrorKind::InvalidInput) without `zks://`.
    pub fn tls_config(self, config: Arc<rustls::ClientConfig>) -> Result<Self, Error> {
        let mut url = self.servers.url.clone();
        TlsSource::replace(&mut url.tls, config, "zks://")?;
        Ok(Self {
            servers: Arc::new(Servers::unchecked(url)),
        })
    }

    /// Returns the servers, as the URL names them, without credentials.
    pub fn servers(&self) -> Vec<String> {
        self.servers.url.hosts()
    }

    /// Returns the path of the node of the guard that holds the lock with this fence; `None` if none does.
    ///
    /// Data in the same ensemble can be protected by this node: a transaction that first checks the node, and then
    /// writes, fails once the lock is no longer held. Give the node to the ZooKeeper client of your program, which needs
    /// the rights to read it. The method opens a session of its own.
    ///
    /// # Errors
    ///
    /// If no server answers, or the login may not read the nodes.
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
    /// use leasehold_zookeeper::ZooKeeperStore;
    ///
    /// let store = ZooKeeperStore::new("zk://zk1,zk2,zk3/locks")?;
    /// let locks = Client::new(store.clone());
    /// let guard = locks.lock("nightly").acquire().await?;
    /// let node = store.holder_node(guard.key(), guard.fence()).await?;
    /// // In the transaction of your client: check(node, -1), then the writes.
    /// # let _ = node; Ok(()) }
    /// ```
    pub async fn holder_node(&self, key: &Key, fence: Fence) -> Result<Option<String>, Error> {
        let env = Env::default();
        let info = Arc::new(env.this_process(None));
        let context = SessionContext::new(env, info, Handle::current());
        let session = LockSession::new(Arc::clone(&self.servers), context);
        let node = session.0.holder_node(key, fence).await;
        session.flush().await;
        node
    }

    pub(crate) fn ensemble(&self) -> &Servers {
        &self.servers
    }
}

impl fmt::Display for ZooKeeperStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.servers.url.fmt(f)
    }
}

impl Store for ZooKeeperStore {
    fn guarantees(&self) -> Guarantees {
        Guarantees::new(Exclusion::Majority, Expiry::WithSession, Order::Fifo)
            .with_shared()
            .with_permits()
    }

    fn terms(&self) -> LeaseTerms {
        LeaseTerms::single()
    }

    fn open(&self, context: SessionContext) -> Arc<dyn Session> {
        Arc::new(LockSession::new(Arc::clone(&self.servers), context))
    }
}

impl From<ZooKeeperStore> for Arc<dyn Store> {
    fn from(store: ZooKeeperStore) -> Self {
        Arc::new(store)
    }
}

/// Reads bytes as the contents of each node, for the fuzz target.
#[cfg(any(test, fuzzing))]
pub(crate) fn read_all(bytes: &[u8]) {
    let _ = node_data::read_break(bytes);
    let _ = node_data::counter("/counter", bytes);
    let data = node_data::NodeData::read(bytes);
    let _ = data.map(|data| (data.ttl(), data.fence()));
    records::read_any(bytes);
}
