use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use crate::acquisition::Acquisition;
use crate::claim::Mode;
use crate::client_core::ClientCore;
use crate::error::{Error, ErrorKind};
use crate::guarantees::{Counting, Expiry, Sharing};
use crate::guard::Guard;
use crate::key::Key;
use crate::patience::Patience;
use crate::telemetry::spans;

/// A lock to be taken: a name and how to hold it. Taking it makes a [`Guard`].
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
#[derive(Clone, Debug)]
#[must_use = "a lock does nothing until it is acquired"]
pub struct Lock {
    client: Arc<ClientCore>,
    key: Result<Key, Error>,
    ttl: Duration,
    lock_delay: Duration,
    wait: Option<Duration>,
    max_hold: Option<Duration>,
    mode: Mode,
    barging: bool,
}

impl Lock {
    /// The TTL of a lock that does not say otherwise.
    pub const DEFAULT_TTL: Duration = Duration::from_secs(30);

    pub(crate) fn new(client: Arc<ClientCore>, key: Result<Key, Error>) -> Self {
        Self {
            client,
            key,
            ttl: Self::DEFAULT_TTL,
            lock_delay: Duration::ZERO,
            wait: None,
            max_hold: None,
            mode: Mode::Exclusive,
            barging: false,
        }
    }

    /// How long the lock stays shut after its holder died: the time to live of each lease, which
    /// is renewed whenever a third of it is over, for the first time somewhat sooner. Default 30 s;
    /// without effect where the kernel frees locks.
    pub fn ttl(mut self, ttl: Duration) -> Self {
        self.ttl = ttl;
        self
    }

    /// For how much longer the lock stays shut after an *unclean* end of its holder: it died, was cut
    /// off, or stood still past its deadline. Default: no longer.
    ///
    /// For resources that cannot compare [fences](crate::Fence): what such a holder sent before its end
    /// has this time to arrive before anybody else acts. It makes late writes rarer, and excludes none.
    ///
    /// Every lease stands for TTL and delay at the store, by the store's clock, and a guard makes no use
    /// of the delay: deadlines and renewals are those of the TTL. A guard that is released or dropped
    /// while it is valid frees the lock at once. One that is lost does not: the lock stays shut until
    /// the lease ends, and [`Guard::release`] says [`WasLost`](crate::Ended::WasLost). Beyond
    /// [`max_hold`](Self::max_hold) a guard is lost too, as its work may still be running.
    ///
    /// TTL and delay together must not exceed the store's longest TTL (60 s, unless a set of members
    /// agreed on another). Where locks end with their process there is no lease that could stand for
    /// longer, and a delay is unsupported.
    pub fn lock_delay(mut self, span: Duration) -> Self {
        self.lock_delay = span;
        self
    }

    /// The longest time that [`acquire`](Self::acquire) takes. Default: no limit. With zero it asks the store
    /// once, however long that takes.
    pub fn wait(mut self, wait: Duration) -> Self {
        self.wait = Some(wait);
        self
    }

    /// How long the guard may be held in all: then it is lost, though its holder lives on. Default:
    /// no limit.
    pub fn max_hold(mut self, max_hold: Duration) -> Self {
        self.max_hold = Some(max_hold);
        self
    }

    /// Alone ([`Mode::Exclusive`], the default), together with others ([`Mode::Shared`]), or with one
    /// of so many permits ([`Mode::Permit`]).
    pub fn mode(mut self, mode: Mode) -> Self {
        self.mode = mode;
        self
    }

    /// Ahead of those who wait: does not queue, and takes the lock whenever it is free or only
    /// reserved for somebody else, asking again and again (every 10 to 50 ms). Default: no. For the
    /// rare case that cannot wait its turn; it keeps those back who do. Without effect where locks
    /// are granted in no order.
    pub fn barging(mut self, barging: bool) -> Self {
        self.barging = barging;
        self
    }

    /// Takes the lock if it is free; `None` if somebody else holds it. Asks the store once.
    ///
    /// # Errors
    ///
    /// Invalid input, or a store that could not be asked. Busy is no error.
    ///
    /// # Cancel safety
    ///
    /// May be dropped at any time: the attempt is then finished in the background, and freed if it
    /// was granted.
    pub fn try_acquire(&self) -> impl Future<Output = Result<Option<Guard>, Error>> + Send + use<> {
        let lock = self.clone();
        async move { lock.start(Patience::OneAttempt)?.await }
    }

    /// Takes the lock, waiting for its holders, in the order that
    /// [`Guarantees::order`](crate::Guarantees::order) tells.
    ///
    /// It also waits while the store does not answer, or too few members do: as long as
    /// [`wait`](Self::wait) says, and without it through an outage of any length. A store that has
    /// never answered this client may have the wrong address. Without a wait it is given up after one TTL.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Busy`] if somebody else still held the lock when the wait ended;
    /// [`ErrorKind::NoQuorum`] or [`ErrorKind::Unreachable`] if by then the store could not be asked.
    /// Invalid input and refusals at once.
    ///
    /// # Cancel safety
    ///
    /// May be dropped at any time: nothing stays queued, and an attempt under way is finished in
    /// the background and freed if it was granted.
    pub fn acquire(&self) -> impl Future<Output = Result<Guard, Error>> + Send + use<> {
        let lock = self.clone();
        async move {
            match lock.start(Patience::Wait(lock.wait))?.await? {
                Some(guard) => Ok(guard),
                None => Err(Error::new(ErrorKind::Busy, "another client holds the lock")),
            }
        }
    }

    fn start(
        &self,
        patience: Patience,
    ) -> Result<impl Future<Output = Result<Option<Guard>, Error>> + Send + use<>, Error> {
        let key = self.key.clone()?;
        self.check().map_err(|error| error.with_key(&key))?;
        Acquisition {
            context: Arc::clone(&self.client.context),
            client: Arc::downgrade(&self.client),
            span: spans::acquire(&key, self.mode),
            key,
            mode: self.mode,
            ttl: self.ttl,
            delay: self.lock_delay,
            max_hold: self.max_hold,
            patience,
            barging: self.barging,
        }
        .start(&self.client)
    }

    fn check(&self) -> Result<(), Error> {
        let context = &self.client.context;
        let (store, guarantees) = (&context.store, context.guarantees);
        // Also where leases do not expire: the same settings then work on every store.
        let terms = context.terms;
        if self.ttl < terms.ttl_min || self.ttl > terms.ttl_max {
            return Err(Error::new(
                ErrorKind::InvalidInput,
                format!(
                    "TTL {:?} is out of bounds; {} allows {:?} to {:?}",
                    self.ttl,
                    store.describe(),
                    terms.ttl_min,
                    terms.ttl_max
                ),
            ));
        }
        self.check_delay()?;
        if self.max_hold.is_some_and(|span| span.is_zero()) {
            return Err(Error::new(
                ErrorKind::InvalidInput,
                "max_hold is zero, so the guard would be lost at once; use a longer time",
            ));
        }
        if self.mode == Mode::Shared && guarantees.sharing == Sharing::ExclusiveOnly {
            return Err(Error::new(
                ErrorKind::Unsupported,
                format!("{} does not support shared locks", store.describe()),
            ));
        }
        if matches!(self.mode, Mode::Permit(_)) && guarantees.counting == Counting::Unsupported {
            return Err(Error::new(
                ErrorKind::Unsupported,
                format!("{} does not support permits", store.describe()),
            ));
        }
        Ok(())
    }

    fn check_delay(&self) -> Result<(), Error> {
        let context = &self.client.context;
        let store = &context.store;
        if self.lock_delay.is_zero() {
            return Ok(());
        }
        if context.guarantees.expiry == Expiry::WithProcess {
            return Err(Error::new(
                ErrorKind::Unsupported,
                format!(
                    "lock_delay {:?} is not supported by {}, where a lock ends with its process",
                    self.lock_delay,
                    store.describe()
                ),
            ));
        }
        let longest = context.terms.ttl_max;
        // The TTL alone is within the bounds.
        if self.lock_delay > longest.saturating_sub(self.ttl) {
            return Err(Error::new(
                ErrorKind::InvalidInput,
                format!(
                    "TTL {:?} and lock_delay {:?} are too long; {} allows at most {longest:?} together",
                    self.ttl,
                    self.lock_delay,
                    store.describe()
                ),
            ));
        }
        Ok(())
    }
}
