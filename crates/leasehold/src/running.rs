//! Work that runs while a guard is held, and what becomes of it.

use std::future::Future;
use std::pin::pin;

use tokio_util::sync::CancellationToken;

use crate::attempt::LostReason;
use crate::error::Error;
use crate::guard::Guard;

impl Guard {
    /// Runs `body` while the lock is held: cancels it (drops it) as soon as the guard is lost, and
    /// frees the lock only after it stopped.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Lost`](crate::ErrorKind::Lost) if the guard was lost before `body` ended; its output, if there was
    /// one, is dropped. A release that fails afterwards is logged, not returned.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future drops `body` first, then frees the lock in the background.
    ///
    /// # Examples
    ///
    /// ```
    /// # pollster::block_on(async {
    /// use leasehold::{Client, MemoryStore};
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

    /// Frees the lock after the body it was for, whose output counts if it came in time.
    async fn end<T>(self, output: Result<T, LostReason>) -> Result<T, Error> {
        let output = output.and_then(|output| self.check_now().map(|()| output));
        let output = output.map_err(|reason| self.lost_error(reason));
        let key = self.key().clone();
        if let Err(error) = self.release().await {
            tracing::warn!(%key, %error, "release failed");
        }
        output
    }

    /// [`run`](Self::run) for a body that must end in its own way: it is handed a token that is
    /// cancelled when the guard is lost, is waited for however long it takes, and the lock is freed
    /// only then.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Lost`](crate::ErrorKind::Lost) if the guard was lost before `body` ended; its output is dropped. A
    /// release that fails afterwards is logged, not returned.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future drops `body` first, then frees the lock in the background.
    pub async fn run_to_its_end<F: Future>(
        self,
        body: impl FnOnce(CancellationToken) -> F,
    ) -> Result<F::Output, Error> {
        let output = body(self.lost_token()).await;
        self.end(Ok(output)).await
    }

    /// Counts the guard, and all its [shares](Self::share), as lost from now on: for work of which
    /// nobody can say that it has ended. It is renewed no more. With a
    /// [delay](crate::Lock::lock_delay) the lock stays shut until the lease has ended by itself;
    /// without one it is freed with the guard, as ever.
    pub fn give_up(&self) {
        let now = self.hold.client.now();
        self.tenure().lose(LostReason::GivenUp, now);
    }
}
