use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use crate::acquire::{LockOptions, lock_options};
use crate::client::Client;
use crate::guard::Guard;
use crate::lease::ClientCore;
use crate::lock::Lock;
use crate::types::{Error, Key, Mode, Permits};

/// A lock that several holders may hold at once: a name, a number of permits, and options for acquiring
/// one. Acquiring one returns a [`Guard`].
///
/// ```
/// # pollster::block_on(async {
/// use leasehold::{Client, memory::MemoryStore};
///
/// let locks = Client::new(MemoryStore::new());
/// let workers = locks.semaphore("workers", 2);
/// let (one, two) = (workers.acquire().await?, workers.acquire().await?);
/// assert!(two.fence() > one.fence());
/// assert!(workers.try_acquire().await?.is_none());
/// one.release().await?;
/// assert!(workers.try_acquire().await?.is_some());
/// # drop(two);
/// # Ok::<(), leasehold::Error>(()) }).unwrap();
/// ```
///
/// Each permit has its own lease and fence. The holders work side by side. A resource that rejects every
/// fence below the greatest it has seen would reject the earlier holders, so use the fence only for a
/// resource that belongs to a single permit. The store keeps the number of permits while any is held, and
/// refuses a request with another number ([`ErrorKind::PermitsDiffer`](crate::ErrorKind::PermitsDiffer)).
/// The number can change only when no permit is held. A name is the same lock here and in
/// [`Client::lock`](crate::Client::lock): exclusive holders and holders of permits exclude each other.
#[doc(alias = "rate limit")]
#[doc(alias = "permit")]
#[derive(Clone, Debug)]
#[must_use = "a semaphore does nothing until a permit is acquired"]
pub struct Semaphore {
    client: Arc<ClientCore>,
    key: Result<Key, Error>,
    permits: u32,
    options: LockOptions,
}

impl Client {
    /// Returns the lock called `name` with `permits` permits: at most that many owners may hold it at
    /// once. An invalid name or number is reported when a permit is acquired.
    ///
    /// # Examples
    ///
    /// ```
    /// # pollster::block_on(async {
    /// use leasehold::{Client, memory::MemoryStore};
    ///
    /// let locks = Client::new(MemoryStore::new());
    /// let permit = locks.semaphore("workers", 3).acquire().await?;
    /// permit.release().await?;
    /// # Ok::<(), leasehold::Error>(()) }).unwrap();
    /// ```
    pub fn semaphore(&self, name: impl AsRef<str>, permits: u32) -> Semaphore {
        Semaphore {
            client: Arc::clone(self.core()),
            key: Key::new(name),
            permits,
            options: self.defaults(),
        }
    }
}

impl Semaphore {
    lock_options! { key, ttl, lock_delay, wait, max_hold, barging }

    /// Acquires a permit if one is free; `None` if all are held, or others wait for them. On a quorum,
    /// where the members must agree on the permit, it makes up to three attempts.
    ///
    /// # Errors
    ///
    /// Invalid input, a store that could not be asked or offers no permits, and
    /// [`ErrorKind::PermitsDiffer`](crate::ErrorKind::PermitsDiffer). A busy semaphore is not an error.
    ///
    /// # Cancel safety
    ///
    /// As [`Lock::try_acquire`].
    ///
    /// # Examples
    ///
    /// ```
    /// # pollster::block_on(async {
    /// use leasehold::{Client, memory::MemoryStore};
    ///
    /// let locks = Client::new(MemoryStore::new());
    /// match locks.semaphore("uploads", 4).try_acquire().await? {
    ///     Some(permit) => println!("upload with fence {}", permit.fence()),
    ///     None => println!("four are uploading"),
    /// }
    /// # Ok::<(), leasehold::Error>(()) }).unwrap();
    /// ```
    pub fn try_acquire(&self) -> impl Future<Output = Result<Option<Guard>, Error>> + Send + use<> {
        let lock = self.lock();
        async move { lock?.try_acquire().await }
    }

    /// Acquires a permit, and waits until one is free. [`Guarantees::order`](crate::store::Guarantees::order) says
    /// in which order waiters are served.
    ///
    /// # Errors
    ///
    /// The errors of [`Lock::acquire`]. At once, [`ErrorKind::PermitsDiffer`](crate::ErrorKind::PermitsDiffer)
    /// if permits of another number are held, and
    /// [`ErrorKind::InvalidInput`](crate::ErrorKind::InvalidInput) for 0 permits or more than
    /// [`Permits::MAX`].
    ///
    /// # Cancel safety
    ///
    /// As [`Lock::acquire`].
    ///
    /// # Examples
    ///
    /// ```
    /// # pollster::block_on(async {
    /// use std::time::Duration;
    /// use leasehold::{Client, ErrorKind, memory::MemoryStore};
    ///
    /// let locks = Client::new(MemoryStore::new());
    /// let permit = locks.semaphore("workers", 3).wait(Duration::from_secs(5)).acquire().await?;
    /// let refused = locks.semaphore("workers", 4).acquire().await.unwrap_err();
    /// assert_eq!(refused.kind(), ErrorKind::PermitsDiffer);
    /// assert!(refused.to_string().ends_with("the lock is in use with 3 permits, not 4"));
    /// permit.release().await?;
    /// # Ok::<(), leasehold::Error>(()) }).unwrap();
    /// ```
    pub fn acquire(&self) -> impl Future<Output = Result<Guard, Error>> + Send + use<> {
        let lock = self.lock();
        async move { lock?.acquire().await }
    }

    fn lock(&self) -> Result<Lock, Error> {
        let key = self.key.clone()?;
        let permits = Permits::new(self.permits).map_err(|error| error.with_key(&key))?;
        let options = LockOptions {
            mode: Mode::Permit(permits),
            ..self.options
        };
        Ok(Lock::new(Arc::clone(&self.client), Ok(key), options))
    }
}
