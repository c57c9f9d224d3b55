mod admin;
mod builder;
mod handles;
mod looking;

pub use builder::ClientBuilder;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use crate::acquire::LockOptions;
use crate::env::Env;
use crate::lease::ClientCore;
use crate::lock::Lock;
use crate::record::Record;
use crate::store::{Guarantees, Store};
use crate::telemetry::LockEvents;
use crate::types::{ClientId, Error, Key};

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
        ClientBuilder::new(store.into())
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

    /// Ends the client, for at most `limit`: its waits fail, its guards are lost, and their locks are released. Then it waits until
    /// the store confirmed all releases of this client.
    ///
    /// From then on, each call of this client and its clones fails with [`ErrorKind::Closed`](crate::ErrorKind::Closed). Waits
    /// end first, so that no lock is passed on to them. A guard that was still held is lost with
    /// [`LostReason::Closed`](crate::LostReason::Closed), and one with a [delay](crate::Lock::lock_delay) leaves its lock closed
    /// until the lease ends. A call whose first request has no answer yet ends only when it is polled or dropped, and gives back what
    /// it gets. End the work under the guards first, and release them: a loss tells the work to stop, but does not
    /// wait for it.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Unreachable`](crate::ErrorKind::Unreachable), with [`Effect::Unknown`](crate::Effect::Unknown), if
    /// releases are not confirmed. The error says how many. Their locks may stay held until their TTL is over; the thread
    /// goes on with the releases while the process lives. [`ErrorKind::Forked`](crate::ErrorKind::Forked) in a forked child, and
    /// [`ErrorKind::Closed`](crate::ErrorKind::Closed) if the client has no thread.
    ///
    /// # Cancel safety
    ///
    /// A client whose `close` is dropped is closed, but may keep its locks until their TTL is over. Call it again.
    ///
    /// # Examples
    ///
    /// ```
    /// # pollster::block_on(async {
    /// use std::time::Duration;
    /// use leasehold::{Client, ErrorKind, LostReason, memory::MemoryStore};
    ///
    /// let locks = Client::new(MemoryStore::new());
    /// let guard = locks.lock("nightly").acquire().await?;
    /// if let Err(error) = locks.clone().close(Duration::from_secs(5)).await {
    ///     eprintln!("{error}");
    /// }
    /// assert_eq!(guard.lost().await, LostReason::Closed);
    /// let error = locks.lock("nightly").acquire().await.unwrap_err();
    /// assert_eq!(error.kind(), ErrorKind::Closed);
    /// # Ok::<(), leasehold::Error>(()) }).unwrap();
    /// ```
    #[doc(alias = "shutdown")]
    pub async fn close(self, limit: Duration) -> Result<(), Error> {
        self.core.close(limit).await
    }

    /// Waits until the store confirmed the releases of this client, for at most `limit`: those in progress, those of dropped
    /// guards, and those of cancelled attempts. The client stays usable, and a lock that is held stays held.
    ///
    /// # Errors
    ///
    /// Those of [`close`](Self::close).
    ///
    /// # Cancel safety
    ///
    /// May be dropped at any time. The thread continues the work in progress.
    ///
    /// # Examples
    ///
    /// ```
    /// # pollster::block_on(async {
    /// use std::time::Duration;
    /// use leasehold::{Client, memory::MemoryStore};
    ///
    /// let locks = Client::new(MemoryStore::new());
    /// drop(locks.lock("nightly").acquire().await?);
    /// locks.flush(Duration::from_secs(5)).await?;
    /// assert!(locks.lock("nightly").try_acquire().await?.is_some());
    /// # Ok::<(), leasehold::Error>(()) }).unwrap();
    /// ```
    pub async fn flush(&self, limit: Duration) -> Result<(), Error> {
        self.core.flush(limit).await
    }

    /// Returns whether this process is a forked child of the process that made the client. Every call fails there with
    /// [`ErrorKind::Forked`](crate::ErrorKind::Forked); a child makes a client of its own.
    pub fn is_forked(&self) -> bool {
        self.core.is_forked()
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
