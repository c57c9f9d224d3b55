use std::fmt;

use crate::blocking::Guard;
use crate::env::BoxFuture;
use crate::runtime::background::block_on;
use crate::types::LostReason;

/// Watches a [`Guard`] for its loss from another thread, without keeping its lock held.
///
/// # Examples
///
/// ```
/// use std::thread;
///
/// use leasehold::{blocking, memory::MemoryStore};
///
/// let locks = blocking::Client::new(MemoryStore::new());
/// let guard = locks.lock("report").acquire()?;
/// let watch = guard.loss_watch();
/// let watching = thread::spawn(move || {
///     if let Some(reason) = watch.wait() {
///         eprintln!("stop the work: the lock is lost, {reason}");
///     }
/// });
/// // the work
/// guard.release()?;
/// watching.join().unwrap();
/// # Ok::<(), leasehold::Error>(())
/// ```
pub struct LossWatch(BoxFuture<'static, Option<LostReason>>);

impl Guard {
    /// Returns a watch that another thread can wait on until this guard is lost or released.
    pub fn loss_watch(&self) -> LossWatch {
        LossWatch(Box::pin(self.0.ended()))
    }
}

impl LossWatch {
    /// Blocks until the guard is lost, and returns the reason. Returns `None` if the lock is released
    /// before that, as [`crate::Guard::ended`] does.
    pub fn wait(self) -> Option<LostReason> {
        block_on(self.0)
    }
}

impl fmt::Debug for LossWatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LossWatch").finish_non_exhaustive()
    }
}
