mod admin;
mod closing;
mod survey;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use crate::ambient::Ambient;
use crate::background::Background;
use crate::client_context::ClientContext;
use crate::client_core::ClientCore;
use crate::error::Error;
use crate::guarantees::Guarantees;
use crate::health::MemberHealth;
use crate::holder::{ClientInfo, Holder};
use crate::key::Key;
use crate::leader::Election;
use crate::lock::Lock;
use crate::lock_set::LockSet;
use crate::once::Once;
use crate::optional;
use crate::owner::ClientId;
use crate::queue::Waiter;
use crate::record::Record;
use crate::semaphore::Semaphore;
use crate::store::Store;

/// One process's way to its locks: a store, a thread of its own, and the keeper that renews.
///
/// Cheap to clone; all clones are one client. Make one per store and process and keep it: the
/// thread, the connections and the identity belong to it. Calls work on any executor.
///
/// Dropping a client never blocks. After the last clone and guard are dropped, the thread finishes the
/// releases in progress and ends. A process that ends first cuts them off, and their locks stay held
/// until the TTL: call [`Client::close`] at the end of a short program. A client is of no use in a forked
/// child: there every call answers [`ErrorKind::Forked`](crate::ErrorKind::Forked).
///
/// # Examples
///
/// ```
/// # pollster::block_on(async {
/// use leasehold::{Client, MemoryStore};
///
/// let locks = Client::new(MemoryStore::new());
/// let guard = locks.lock("invoices/2026-11").acquire().await?;
/// assert!(locks.lock("invoices/2026-11").try_acquire().await?.is_none());
/// guard.release().await?;
/// # Ok::<(), leasehold::Error>(()) }).unwrap();
/// ```
#[derive(Clone)]
pub struct Client {
    core: Arc<ClientCore>,
}

impl Client {
    /// A client of `store` with a background thread of its own. Nothing is sent to the store yet.
    pub fn new(store: impl Into<Arc<dyn Store>>) -> Self {
        Self::builder(store).build()
    }

    /// A client of `store` with settings of its own.
    pub fn builder(store: impl Into<Arc<dyn Store>>) -> ClientBuilder {
        ClientBuilder {
            store: store.into(),
            ambient: Ambient::default(),
            program: None,
            on_current_runtime: false,
        }
    }

    /// The lock called `name`. A name that breaks a rule is reported when it is acquired.
    pub fn lock(&self, name: impl AsRef<str>) -> Lock {
        Lock::new(Arc::clone(&self.core), Key::new(name))
    }

    /// The locks called `names`, to be taken as one. A name that breaks a rule is reported when they
    /// are acquired, and so are no names at all.
    pub fn lock_all(&self, names: impl IntoIterator<Item = impl AsRef<str>>) -> LockSet {
        LockSet::new(self.clone(), names)
    }

    /// The lock called `name` with so many permits: as many may hold it at once. A name or number that
    /// breaks a rule is reported when a permit is acquired.
    ///
    /// # Examples
    ///
    /// ```
    /// # pollster::block_on(async {
    /// use leasehold::{Client, MemoryStore};
    ///
    /// let locks = Client::new(MemoryStore::new());
    /// let permit = locks.semaphore("workers", 3).acquire().await?;
    /// permit.release().await?;
    /// # Ok::<(), leasehold::Error>(()) }).unwrap();
    /// ```
    pub fn semaphore(&self, name: impl AsRef<str>, permits: u32) -> Semaphore {
        Semaphore::new(Arc::clone(&self.core), Key::new(name), permits)
    }

    /// The request called `name`, to be run once. A name that breaks a rule is reported when it begins.
    pub fn once(&self, name: impl Into<String>) -> Once {
        Once::new(self.clone(), name.into())
    }

    /// The record of the lock called `name`, for whoever does not hold the lock. A name that breaks a rule
    /// is reported when it is read. [`Guard::record`](crate::Guard::record) writes it.
    pub fn record(&self, name: impl AsRef<str>) -> Record {
        Record::new(Arc::clone(&self.core), Key::new(name))
    }

    /// The election of a leader among all who campaign under `name`. A name that breaks a rule is reported by
    /// whatever is asked of it.
    pub fn election(&self, name: impl AsRef<str>) -> Election {
        Election::new(self.clone(), name.as_ref())
    }

    /// Returns the current holders of `name`. For people.
    ///
    /// # Errors
    ///
    /// An invalid name; [`ErrorKind::Unsupported`](crate::ErrorKind::Unsupported) where the store has no
    /// [`Inspection`](crate::Inspection); or a store that does not answer.
    ///
    /// # Cancel safety
    ///
    /// May be dropped at any time.
    pub async fn holders(&self, name: impl AsRef<str>) -> Result<Vec<Holder>, Error> {
        let key = Key::new(name)?;
        let store = Arc::clone(&self.core.context.store);
        self.core
            .run(async move {
                let mut holders = optional::inspection(&*store)?.holders(&key).await?;
                holders.iter_mut().for_each(Holder::count_from_grant);
                Ok(holders)
            })?
            .await
    }

    /// Returns the current waiters for `name` in the order in which the store serves them. The list is
    /// empty where the store has no queue. For people.
    ///
    /// # Errors
    ///
    /// An invalid name; [`ErrorKind::Unsupported`](crate::ErrorKind::Unsupported) where the store has no
    /// [`Inspection`](crate::Inspection); or a store that does not answer.
    ///
    /// # Cancel safety
    ///
    /// May be dropped at any time.
    pub async fn waiters(&self, name: impl AsRef<str>) -> Result<Vec<Waiter>, Error> {
        let key = Key::new(name)?;
        let store = Arc::clone(&self.core.context.store);
        self.core
            .run(async move { optional::inspection(&*store)?.waiters(&key).await })?
            .await
    }

    /// Returns up to `limit` held locks whose names begin with `prefix`. For people.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Unsupported`](crate::ErrorKind::Unsupported) where the store has no
    /// [`Inspection`](crate::Inspection), or a store that does not answer.
    ///
    /// # Cancel safety
    ///
    /// May be dropped at any time.
    pub async fn list(&self, prefix: impl Into<String>, limit: usize) -> Result<Vec<Key>, Error> {
        let prefix = prefix.into();
        let store = Arc::clone(&self.core.context.store);
        self.core
            .run(async move { optional::inspection(&*store)?.list(&prefix, limit).await })?
            .await
    }

    /// How the members of the store are, each freshly asked, in the order they were given; empty for
    /// a store without members. For people and monitoring.
    ///
    /// Whose answers do not count says why, and when they do again. The first client that asks the
    /// members of a set anything forms it, as its first lock would.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Forked`](crate::ErrorKind::Forked), or a background thread that could not be
    /// started. A member that does not answer is no error: its health says so.
    ///
    /// # Cancel safety
    ///
    /// May be dropped at any time.
    ///
    /// # Examples
    ///
    /// ```
    /// # pollster::block_on(async {
    /// use leasehold::{Client, Error};
    ///
    /// async fn print_health(locks: &Client) -> Result<(), Error> {
    ///     for member in locks.health().await? {
    ///         match (&member.presence, &member.distrust) {
    ///             (Err(error), _) => println!("{} does not answer: {error}", member.id),
    ///             (Ok(_), Some(why)) => println!("{why}"),
    ///             (Ok(presence), None) => println!("{} has a vote: {:?}", member.id, presence.run),
    ///         }
    ///     }
    ///     Ok(())
    /// }
    /// // The memory store has no members: nothing is printed.
    /// let locks = Client::new(leasehold::MemoryStore::new());
    /// print_health(&locks).await?;
    /// # Ok::<(), Error>(()) }).unwrap();
    /// ```
    pub async fn health(&self) -> Result<Vec<MemberHealth>, Error> {
        let store = Arc::clone(&self.core.context.store);
        let asking = self.core.run(async move {
            match store.health() {
                Some(health) => health.members().await,
                None => Vec::new(),
            }
        })?;
        Ok(asking.await)
    }

    pub(crate) fn core(&self) -> &Arc<ClientCore> {
        &self.core
    }

    /// The client's random identity; every owner it draws begins with it.
    pub fn id(&self) -> ClientId {
        self.core.context.info.id
    }

    /// Resolves after `span`, by the client's clock and on any executor: for recipes on top of it, whose
    /// callers need not have timers.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Forked`](crate::ErrorKind::Forked), or a background thread that has ended.
    ///
    /// # Cancel safety
    ///
    /// May be dropped at any time.
    pub async fn pause(&self, span: Duration) -> Result<(), Error> {
        self.core.pause(span).await
    }

    /// Time and chance, as the client takes them: for recipes on top of it.
    pub fn ambient(&self) -> &Ambient {
        &self.core.context.ambient
    }

    /// What the store promises.
    pub fn guarantees(&self) -> Guarantees {
        self.core.context.guarantees
    }

    /// The store in a few words, without credentials.
    pub fn describe(&self) -> String {
        self.core.context.store.describe()
    }
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client")
            .field("id", &self.id())
            .field("store", &self.describe())
            .finish_non_exhaustive()
    }
}

/// Settings of a [`Client`].
#[derive(Debug)]
#[must_use]
pub struct ClientBuilder {
    store: Arc<dyn Store>,
    ambient: Ambient,
    program: Option<String>,
    on_current_runtime: bool,
}

impl ClientBuilder {
    /// What the client calls itself to people who look at its locks. Default: the name of the
    /// executable.
    pub fn program(mut self, name: impl Into<String>) -> Self {
        self.program = Some(name.into());
        self
    }

    /// Replaces time and chance, for tests and simulations.
    pub fn ambient(mut self, ambient: Ambient) -> Self {
        self.ambient = ambient;
        self
    }

    /// Runs everything on the calling tokio runtime instead of a thread of the client's own: for
    /// tests that move time by hand. A runtime that is busy otherwise then delays renewals.
    pub fn on_current_runtime(mut self) -> Self {
        self.on_current_runtime = true;
        self
    }

    /// Starts the client. A thread that cannot be started is reported by the first call. A recorder of
    /// [metrics](crate::telemetry) is asked for them now: install it before.
    ///
    /// # Panics
    ///
    /// After [`on_current_runtime`](Self::on_current_runtime), outside a tokio runtime.
    pub fn build(self) -> Client {
        let background = if self.on_current_runtime {
            Ok(Background::borrow(tokio::runtime::Handle::current()))
        } else {
            Background::start()
        };
        let info = ClientInfo::of_this_process(&self.ambient, self.program);
        let context = ClientContext::new(self.store, self.ambient, info);
        Client {
            core: Arc::new(ClientCore::start(context, background)),
        }
    }
}
