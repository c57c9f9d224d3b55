//! Runs work while a guard is held.

use std::future::Future;
use std::pin::pin;

use crate::env::BoxFuture;
use crate::guard::Guard;
use crate::store::LostReason;
use crate::types::Error;

impl Guard {
    /// Runs `body` while the lock is held. Drops `body` as soon as the guard is lost, and releases the lock
    /// only after it stopped.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Lost`](crate::ErrorKind::Lost) if the guard was lost before `body` ended; the output,
    /// if there was one, is dropped. A release that fails afterwards is logged, not returned.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future drops `body` first, then frees the lock in the background.
    ///
    /// # Examples
    ///
    /// ```
    /// # pollster::block_on(async {
    /// use leasehold::{Client, memory::MemoryStore};
    ///
    /// let locks = Client::new(MemoryStore::new());
    /// if let Some(guard) = locks.lock("nightly").try_acquire().await? {
    ///     let rows = guard.run(async { 42 }).await?;
    ///     assert_eq!(rows, 42);
    /// }
    /// # Ok::<(), leasehold::Error>(()) }).unwrap();
    /// ```
    pub async fn run<F: Future>(self, body: F) -> Result<F::Output, Error> {
        let output = {
            let body = pin!(body);
            tokio::select! {
                biased;
                reason = self.lost() => Err(reason),
                output = body => Ok(output),
            }
        };
        self.end(output).await
    }

    /// Releases the lock after `body` has ended. The output counts if it came in time.
    async fn end<T>(self, output: Result<T, LostReason>) -> Result<T, Error> {
        let output = output.and_then(|output| self.check_now().map(|()| output));
        let output = output.map_err(|reason| self.lost_error(reason));
        let key = self.key().clone();
        if let Err(error) = self.release().await {
            tracing::warn!(%key, %error, "release failed");
        }
        output
    }

    /// [`run`](Self::run) for a body that must not be dropped. It receives [`lost`](Self::lost), to stop when
    /// the guard is lost. The call waits for the body however long it takes, and releases the lock only
    /// then.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Lost`](crate::ErrorKind::Lost) if the guard was lost before `body` ended; its output is
    /// dropped. A release that fails afterwards is logged, not returned.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future drops `body` first, then frees the lock in the background.
    pub async fn run_to_its_end<F: Future>(
        self,
        body: impl FnOnce(BoxFuture<'static, LostReason>) -> F,
    ) -> Result<F::Output, Error> {
        let output = body(Box::pin(self.lost())).await;
        self.end(Ok(output)).await
    }

    /// Marks all guards of the [same hold](Self::reenter) as lost from now on: for work that may not have
    /// ended. Its lease is no longer renewed. With a [delay](crate::Lock::lock_delay) the lock stays closed
    /// until the lease ends by itself; without one it is released with the guard, as usual.
    pub fn give_up(&self) {
        let now = self.hold.client.now();
        self.held_lease().lose(LostReason::GivenUp, now);
    }
}
