use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use crate::acquire::{Acquisition, LockOptions, WaitPolicy};
use crate::guard::Guard;
use crate::lease::ClientCore;
use crate::types::{Error, ErrorKind, Key, Mode};

/// A lock to acquire: a name and how to hold it. Acquiring it returns a [`Guard`].
///
/// # Examples
///
/// ```
/// # pollster::block_on(async {
/// use std::time::Duration;
/// use leasehold::{Client, MemoryStore};
///
/// let locks = Client::new(MemoryStore::new());
/// let lock = locks.lock("deploy").ttl(Duration::from_secs(10)).wait(Duration::from_secs(5));
/// let guard = lock.acquire().await?;
/// # drop(guard);
/// # Ok::<(), leasehold::Error>(()) }).unwrap();
/// ```
#[doc(alias = "mutex")]
#[doc(alias = "rwlock")]
#[derive(Clone, Debug)]
#[must_use = "a lock does nothing until it is acquired"]
pub struct Lock {
    client: Arc<ClientCore>,
    key: Result<Key, Error>,
    options: LockOptions,
}

impl Lock {
    /// The default TTL.
    pub const DEFAULT_TTL: Duration = LockOptions::DEFAULT_TTL;

    pub(crate) fn new(client: Arc<ClientCore>, key: Result<Key, Error>) -> Self {
        Self {
            client,
            key,
            options: LockOptions::default(),
        }
    }

    /// Sets the TTL of each lease, which is how long the lock stays unavailable after its holder died.
    /// The client renews the lease after each third of the TTL, the first time somewhat sooner. Default:
    /// 30 s. Has no effect where the kernel frees locks.
    #[doc(alias = "timeout")]
    #[doc(alias = "expire")]
    #[doc(alias = "expiry")]
    #[doc(alias = "lease time")]
    pub fn ttl(mut self, ttl: Duration) -> Self {
        self.options.ttl = ttl;
        self
    }

    /// Sets how much longer the lock stays unavailable after an *unclean* end of its holder: it died, was
    /// cut off, or was paused past its deadline. Default: no longer.
    ///
    /// For resources that cannot compare [fences](crate::Fence). What such a holder sent before its end
    /// has this time to arrive before the next holder acts. The delay makes late writes rarer, but does
    /// not exclude them.
    ///
    /// Every lease lives for the TTL and the delay at the store, by the store's clock. A guard does not
    /// use the delay: its deadlines and renewals are those of the TTL. Releasing or dropping a valid
    /// guard frees the lock at once. A lost guard does not free it: the lock stays unavailable until the
    /// lease ends, and [`Guard::release`] returns [`WasLost`](crate::ReleaseOutcome::WasLost). A guard held beyond
    /// [`max_hold`](Self::max_hold) is lost too, because its work may still be running.
    ///
    /// TTL and delay together must not exceed the store's longest TTL (60 s, unless the members of a
    /// quorum agreed on another). If locks end with their process, no lease could last longer, and a
    /// delay is unsupported.
    #[doc(alias = "cooldown")]
    pub fn lock_delay(mut self, span: Duration) -> Self {
        self.options.lock_delay = span;
        self
    }

    /// Sets the longest time that [`acquire`](Self::acquire) takes. Default: no limit. With zero it asks
    /// the store once, however long that takes.
    #[doc(alias = "timeout")]
    #[doc(alias = "block")]
    pub fn wait(mut self, wait: Duration) -> Self {
        self.options.wait = Some(wait);
        self
    }

    /// Sets the maximum hold time. The guard is lost after it, even if its holder is alive. Default: no
    /// limit.
    pub fn max_hold(mut self, max_hold: Duration) -> Self {
        self.options.max_hold = Some(max_hold);
        self
    }

    /// Sets the mode: exclusive ([`Mode::Exclusive`], the default), shared ([`Mode::Shared`]), or with
    /// one of several permits ([`Mode::Permit`]).
    pub fn mode(mut self, mode: Mode) -> Self {
        self.options.mode = mode;
        self
    }

    /// Sets whether to acquire the lock ahead of the queue. The client then does not queue. It polls
    /// (every 10 to 50 ms), and takes the lock whenever it is free or only reserved for a waiter.
    /// Default: no. For the rare case that cannot wait its turn; it delays the waiters. Has no effect
    /// where the store grants locks in no order.
    pub fn barging(mut self, barging: bool) -> Self {
        self.options.barging = barging;
        self
    }

    /// Acquires the lock if it is free; returns `None` if another owner holds it. Asks the store once.
    ///
    /// # Errors
    ///
    /// Invalid input, or a store that could not be asked. A busy lock is no error.
    ///
    /// # Cancel safety
    ///
    /// May be dropped at any time. The lock is then released in the background, if it was granted.
    #[doc(alias = "try_lock")]
    pub fn try_acquire(&self) -> impl Future<Output = Result<Option<Guard>, Error>> + Send + use<> {
        let Self {
            client,
            key,
            options,
        } = self.clone();
        async move { Acquisition::run(client, key?, options, WaitPolicy::OneAttempt).await }
    }

    /// Acquires the lock, waiting for its holders. [`Guarantees::order`](crate::Guarantees::order) says
    /// in which order waiters are served.
    ///
    /// It also waits while the store does not answer, or too few members do. It stops when the
    /// [`wait`](Self::wait) ends; without one it waits through an outage of any length. A store that has
    /// never answered this client may have the wrong address, so without a wait the client gives up on it
    /// after one TTL.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Busy`] if another owner still held the lock when the wait ended;
    /// [`ErrorKind::NoQuorum`] or [`ErrorKind::Unreachable`] if the store could not be asked by then.
    /// Invalid input and refusals at once.
    ///
    /// # Cancel safety
    ///
    /// May be dropped at any time. Nothing stays queued, and the lock is released in the background, if it was
    /// granted.
    ///
    /// Poll the future or drop it. If it is kept without being polled, the client does not renew a lease
    /// that the store grants meanwhile: the lease ends with its TTL, and the next poll tries again.
    #[doc(alias = "lock")]
    #[doc(alias = "obtain")]
    pub fn acquire(&self) -> impl Future<Output = Result<Guard, Error>> + Send + use<> {
        let Self {
            client,
            key,
            options,
        } = self.clone();
        async move {
            let wait = WaitPolicy::Wait(options.wait);
            match Acquisition::run(client, key?, options, wait).await? {
                Some(guard) => Ok(guard),
                None => Err(Error::new(ErrorKind::Busy, "another client holds the lock")),
            }
        }
    }
}
