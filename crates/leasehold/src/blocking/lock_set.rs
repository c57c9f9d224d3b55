use std::ops::Deref;
use std::time::Duration;

use crate::guard::ReleaseOutcome;
use crate::runtime::background::block_on;
use crate::types::{Error, Key, LostReason, Mode};

/// A blocking [`crate::LockSet`].
///
/// # Examples
///
/// ```
/// use leasehold::{blocking, memory::MemoryStore};
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
    lock_options! { "LockSet": mode(Mode) }

    calls! { "LockSet":
        /// Acquires the locks if all are free; `None` if another owner holds one.
        fn try_acquire(&self) -> Option<GuardSet> = |free| free.map(GuardSet);
        /// Acquires all locks, and waits for their holders.
        fn acquire(&self) -> GuardSet = GuardSet;
    }
}

/// A blocking [`crate::GuardSet`]. It dereferences to that type for all methods that only read.
#[derive(Debug)]
#[must_use = "if unused the locks are freed at once"]
#[clippy::has_significant_drop]
pub struct GuardSet(crate::GuardSet);

impl GuardSet {
    /// Blocks until one lock is lost, and returns its name and the reason. Never returns while every lease
    /// can be renewed. To wait on another thread, use the
    /// [`loss_watch`](crate::blocking::Guard::loss_watch) of each guard.
    pub fn wait_lost(&self) -> (Key, LostReason) {
        block_on(self.0.lost())
    }

    /// Releases all locks, and returns the outcome for each.
    pub fn release(self) -> Vec<(Key, Result<ReleaseOutcome, Error>)> {
        block_on(self.0.release())
    }

    /// Runs `body` while the locks are held, then releases them. A thread cannot be cancelled, so `body`
    /// must check the guards with [`ensure`](crate::GuardSet::ensure) before each step that matters.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Lost`](crate::ErrorKind::Lost) if a lock was lost before `body` ended.
    pub fn run<T>(self, body: impl FnOnce(&Self) -> T) -> Result<T, Error> {
        let output = body(&self);
        block_on(self.0.run(async move |_| output))
    }
}

impl Deref for GuardSet {
    type Target = crate::GuardSet;

    fn deref(&self) -> &crate::GuardSet {
        &self.0
    }
}
