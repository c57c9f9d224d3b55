use std::sync::{Arc, Weak};

use crate::blocking::Guard;
use crate::lease::{ClientCore, HeldLease};
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
#[derive(Debug)]
pub struct LossWatch {
    held_lease: Arc<HeldLease>,
    /// Recognizes a forked child. A watch does not keep the client alive.
    client: Weak<ClientCore>,
}

impl Guard {
    /// Returns a watch that another thread can wait on until this guard is lost or released.
    pub fn loss_watch(&self) -> LossWatch {
        // Created while the guard lives, so that the watch misses no end.
        self.0.held_lease().ended_token();
        let hold = &self.0.hold;
        LossWatch {
            held_lease: Arc::clone(&hold.held_lease),
            client: Arc::downgrade(&hold.client),
        }
    }
}

impl LossWatch {
    /// Blocks until the guard is lost, and returns the reason. Returns `None` if the lock is released
    /// before that: the last guard of its [hold](Guard::reenter) was released or dropped, or became a
    /// [handle](crate::handle::Handle). In a forked child it returns [`LostReason::Forked`] at once.
    pub fn wait(&self) -> Option<LostReason> {
        if self.client.upgrade().is_some_and(|it| it.is_forked()) {
            return Some(LostReason::Forked);
        }
        block_on(async {
            tokio::select! {
                biased;
                () = self.held_lease.lost_token().cancelled() => {}
                () = self.held_lease.ended_token().cancelled() => {}
            }
        });
        self.held_lease.lost_reason()
    }
}
