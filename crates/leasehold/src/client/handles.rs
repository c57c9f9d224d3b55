//! Renews, adopts, and releases handles.

use std::future::Future;
use std::sync::Arc;

use super::Client;
use crate::guard::{Guard, Hold, ReleaseOutcome};
use crate::handle::{Handle, confirmed, renew, take_up};
use crate::telemetry::HoldMeter;
use crate::types::{Error, LostReason};

impl Client {
    /// Renews the lease of a handle once, and returns a new handle with the new deadline. The old handle
    /// keeps its own deadline.
    ///
    /// Like a guard's renewal, it counts from before the request was sent, and moves the deadline only if
    /// it is confirmed before the old one has passed. It does not repair members of a quorum that forgot
    /// the lease. If too few members answer, it retries for at most three seconds.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Lost`](crate::ErrorKind::Lost) if the lease has ended at this store, or if the deadline has passed or cannot be
    /// measured here. The error has [`Effect::Unknown`](crate::Effect::Unknown) if the store did not
    /// decide: the handle is valid until its deadline, and calling again is fine.
    /// [`ErrorKind::InvalidInput`](crate::ErrorKind::InvalidInput) for a TTL out of the store's bounds; [`ErrorKind::Unsupported`](crate::ErrorKind::Unsupported) if locks
    /// end with their process.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future only discards the answer.
    #[doc(alias = "extend")]
    #[doc(alias = "refresh")]
    #[doc(alias = "touch")]
    pub fn renew(
        &self,
        handle: &Handle,
    ) -> impl Future<Output = Result<Handle, Error>> + Send + use<> {
        let renewal = renew(self.core(), handle.clone());
        async move { renewal?.await }
    }

    /// Adopts a handle: renews its lease as [`renew`](Self::renew) does, and returns a guard that is
    /// renewed from then on. The guard has the owner and the fence of the grant.
    ///
    /// Copies of a handle are one holder: all processes that renew or adopt one hold the lock together,
    /// with one fence. Each of them can release the lock; the guards of the others then report a loss.
    ///
    /// What the guard writes to its [record](crate::record::HeldRecord) replaces what earlier guards of this grant
    /// wrote. This holds if they wrote less than once a second on average, and if the machines' wall clocks
    /// agree. Two guards that were made of one handle within the same second should not both write.
    ///
    /// # Errors
    ///
    /// The errors of [`renew`](Self::renew).
    ///
    /// # Cancel safety
    ///
    /// Dropping the future leaves the lease to its own end; the handle stays valid as before.
    ///
    /// # Examples
    ///
    /// ```
    /// # pollster::block_on(async {
    /// use leasehold::{Client, memory::MemoryStore};
    ///
    /// let locks = Client::new(MemoryStore::new());
    /// let guard = locks.lock("deploy").acquire().await?;
    /// let fence = guard.fence();
    /// let handle = guard.into_handle()?;
    /// let guard = locks.adopt(&handle).await?;
    /// assert_eq!(guard.fence(), fence);
    /// guard.release().await?;
    /// # Ok::<(), leasehold::Error>(()) }).unwrap();
    /// ```
    pub fn adopt(
        &self,
        handle: &Handle,
    ) -> impl Future<Output = Result<Guard, Error>> + Send + use<> {
        let core = Arc::clone(self.core());
        let renewal = confirmed(&core, handle.clone());
        async move {
            let held_lease = renewal?.await?;
            held_lease.measure(HoldMeter::begin(
                &core.context.metrics,
                held_lease.lock(),
                core.now(),
            ));
            core.keep(&held_lease);
            Ok(Guard::new(held_lease, core))
        }
    }

    /// Releases the lock of a handle, whether its deadline has passed or not, and returns the outcome:
    /// [`ReleaseOutcome::WasLost`] if the lease has ended at this store. Other holders are not affected. If the lock
    /// has a [delay](crate::Lock::lock_delay), a lost handle releases nothing, as with a guard.
    ///
    /// # Errors
    ///
    /// The error has [`Effect::Unknown`](crate::Effect::Unknown) if the store did not answer: the lock is
    /// free at the latest when the TTL is over. [`ErrorKind::InvalidInput`](crate::ErrorKind::InvalidInput) if the handle belongs to
    /// another store and holds nothing here. [`ErrorKind::Unsupported`](crate::ErrorKind::Unsupported) if locks end with their process.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future only discards the answer: the lock is released in the background.
    pub fn release(
        &self,
        handle: &Handle,
    ) -> impl Future<Output = Result<ReleaseOutcome, Error>> + Send + use<> {
        let core = Arc::clone(self.core());
        let hold = take_up(&core, handle).map(|held_lease| {
            if !handle.is_of_this_boot() {
                held_lease.lose(LostReason::Paused, core.now());
            }
            Hold::new(held_lease, Arc::clone(&core))
        });
        let misdirected = handle.misdirected(&*core.context.store);
        async move {
            match (hold?.release().await?, misdirected) {
                (ReleaseOutcome::WasLost, Some(error)) => Err(error),
                (outcome, _) => Ok(outcome),
            }
        }
    }
}
