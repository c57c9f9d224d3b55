//! The same locks for programs without async code.
//!
//! Every call blocks its thread until the answer is there; in async code use the types at the
//! crate's root instead. All promises are those of the types wrapped.
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

/// The settings of a wrapped builder, which are its own.
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
mod guarded;
mod handing;
mod lock_set;
mod loss_watch;
mod once;

pub use election::{Election, LeaderWatch, Leadership};
pub use guarded::Guarded;
pub use lock_set::{GuardSet, LockSet};
pub use loss_watch::LossWatch;
pub use once::{Once, OnceRun, OnceStart};

use std::ops::Deref;
use std::sync::Arc;
use std::time::Duration;

use crate::attempt::LostReason;
use crate::breaking::{Breach, Break, BreakRecord};
use crate::claim::Mode;
use crate::error::Error;
use crate::fence::Fence;
use crate::fenced::Fenced;
use crate::guarantees::Guarantees;
use crate::guard::Ended;
use crate::health::MemberHealth;
use crate::holder::Holder;
use crate::key::Key;
use crate::pattern::Pattern;
use crate::queue::Waiter;
use crate::store::Store;
use crate::survey::Survey;

/// A blocking [`crate::Client`].
#[derive(Clone, Debug)]
pub struct Client(crate::Client);

impl Client {
    /// A client of `store`, as [`crate::Client::new`] makes it.
    pub fn new(store: impl Into<Arc<dyn Store>>) -> Self {
        Self(crate::Client::new(store))
    }

    /// The lock called `name`.
    pub fn lock(&self, name: impl AsRef<str>) -> Lock {
        Lock(self.0.lock(name))
    }

    /// The locks called `names`, to be taken as one.
    pub fn lock_all(&self, names: impl IntoIterator<Item = impl AsRef<str>>) -> LockSet {
        LockSet(self.0.lock_all(names))
    }

    /// The request called `name`, to be run once.
    pub fn once(&self, name: impl Into<String>) -> Once {
        Once(self.0.once(name))
    }

    /// The lock called `name` with so many permits.
    pub fn semaphore(&self, name: impl AsRef<str>, permits: u32) -> Semaphore {
        Semaphore(self.0.semaphore(name, permits))
    }

    /// The election of a leader among all who campaign under `name`.
    pub fn election(&self, name: impl AsRef<str>) -> Election {
        Election(self.0.election(name))
    }

    /// Who holds `name` right now, as far as the store knows. For people.
    ///
    /// # Errors
    ///
    /// Those of [`crate::Client::holders`].
    pub fn holders(&self, name: impl AsRef<str>) -> Result<Vec<Holder>, Error> {
        pollster::block_on(self.0.holders(name))
    }

    /// Who waits for `name` right now, in the order in which they are served. For people.
    ///
    /// # Errors
    ///
    /// Those of [`crate::Client::waiters`].
    pub fn waiters(&self, name: impl AsRef<str>) -> Result<Vec<Waiter>, Error> {
        pollster::block_on(self.0.waiters(name))
    }

    /// Up to `limit` names beginning with `prefix` that somebody holds. For people.
    ///
    /// # Errors
    ///
    /// Those of [`crate::Client::list`].
    pub fn list(&self, prefix: impl Into<String>, limit: usize) -> Result<Vec<Key>, Error> {
        pollster::block_on(self.0.list(prefix, limit))
    }

    /// The held locks whose names match `pattern`, the first `limit` of them by name. For people.
    ///
    /// # Errors
    ///
    /// Those of [`crate::Client::survey`].
    pub fn survey(&self, pattern: &Pattern, limit: usize) -> Result<Survey, Error> {
        pollster::block_on(self.0.survey(pattern, limit))
    }

    /// Takes the lock `name` from its holder, where that holds it alone and with this `fence`.
    ///
    /// # Errors
    ///
    /// Those of [`crate::Client::break_lock`].
    pub fn break_lock(
        &self,
        name: impl AsRef<str>,
        fence: Fence,
        how: Break,
    ) -> Result<Breach, Error> {
        pollster::block_on(self.0.break_lock(name, fence, how))
    }

    /// How the lock `name` was broken last, as long as the store keeps that. For people.
    ///
    /// # Errors
    ///
    /// Those of [`crate::Client::last_break`].
    pub fn last_break(&self, name: impl AsRef<str>) -> Result<Option<BreakRecord>, Error> {
        pollster::block_on(self.0.last_break(name))
    }

    /// How the members of the store are, each freshly asked. For people and monitoring.
    ///
    /// # Errors
    ///
    /// Those of [`crate::Client::health`].
    pub fn health(&self) -> Result<Vec<MemberHealth>, Error> {
        pollster::block_on(self.0.health())
    }

    /// What the store promises.
    pub fn guarantees(&self) -> Guarantees {
        self.0.guarantees()
    }

    /// The store in a few words, without credentials.
    pub fn describe(&self) -> String {
        self.0.describe()
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

    /// Takes the lock if it is free; `None` if somebody else holds it.
    ///
    /// # Errors
    ///
    /// Those of [`crate::Lock::try_acquire`].
    pub fn try_acquire(&self) -> Result<Option<Guard>, Error> {
        Ok(pollster::block_on(self.0.try_acquire())?.map(Guard))
    }

    /// Takes the lock, waiting for its holders.
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

    /// Takes a permit if one is free; `None` if all are held, or others wait for them.
    ///
    /// # Errors
    ///
    /// Those of [`crate::Semaphore::try_acquire`].
    pub fn try_acquire(&self) -> Result<Option<Guard>, Error> {
        Ok(pollster::block_on(self.0.try_acquire())?.map(Guard))
    }

    /// Takes a permit, waiting until one is free.
    ///
    /// # Errors
    ///
    /// Those of [`crate::Semaphore::acquire`].
    pub fn acquire(&self) -> Result<Guard, Error> {
        pollster::block_on(self.0.acquire()).map(Guard)
    }
}

/// A blocking [`crate::Guard`], which it dereferences to for everything that only looks.
#[derive(Debug)]
#[must_use = "if unused the lock is freed at once"]
#[clippy::has_significant_drop]
pub struct Guard(crate::Guard);

impl Guard {
    /// Blocks until the guard is lost, and returns the reason. Never returns while the lock can be renewed. Do
    /// not call it on a [`share`](Self::share), which keeps the lock held: another thread than the work's
    /// waits on a [`loss_watch`](Self::loss_watch).
    pub fn wait_lost(&self) -> LostReason {
        pollster::block_on(self.0.lost())
    }

    /// One more guard of the same hold; the lock is freed with the last one.
    pub fn share(&self) -> Self {
        Self(self.0.share())
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

    /// Frees the lock and says how that ended.
    ///
    /// # Errors
    ///
    /// Those of [`crate::Guard::release`].
    pub fn release(self) -> Result<Ended, Error> {
        pollster::block_on(self.0.release())
    }

    /// Runs `body` while the lock is held, then frees it. A thread cannot be cancelled: `body`
    /// looks at the guard, by [`ensure`](crate::Guard::ensure), before each step that matters.
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

/// For a guard of a set, by a [`share`](crate::Guard::share) of it: to announce or to downgrade it.
///
/// # Examples
///
/// ```
/// use leasehold::{MemoryStore, blocking};
///
/// let locks = blocking::Client::new(MemoryStore::new());
/// let guards = locks.lock_all(["stock", "orders"]).acquire()?;
/// for guard in guards.guards() {
///     blocking::Guard::from(guard.share()).downgrade()?;
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
