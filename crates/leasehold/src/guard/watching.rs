//! Waiting for what happens to a lease: its loss, its release, its renewal.

use std::future::Future;
use std::sync::Arc;

use super::Guard;
use crate::env::clock::BootInstant;
use crate::types::LostReason;

impl Guard {
    /// Resolves with the reason once the guard is lost, at the latest at its deadline. In a forked child
    /// it resolves at once.
    ///
    /// The future can be passed to the work that the lock protects: it borrows nothing, and keeps neither the lock
    /// nor the client. It never resolves if the lock is released first.
    ///
    /// # Cancel safety
    ///
    /// May be dropped at any time.
    ///
    /// # Examples
    ///
    /// A loop that ends between two steps, and not within one:
    ///
    /// ```
    /// # pollster::block_on(async {
    /// use std::pin::pin;
    /// use leasehold::{Client, LostReason, memory::MemoryStore};
    ///
    /// let locks = Client::new(MemoryStore::new());
    /// let guard = locks.lock("import").acquire().await?;
    /// let mut lost = pin!(guard.lost());
    /// let mut steps = 0;
    /// let reason = loop {
    ///     tokio::select! {
    ///         biased;
    ///         reason = &mut lost => break reason,
    ///         () = std::future::ready(()) => steps += 1, // the next message, say
    ///     }
    ///     # if steps == 3 { guard.give_up() }
    /// };
    /// println!("stopped after {steps} steps: {reason}");
    /// # assert_eq!(reason, LostReason::GivenUp);
    /// # Ok::<(), leasehold::Error>(()) }).unwrap();
    /// ```
    #[doc(alias = "cancel")]
    pub fn lost(&self) -> impl Future<Output = LostReason> + Send + use<> {
        let held_lease = Arc::clone(self.held_lease());
        let context = Arc::clone(&self.hold.client.context);
        let process = self.hold.client.process();
        async move {
            loop {
                if !process.is_current() {
                    return LostReason::Forked;
                }
                if let Some(reason) = held_lease.lost_reason() {
                    return reason;
                }
                // After a release, the deadline means nothing.
                if !held_lease.is_over()
                    && let Err(reason) = held_lease.check(context.now())
                {
                    return reason;
                }
                held_lease.lost_token().cancelled().await;
            }
        }
    }

    /// Resolves once the guard is lost, with the reason, or once the lock is released, with `None`: the last guard of the
    /// [same hold](Self::reenter) was released or dropped, or became a [handle](crate::handle::Handle).
    ///
    /// Like [`lost`](Self::lost), it borrows nothing, and resolves at once in a forked child.
    ///
    /// # Cancel safety
    ///
    /// May be dropped at any time.
    ///
    /// # Examples
    ///
    /// ```
    /// # pollster::block_on(async {
    /// use leasehold::{Client, memory::MemoryStore};
    ///
    /// let locks = Client::new(MemoryStore::new());
    /// let guard = locks.lock("import").acquire().await?;
    /// let ended = guard.ended();
    /// guard.release().await?;
    /// assert_eq!(ended.await, None);
    /// # Ok::<(), leasehold::Error>(()) }).unwrap();
    /// ```
    pub fn ended(&self) -> impl Future<Output = Option<LostReason>> + Send + use<> {
        // Created while the guard lives, so that it misses no end.
        let ended = self.held_lease().ended_token().clone();
        let lost = self.lost();
        async move {
            tokio::select! {
                biased;
                reason = lost => Some(reason),
                () = ended.cancelled() => None,
            }
        }
    }

    /// Resolves with the deadline as soon as it differs from `from`, as it does after each renewal. For
    /// code that must pass the deadline on.
    ///
    /// # Cancel safety
    ///
    /// May be dropped at any time; the next call sees what was missed.
    pub async fn deadline_moved(&self, from: Option<BootInstant>) -> Option<BootInstant> {
        let mut deadlines = self.held_lease().deadlines();
        match deadlines.wait_for(|deadline| *deadline != from).await {
            Ok(deadline) => *deadline,
            // The sender lives in the held lease, which this guard keeps alive.
            Err(_) => self.deadline(),
        }
    }
}
