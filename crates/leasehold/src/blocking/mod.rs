//! The same locks for programs without async code.
//!
//! Every call blocks its thread until the answer arrives. In async code, use the types at the crate's
//! root instead. All types make the same promises as the types that they wrap.
//!
//! # Examples
//!
//! ```
//! use leasehold::{MemoryStore, blocking};
//!
//! let locks = blocking::Client::new(MemoryStore::new());
//! if let Some(guard) = locks.lock("nightly").try_acquire()? {
//!     println!("rebuild the index with fence {}", guard.fence());
//!     guard.release()?;
//! }
//! # Ok::<(), leasehold::Error>(())
//! ```

/// The settings of a wrapped builder, under the same names.
macro_rules! settings {
    ($of:ident: $($name:ident($value:ty)),+ $(,)?) => {$(
        #[doc = concat!("As [`crate::", stringify!($of), "::", stringify!($name), "`].")]
        pub fn $name(self, value: $value) -> Self {
            Self(self.0.$name(value))
        }
    )+};
}

mod closing;
mod election;
mod handle;
mod lock_set;
mod loss_watch;
mod once;

pub use election::{Election, LeaderWatch, Leadership};
pub use lock_set::{GuardSet, LockSet};
pub use loss_watch::LossWatch;
pub use once::{Once, OnceRun, OnceStart};

use std::fmt;
use std::ops::Deref;
use std::sync::Arc;
use std::time::Duration;

use crate::fencing::Fenced;
use crate::guard::ReleaseOutcome;
use crate::store::{
    ForceRelease, ForceReleaseOutcome, ForceReleaseRecord, Guarantees, LockListing, LostReason,
    MemberHealth, Store,
};
use crate::types::{Error, Fence, Holder, Key, Mode, Pattern, Waiter};

/// A blocking [`crate::Client`].
#[derive(Clone, Debug)]
pub struct Client(crate::Client);

impl Client {
    /// Returns a client of `store`, as [`crate::Client::new`] does.
    pub fn new(store: impl Into<Arc<dyn Store>>) -> Self {
        Self(crate::Client::new(store))
    }

    /// Returns the lock called `name`.
    pub fn lock(&self, name: impl AsRef<str>) -> Lock {
        Lock(self.0.lock(name))
    }

    /// Returns the locks called `names`, to be acquired as one.
    pub fn lock_all(&self, names: impl IntoIterator<Item = impl AsRef<str>>) -> LockSet {
        LockSet(self.0.lock_all(names))
    }

    /// Returns the request called `name`, to be run once.
    pub fn once(&self, name: impl Into<String>) -> Once {
        Once(self.0.once(name))
    }

    /// Returns the lock called `name` with `permits` permits.
    pub fn semaphore(&self, name: impl AsRef<str>, permits: u32) -> Semaphore {
        Semaphore(self.0.semaphore(name, permits))
    }

    /// Returns the election of a leader among all candidates for `name`.
    pub fn election(&self, name: impl AsRef<str>) -> Election {
        Election(self.0.election(name))
    }

    /// Returns the current holders of `name` that the store knows. For diagnostics.
    ///
    /// # Errors
    ///
    /// Those of [`crate::Client::holders`].
    pub fn holders(&self, name: impl AsRef<str>) -> Result<Vec<Holder>, Error> {
        pollster::block_on(self.0.holders(name))
    }

    /// Returns the current waiters for `name` in the order in which the store serves them. For
    /// diagnostics.
    ///
    /// # Errors
    ///
    /// Those of [`crate::Client::waiters`].
    pub fn waiters(&self, name: impl AsRef<str>) -> Result<Vec<Waiter>, Error> {
        pollster::block_on(self.0.waiters(name))
    }

    /// Returns the first `limit` held locks, by name, that match `pattern`. For diagnostics.
    ///
    /// # Errors
    ///
    /// Those of [`crate::Client::list_locks`].
    pub fn list_locks(&self, pattern: &Pattern, limit: usize) -> Result<LockListing, Error> {
        pollster::block_on(self.0.list_locks(pattern, limit))
    }

    /// Breaks the lock `name` if its holder holds it exclusively and with this `fence`.
    ///
    /// # Errors
    ///
    /// Those of [`crate::Client::break_lock`].
    pub fn break_lock(
        &self,
        name: impl AsRef<str>,
        fence: Fence,
        how: ForceRelease,
    ) -> Result<ForceReleaseOutcome, Error> {
        pollster::block_on(self.0.break_lock(name, fence, how))
    }

    /// Returns the record of the last break of the lock `name`, while the store keeps it. For
    /// diagnostics.
    ///
    /// # Errors
    ///
    /// Those of [`crate::Client::last_break`].
    pub fn last_break(&self, name: impl AsRef<str>) -> Result<Option<ForceReleaseRecord>, Error> {
        pollster::block_on(self.0.last_break(name))
    }

    /// Asks each member of the store and returns its health. For diagnostics and monitoring.
    ///
    /// # Errors
    ///
    /// Those of [`crate::Client::health`].
    pub fn health(&self) -> Result<Vec<MemberHealth>, Error> {
        pollster::block_on(self.0.health())
    }

    /// Returns what the store promises.
    pub fn guarantees(&self) -> Guarantees {
        self.0.guarantees()
    }
}

/// The name of the store, without credentials.
impl fmt::Display for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl From<crate::Client> for Client {
    fn from(client: crate::Client) -> Self {
        Self(client)
    }
}

/// A blocking [`crate::Lock`].
#[derive(Clone, Debug)]
#[must_use = "a lock does nothing until it is acquired"]
pub struct Lock(crate::Lock);

impl Lock {
    settings! { Lock:
        ttl(Duration), lock_delay(Duration), wait(Duration),
        barging(bool), max_hold(Duration), mode(Mode),
    }

    /// Acquires the lock if it is free; returns `None` if another owner holds it.
    ///
    /// # Errors
    ///
    /// Those of [`crate::Lock::try_acquire`].
    pub fn try_acquire(&self) -> Result<Option<Guard>, Error> {
        Ok(pollster::block_on(self.0.try_acquire())?.map(Guard))
    }

    /// Acquires the lock, waiting for its holders.
    ///
    /// # Errors
    ///
    /// Those of [`crate::Lock::acquire`].
    pub fn acquire(&self) -> Result<Guard, Error> {
        pollster::block_on(self.0.acquire()).map(Guard)
    }
}

/// A blocking [`crate::Semaphore`].
///
/// # Examples
///
/// ```
/// use leasehold::{MemoryStore, blocking};
///
/// let locks = blocking::Client::new(MemoryStore::new());
/// let permit = locks.semaphore("workers", 2).acquire()?;
/// assert!(locks.lock("workers").try_acquire()?.is_none());
/// permit.release()?;
/// # Ok::<(), leasehold::Error>(())
/// ```
#[derive(Clone, Debug)]
#[must_use = "a semaphore does nothing until a permit is acquired"]
pub struct Semaphore(crate::Semaphore);

impl Semaphore {
    settings! { Semaphore:
        ttl(Duration), wait(Duration), max_hold(Duration),
        lock_delay(Duration), barging(bool),
    }

    /// Acquires a permit if one is free; returns `None` if all are held or others wait for them.
    ///
    /// # Errors
    ///
    /// Those of [`crate::Semaphore::try_acquire`].
    pub fn try_acquire(&self) -> Result<Option<Guard>, Error> {
        Ok(pollster::block_on(self.0.try_acquire())?.map(Guard))
    }

    /// Acquires a permit, waiting until one is free.
    ///
    /// # Errors
    ///
    /// Those of [`crate::Semaphore::acquire`].
    pub fn acquire(&self) -> Result<Guard, Error> {
        pollster::block_on(self.0.acquire()).map(Guard)
    }
}

/// A blocking [`crate::Guard`]. It dereferences to that type for all methods that only read.
#[derive(Debug)]
#[must_use = "if unused the lock is freed at once"]
#[clippy::has_significant_drop]
pub struct Guard(crate::Guard);

impl Guard {
    /// Blocks until the guard is lost, and returns the reason. Never returns while the lock can be
    /// renewed. Do not call it on a [guard of the same hold](Self::reenter), which keeps the lock held.
    /// Instead, wait on a [`loss_watch`](Self::loss_watch) in another thread than the work's.
    pub fn wait_lost(&self) -> LostReason {
        pollster::block_on(self.0.lost())
    }

    /// Enters the lock once more, as [`crate::Guard::reenter`]. The last release frees it.
    pub fn reenter(&self) -> Self {
        Self(self.0.reenter())
    }

    /// As [`crate::Guard::downgrade`].
    ///
    /// # Errors
    ///
    /// Those of [`crate::Guard::downgrade`].
    pub fn downgrade(&self) -> Result<(), Error> {
        pollster::block_on(self.0.downgrade())
    }

    /// As [`crate::Guard::claim`].
    ///
    /// # Errors
    ///
    /// Those of [`crate::Guard::claim`].
    pub fn claim(&self, resource: &(impl Fenced + ?Sized)) -> Result<(), Error> {
        pollster::block_on(self.0.claim(resource))
    }

    /// Frees the lock and returns the outcome.
    ///
    /// # Errors
    ///
    /// Those of [`crate::Guard::release`].
    pub fn release(self) -> Result<ReleaseOutcome, Error> {
        pollster::block_on(self.0.release())
    }

    /// Runs `body` while the lock is held, then frees it. A thread cannot be cancelled, so `body` should
    /// check the guard with [`ensure`](crate::Guard::ensure) before each step that matters.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Lost`](crate::ErrorKind::Lost) if the guard was lost before `body` ended.
    pub fn run<T>(self, body: impl FnOnce(&Self) -> T) -> Result<T, Error> {
        let output = body(&self);
        let still_held = self.0.ensure(Duration::ZERO);
        let key = self.0.key().clone();
        if let Err(error) = self.release() {
            tracing::warn!(%key, %error, "release failed");
        }
        still_held.map(|()| output)
    }
}

/// Wraps an async guard, for example to [reenter](crate::Guard::reenter) a lock of a set and to claim a
/// resource with it or to downgrade it.
///
/// # Examples
///
/// ```
/// use leasehold::{MemoryStore, blocking};
///
/// let locks = blocking::Client::new(MemoryStore::new());
/// let guards = locks.lock_all(["stock", "orders"]).acquire()?;
/// for guard in guards.guards() {
///     blocking::Guard::from(guard.reenter()).downgrade()?;
/// }
/// # guards.release();
/// # Ok::<(), leasehold::Error>(())
/// ```
impl From<crate::Guard> for Guard {
    fn from(guard: crate::Guard) -> Self {
        Self(guard)
    }
}

impl Deref for Guard {
    type Target = crate::Guard;

    fn deref(&self) -> &crate::Guard {
        &self.0
    }
}
