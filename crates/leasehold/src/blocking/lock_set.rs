use std::ops::Deref;
use std::time::Duration;

use crate::attempt::LostReason;
use crate::claim::Mode;
use crate::error::Error;
use crate::guard::Ended;
use crate::key::Key;

/// A blocking [`crate::LockSet`].
///
/// # Examples
///
/// ```
/// use leasehold::{MemoryStore, blocking};
///
/// let locks = blocking::Client::new(MemoryStore::new());
/// let guards = locks.lock_all(["stock", "orders"]).acquire()?;
/// assert!(locks.lock("stock").try_acquire()?.is_none());
/// guards.release();
/// # Ok::<(), leasehold::Error>(())
/// ```
#[derive(Clone, Debug)]
#[must_use = "locks do nothing until they are acquired"]
pub struct LockSet(pub(super) crate::LockSet);

impl LockSet {
    settings! { LockSet:
        ttl(Duration), wait(Duration), max_hold(Duration),
        lock_delay(Duration), mode(Mode), barging(bool),
    }

    /// Takes the locks if all are free; `None` if somebody else holds one.
    ///
    /// # Errors
    ///
    /// Those of [`crate::LockSet::try_acquire`].
    pub fn try_acquire(&self) -> Result<Option<GuardSet>, Error> {
        Ok(pollster::block_on(self.0.try_acquire())?.map(GuardSet))
    }

    /// Takes all locks, waiting for their holders.
    ///
    /// # Errors
    ///
    /// Those of [`crate::LockSet::acquire`].
    pub fn acquire(&self) -> Result<GuardSet, Error> {
        pollster::block_on(self.0.acquire()).map(GuardSet)
    }
}

/// A blocking [`crate::GuardSet`], which it dereferences to for everything that only looks.
#[derive(Debug)]
#[must_use = "if unused the locks are freed at once"]
#[clippy::has_significant_drop]
pub struct GuardSet(crate::GuardSet);

impl GuardSet {
    /// Blocks until one lock is lost, and says which and why. Never returns while all can be renewed.
    /// Another thread than the work's waits on the [`loss_watch`](crate::blocking::Guard::loss_watch) of each
    /// guard.
    pub fn wait_lost(&self) -> (Key, LostReason) {
        pollster::block_on(self.0.lost())
    }

    /// Frees all locks, and says of each how that ended.
    pub fn release(self) -> Vec<(Key, Result<Ended, Error>)> {
        pollster::block_on(self.0.release())
    }

    /// Runs `body` while the locks are held, then frees them. A thread cannot be cancelled: `body`
    /// looks at the guards, by [`ensure`](crate::GuardSet::ensure), before each step that matters.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Lost`](crate::ErrorKind::Lost) if a lock was lost before `body` ended.
    pub fn run<T>(self, body: impl FnOnce(&Self) -> T) -> Result<T, Error> {
        let output = body(&self);
        pollster::block_on(self.0.run(std::future::ready(output)))
    }
}

impl Deref for GuardSet {
    type Target = crate::GuardSet;

    fn deref(&self) -> &crate::GuardSet {
        &self.0
    }
}
