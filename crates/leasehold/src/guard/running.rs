//! Runs work while a guard is held.

use std::future::Future;
use std::pin::pin;
use std::time::Duration;

use crate::guard::Guard;
use crate::types::{Error, LostReason};

impl Guard {
    /// Runs `body` while the lock is held, and then releases the lock. `body` is an async closure, `async |guard| …`. It gets
    /// the guard, and may borrow what is around it. It is dropped as soon as the guard is lost, and the lock is released only
    /// after it stopped.
    ///
    /// Write `async |guard| …`, with `async` before the bars. A plain closure, `|guard| async { … }`, does not compile: its
    /// future cannot borrow the guard. The compiler says that `AsyncFnOnce` "is not general enough", that "type annotations
    /// \[are\] needed", or that a "lifetime may not live long enough". A future that does not need the guard can be passed to
    /// [`until_lost`](Self::until_lost).
    ///
    /// A body that must not be dropped runs next to the guard instead, and watches [`lost`](Self::lost).
    /// [`manual::recipes`](crate::manual::recipes) shows this with a `CancellationToken`.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Lost`](crate::ErrorKind::Lost) if the guard was lost before `body` ended, with the
    /// [reason](Error::lost_reason); the output, if there was one, is dropped. A [release](Self::release) that fails afterwards
    /// is logged, not returned.
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
    ///     let written = guard.run(async |guard| format!("written with fence {}", guard.fence())).await?;
    ///     println!("{written}");
    /// }
    /// # Ok::<(), leasehold::Error>(()) }).unwrap();
    /// ```
    pub async fn run<T>(self, body: impl AsyncFnOnce(&Self) -> T) -> Result<T, Error> {
        let output = self.until_lost(body(&self)).await;
        self.release_quietly().await;
        output
    }

    /// Runs `body` until it ends, or until the guard is lost. The guard stays with the caller, who releases it.
    ///
    /// The future is `Send` if `body` is. So code that gets a job of any type, such as middleware, can use it where the
    /// closure of [`run`](Self::run) cannot be proven to be `Send`.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Lost`](crate::ErrorKind::Lost) if the guard was lost before `body` ended, with the
    /// [reason](Error::lost_reason).
    ///
    /// # Cancel safety
    ///
    /// Dropping the future drops `body`. The guard stays as it is.
    ///
    /// # Examples
    ///
    /// ```
    /// use leasehold::{Client, Error, memory::MemoryStore};
    ///
    /// /// Runs any job under a lock.
    /// async fn locked<J: Future + Send>(locks: &Client, job: J) -> Result<J::Output, Error> {
    ///     let guard = locks.lock("job").acquire().await?;
    ///     let output = guard.until_lost(job).await;
    ///     drop(guard); // released in the background
    ///     output
    /// }
    ///
    /// fn is_send<T: Send>(value: T) -> T { value }
    /// let locks = Client::new(MemoryStore::new());
    /// let done = is_send(locked(&locks, async { 7 }));
    /// assert_eq!(pollster::block_on(done).unwrap(), 7);
    /// ```
    pub async fn until_lost<F: Future>(&self, body: F) -> Result<F::Output, Error> {
        let body = pin!(body);
        tokio::select! {
            biased;
            reason = self.lost() => Err(self.lost_error(reason)),
            // A body that blocked may have slept through the loss.
            output = body => self.ensure(Duration::ZERO).map(|()| output),
        }
    }

    /// Releases the lock; the outcome changes nothing for the caller.
    pub(crate) async fn release_quietly(self) {
        let key = self.key().clone();
        if let Err(error) = self.release().await {
            tracing::warn!(%key, %error, "release failed");
        }
    }

    /// Marks all guards of the [same hold](Self::reenter) as lost from now on: for work that may not have
    /// ended. Its lease is no longer renewed. With a [delay](crate::Lock::lock_delay) the lock stays closed
    /// until the lease ends by itself; without one it is released with the guard, as usual.
    pub fn give_up(&self) {
        let now = self.hold.client.now();
        self.held_lease().lose(LostReason::GivenUp, now);
    }
}
