use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use crate::acquire::{Acquisition, LockOptions, WaitPolicy, lock_options};
use crate::guard::Guard;
use crate::lease::ClientCore;
use crate::types::{Error, ErrorKind, Key, Mode};

/// A lock to acquire: a name and how to hold it. Acquiring it returns a [`Guard`].
///
/// ```
/// # pollster::block_on(async {
/// use std::time::Duration;
/// use leasehold::{Client, memory::MemoryStore};
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

    pub(crate) fn new(
        client: Arc<ClientCore>,
        key: Result<Key, Error>,
        options: LockOptions,
    ) -> Self {
        Self {
            client,
            key,
            options,
        }
    }

    lock_options! { key, ttl, lock_delay, wait, max_hold, mode, barging }

    /// Acquires the lock if it is free; returns `None` if another owner holds it.
    ///
    /// It asks the store once. With a [`wait`](Self::wait) of its own the lock has that time to become free, as in
    /// `locks.lock("deploy").wait(Duration::from_secs(5)).try_acquire()`. The wait of the client does not count here.
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
        async move {
            let wait_policy = match options.own_wait() {
                Some(wait) => WaitPolicy::Wait(Some(wait)),
                None => WaitPolicy::OneAttempt,
            };
            match Acquisition::run(client, key?, options, wait_policy).await {
                Err(error) if error.is_busy() => Ok(None),
                answer => answer,
            }
        }
    }

    /// The same lock, which the store is asked for once.
    pub(crate) fn without_wait(mut self) -> Self {
        self.options.wait = None;
        self
    }

    /// Acquires the lock, waiting for its holders. [`Guarantees::order`](crate::store::Guarantees::order) says
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
