mod admin;
mod closing;
mod lock_listing;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use crate::acquire::LockOptions;
use crate::env::Env;
use crate::lease::ClientContext;
use crate::lease::ClientCore;
use crate::lock::Lock;
use crate::record::Record;
use crate::runtime::background::Background;
use crate::store::{Guarantees, Store};
use crate::telemetry::LockEvents;
use crate::types::{ClientId, Error, Holder, Key, MemberHealth, Waiter};

/// One process's access to its locks: a store, a background thread, and the task that renews the leases.
///
/// ```
/// # pollster::block_on(async {
/// use leasehold::{Client, memory::MemoryStore};
///
/// let locks = Client::new(MemoryStore::new());
/// let guard = locks.lock("invoices/2026-11").acquire().await?;
/// assert!(locks.lock("invoices/2026-11").try_acquire().await?.is_none());
/// guard.release().await?;
/// # Ok::<(), leasehold::Error>(()) }).unwrap();
/// ```
///
/// A program that reads the address of its store from its configuration calls
/// `Client::connect("redis://10.0.0.1")`, of the trait `Connect` in the crate `leasehold_stores`.
///
/// Cheap to clone; all clones are one client. Create one per store and process and keep it: it owns the
/// thread, the connections and the identity. Calls work on any executor.
///
/// Dropping a client never blocks. After the last clone and guard are dropped, the thread finishes the
/// releases in progress and ends. A process that ends first cuts them off, and their locks stay held
/// until the TTL: call [`Client::close`] at the end of a short program. A client does not work in a
/// forked child: every call there returns [`ErrorKind::Forked`](crate::ErrorKind::Forked).
#[doc(alias = "LockManager")]
#[doc(alias = "connection")]
#[derive(Clone)]
pub struct Client {
    core: Arc<ClientCore>,
    defaults: LockOptions,
}

impl Client {
    /// Returns a client of `store` with its own background thread. It sends nothing to the store yet.
    ///
    /// Each store of this project converts into the argument. A [`Store`] of your own does as an `Arc<dyn Store>`.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::sync::Arc;
    /// use leasehold::{Client, memory::MemoryStore, store::Store};
    ///
    /// let store: Arc<dyn Store> = Arc::new(MemoryStore::new()); // or a store of your own
    /// let locks = Client::new(store);
    /// ```
    #[doc(alias = "connect")]
    pub fn new(store: impl Into<Arc<dyn Store>>) -> Self {
        Self::builder(store).build()
    }

    /// Returns a builder for a client of `store`.
    pub fn builder(store: impl Into<Arc<dyn Store>>) -> ClientBuilder {
        ClientBuilder {
            store: store.into(),
            env: Env::default(),
            identity: Identity::default(),
            defaults: LockOptions::default(),
            on_current_runtime: false,
        }
    }

    /// Returns the lock called `name`. An invalid name is reported when the lock is acquired.
    pub fn lock(&self, name: impl AsRef<str>) -> Lock {
        Lock::new(Arc::clone(&self.core), Key::new(name), self.defaults)
    }

    /// Returns the record of the lock called `name`, to be read without holding the lock. An invalid name
    /// is reported when the record is read. [`Guard::record`](crate::Guard::record) writes it.
    pub fn record(&self, name: impl AsRef<str>) -> Record {
        Record::new(Arc::clone(&self.core), Key::new(name))
    }

    /// Returns the current holders of `name`. For diagnostics.
    ///
    /// # Errors
    ///
    /// An invalid name; [`ErrorKind::Unsupported`](crate::ErrorKind::Unsupported) where the store has no
    /// [`Inspection`](crate::store::Inspection); or a store that does not answer.
    ///
    /// # Cancel safety
    ///
    /// May be dropped at any time.
    pub async fn holders(&self, name: impl AsRef<str>) -> Result<Vec<Holder>, Error> {
        let key = Key::new(name)?;
        let context = Arc::clone(&self.core.context);
        self.core
            .ask(Some(key.clone()), async move {
                let mut holders = context.inspection()?.holders(&key).await?;
                holders.iter_mut().for_each(Holder::count_from_grant);
                Ok(holders)
            })
            .await
    }

    /// Returns the current waiters for `name` in the order in which the store serves them. The list is
    /// empty where the store has no queue. On Redis it ends after 1,000 waiters. For diagnostics.
    ///
    /// # Errors
    ///
    /// An invalid name; [`ErrorKind::Unsupported`](crate::ErrorKind::Unsupported) where the store has no
    /// [`Inspection`](crate::store::Inspection); or a store that does not answer.
    ///
    /// # Cancel safety
    ///
    /// May be dropped at any time.
    pub async fn waiters(&self, name: impl AsRef<str>) -> Result<Vec<Waiter>, Error> {
        let key = Key::new(name)?;
        let context = Arc::clone(&self.core.context);
        self.core
            .ask(Some(key.clone()), async move {
                context.inspection()?.waiters(&key).await
            })
            .await
    }

    /// Asks every member of the store and returns its health, in the order in which the members were
    /// given. The list is empty for a store without members. For diagnostics and monitoring.
    ///
    /// A member without a vote says why, and when it is eligible again. The first client that asks the
    /// members anything initializes the quorum, as its first lock would.
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
    ///         match (&member.status, &member.untrusted_reason) {
    ///             (Err(error), _) => println!("{} does not answer: {error}", member.id),
    ///             (Ok(_), Some(why)) => println!("{why}"),
    ///             (Ok(status), None) => println!("{} has a vote: {:?}", member.id, status.run),
    ///         }
    ///     }
    ///     Ok(())
    /// }
    /// // The memory store has no members: nothing is printed.
    /// let locks = Client::new(leasehold::memory::MemoryStore::new());
    /// print_health(&locks).await?;
    /// # Ok::<(), Error>(()) }).unwrap();
    /// ```
    pub async fn health(&self) -> Result<Vec<MemberHealth>, Error> {
        let context = Arc::clone(&self.core.context);
        let asking = self.core.run(async move {
            match context.session.health() {
                Some(health) => health.members().await,
                None => Vec::new(),
            }
        })?;
        Ok(asking.await)
    }

    /// Returns a stream of what happens to the locks of this client from now on, those of all its clones. See
    /// [`LockEvents`].
    ///
    /// # Examples
    ///
    /// ```
    /// # pollster::block_on(async {
    /// use leasehold::{Client, memory::MemoryStore, telemetry::LockEvent};
    ///
    /// let locks = Client::new(MemoryStore::new());
    /// let mut events = locks.events();
    /// let guard = locks.lock("deploy").acquire().await?;
    /// match events.next().await {
    ///     Some(LockEvent::Acquired { key, fence }) => println!("{key} is held with fence {fence}"),
    ///     other => panic!("{other:?}"),
    /// }
    /// guard.release().await?;
    /// assert!(matches!(events.next().await, Some(LockEvent::Released { .. })));
    /// # Ok::<(), leasehold::Error>(()) }).unwrap();
    /// ```
    #[doc(alias = "subscribe")]
    pub fn events(&self) -> LockEvents {
        self.core.context.metrics.events.subscribe()
    }

    /// Returns the options of a lock for which nothing else is chosen.
    pub(crate) fn defaults(&self) -> LockOptions {
        self.defaults
    }

    pub(crate) fn core(&self) -> &Arc<ClientCore> {
        &self.core
    }

    /// Returns the client's random identity. Every owner that the client draws begins with it.
    pub fn id(&self) -> ClientId {
        self.core.context.info.id
    }

    /// Resolves after `span`, by the client's clock and on any executor. For code built on top of the
    /// client, whose callers may have no timers.
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

    /// Returns the client's clock and random numbers, for code built on top of the client.
    pub fn env(&self) -> &Env {
        &self.core.context.env
    }

    /// Returns what the store promises.
    pub fn guarantees(&self) -> Guarantees {
        self.core.context.guarantees
    }
}

/// The name of the store, without credentials.
impl fmt::Display for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.core.context.store.fmt(f)
    }
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client")
            .field("id", &self.id())
            .field("store", &self.to_string())
            .finish_non_exhaustive()
    }
}

/// Settings of a [`Client`].
#[derive(Debug)]
#[must_use]
pub struct ClientBuilder {
    store: Arc<dyn Store>,
    env: Env,
    identity: Identity,
    defaults: LockOptions,
    on_current_runtime: bool,
}

/// What people see of a client.
#[derive(Debug, Default)]
struct Identity {
    program: Option<String>,
    user: Option<String>,
    label: Option<String>,
    command: Option<String>,
}

impl ClientBuilder {
    /// Sets the program name that people see when they inspect the client's locks. Default: the name of
    /// the executable.
    pub fn program(mut self, name: impl Into<String>) -> Self {
        self.identity.program = Some(name.into());
        self
    }

    /// Sets the user whom people see when they inspect the client's locks. Default: none. At most
    /// [`ClientInfo::LABEL_MAX`](crate::look::ClientInfo::LABEL_MAX) bytes are kept.
    pub fn user(mut self, name: impl Into<String>) -> Self {
        self.identity.user = Some(name.into());
        self
    }

    /// Sets a text that describes the client to people who inspect its locks. Default: none. At
    /// most [`ClientInfo::LABEL_MAX`](crate::look::ClientInfo::LABEL_MAX) bytes are kept.
    pub fn label(mut self, text: impl Into<String>) -> Self {
        self.identity.label = Some(text.into());
        self
    }

    /// Says what runs while the client holds its locks, usually a command line. Default: none: the
    /// library reads no command line, which may contain secrets. Every user of the store can read this
    /// text. At most [`ClientInfo::COMMAND_MAX`](crate::look::ClientInfo::COMMAND_MAX) bytes are kept.
    pub fn command(mut self, line: impl Into<String>) -> Self {
        self.identity.command = Some(line.into());
        self
    }

    /// Sets the TTL of all locks, elections, semaphores and `once` of this client that choose none. Default:
    /// 30 s, or the TTL next to it that the store allows.
    ///
    /// ```
    /// # pollster::block_on(async {
    /// use std::time::Duration;
    /// use leasehold::{Client, memory::MemoryStore};
    ///
    /// let locks = Client::builder(MemoryStore::new())
    ///     .ttl(Duration::from_secs(10))
    ///     .wait(Duration::from_millis(20))
    ///     .build();
    /// let guard = locks.lock("deploy").acquire().await?;
    /// assert!(guard.remaining() <= Duration::from_secs(10));
    /// let refused = locks.lock("deploy").acquire().await.unwrap_err();
    /// assert!(refused.is_busy());
    /// # drop(guard);
    /// # Ok::<(), leasehold::Error>(()) }).unwrap();
    /// ```
    pub fn ttl(mut self, ttl: Duration) -> Self {
        (self.defaults.ttl, self.defaults.is_default_ttl) = (ttl, false);
        self
    }

    /// Sets the longest wait of all calls of this client that choose none. Default: no limit. `try_acquire` does not
    /// wait, unless its lock has a wait of its own.
    pub fn wait(mut self, wait: Duration) -> Self {
        self.defaults.wait = Some(wait);
        self
    }

    /// Sets the [lock delay](Lock::lock_delay) of all locks of this client that choose none. Default: none.
    pub fn lock_delay(mut self, span: Duration) -> Self {
        self.defaults.lock_delay = span;
        self
    }

    /// Replaces the clock and the random numbers, for tests and simulations.
    pub fn env(mut self, env: Env) -> Self {
        self.env = env;
        self
    }

    /// Runs everything on the calling tokio runtime instead of the client's own thread, for tests that
    /// control the time ([`manual::testing`](crate::manual::testing)). Renewals are late if that runtime is busy.
    pub fn on_current_runtime(mut self) -> Self {
        self.on_current_runtime = true;
        self
    }

    /// Starts the client. If its thread cannot be started, the first call reports that. The client
    /// registers its [metrics](crate::telemetry) now, so install a recorder before.
    ///
    /// # Panics
    ///
    /// If [`on_current_runtime`](Self::on_current_runtime) was called and the caller is outside a tokio
    /// runtime.
    pub fn build(self) -> Client {
        let background = if self.on_current_runtime {
            Ok(Background::borrow(tokio::runtime::Handle::current()))
        } else {
            Background::start()
        };
        let identity = self.identity;
        let info = self
            .env
            .this_process(identity.program)
            .with_user(identity.user.as_deref())
            .with_label(identity.label.as_deref())
            .with_command(identity.command.as_deref());
        let runtime = background.as_ref().ok();
        let runtime = runtime.map(|background| background.handle().clone());
        let context = ClientContext::new(self.store, self.env, info, runtime);
        Client {
            core: Arc::new(ClientCore::start(context, background)),
            defaults: self.defaults,
        }
    }
}
