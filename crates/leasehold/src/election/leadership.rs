use std::convert::Infallible;
use std::fmt;
use std::future::Future;
use std::time::Duration;

use super::announcement::check_value;
use super::announcer::Announcer;
use crate::env::clock::BootInstant;
use crate::guard::{Guard, ReleaseOutcome};
use crate::types::{Error, Fence, LostReason};

/// The leadership of an election, which lasts until it is lost or [resigned](Self::resign). Returned by
/// [`Election::campaign`](crate::election::Election::campaign).
///
/// It is a [`Guard`] that others can see, and gives the same promises. It reports its own loss, at its
/// deadline at the latest and before another client leads. Once lost it stays lost. Work that is already
/// past its check may still arrive late, so show the [`fence`](Self::fence) to every resource that the
/// leader acts on.
///
/// Dropping it resigns in the background. Its announcement stays in the store, but no longer counts.
///
/// # Examples
///
/// ```
/// # pollster::block_on(async {
/// use std::time::Duration;
/// use leasehold::{Client, memory::MemoryStore};
///
/// let locks = Client::new(MemoryStore::new());
/// let leadership = locks.election("scheduler").campaign().await?;
/// leadership.ensure(Duration::from_secs(2))?; // before a step that only the leader may take
/// println!("schedule with fence {}", leadership.fence());
/// leadership.publish("took over, 3 jobs").await?;
/// leadership.resign().await?;
/// # Ok::<(), leasehold::Error>(()) }).unwrap();
/// ```
#[must_use = "if unused the leadership ends at once"]
#[clippy::has_significant_drop]
pub struct Leadership {
    guard: Guard,
    announcer: Announcer,
}

impl Leadership {
    pub(super) fn new(guard: Guard, announcer: Announcer) -> Self {
        Self { guard, announcer }
    }

    /// Returns the guard of the election's lock.
    pub fn guard(&self) -> &Guard {
        &self.guard
    }

    /// Returns the fencing token, which is greater than that of every earlier leader.
    pub fn fence(&self) -> Fence {
        self.guard.fence()
    }

    /// Returns the instant at which this leadership ends unless its lease is renewed before; `None` if it
    /// has no end, as on the file store.
    pub fn deadline(&self) -> Option<BootInstant> {
        self.guard.deadline()
    }

    /// Returns whether this client leads at this instant. Once false, it stays false.
    pub fn is_valid(&self) -> bool {
        self.guard.is_valid()
    }

    /// Checks, as [`Guard::ensure`] does, that this client leads for at least `span` from now even if every
    /// renewal fails.
    ///
    /// # Errors
    ///
    /// The errors of [`Guard::ensure`].
    pub fn ensure(&self, span: Duration) -> Result<(), Error> {
        self.guard.ensure(span)
    }

    /// Resolves with the reason once the leadership is lost, as [`Guard::lost`] does.
    ///
    /// # Cancel safety
    ///
    /// May be dropped at any time.
    pub fn lost(&self) -> impl Future<Output = LostReason> + Send + use<> {
        self.guard.lost()
    }

    /// Publishes `value` in place of the previous value. An observer never sees an older value after a
    /// newer one.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::InvalidInput`](crate::ErrorKind::InvalidInput) for a value of more than
    /// [`Election::VALUE_MAX`](crate::election::Election::VALUE_MAX) bytes; nothing changes then.
    /// [`ErrorKind::Lost`](crate::ErrorKind::Lost) if this client no longer leads: it wrote nothing if a
    /// later leader has been announced. The error has [`Effect::Unknown`](crate::Effect::Unknown) if the
    /// store may have written `value` or not. [`run`](Self::run) then writes it again within a minute,
    /// and so may the caller.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future only discards the answer.
    pub async fn publish(&self, value: impl Into<String>) -> Result<(), Error> {
        let value = value.into();
        check_value(&value).map_err(|error| error.with_key(self.guard.key()))?;
        self.guard.ensure(Duration::ZERO)?;
        self.announcer.publish(&self.guard, value).await
    }

    /// Runs `body` while this client leads, and then resigns. `body` gets the leadership, and is dropped as soon as the
    /// leadership is lost. Meanwhile the announcement is [kept](Self::keep_announced).
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Lost`](crate::ErrorKind::Lost) if the leadership was lost before `body` ended, with the
    /// [reason](Error::lost_reason); the output, if there was one, is dropped. A release that fails afterwards is logged, not
    /// returned.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future drops `body` first, then resigns in the background.
    ///
    /// # Examples
    ///
    /// ```
    /// # pollster::block_on(async {
    /// use leasehold::{Client, memory::MemoryStore};
    ///
    /// let locks = Client::new(MemoryStore::new());
    /// let election = locks.election("scheduler");
    /// // Once more after each loss: the next term begins with a new fence.
    /// let jobs = loop {
    ///     let term = election.campaign().await?.run(async |leadership| {
    ///         leadership.publish("3 jobs").await?;
    ///         Ok::<_, leasehold::Error>(3)
    ///     });
    ///     match term.await {
    ///         Ok(jobs) => break jobs?,
    ///         Err(error) => println!("leads no more: {error}"),
    ///     }
    /// };
    /// assert_eq!(jobs, 3);
    /// # Ok::<(), leasehold::Error>(()) }).unwrap();
    /// ```
    pub async fn run<T>(self, body: impl AsyncFnOnce(&Self) -> T) -> Result<T, Error> {
        let output = self.keep_during(body(&self)).await;
        self.end(output).await
    }

    /// Runs `body` until it ends or the leadership is lost, and keeps the announcement meanwhile.
    pub(super) async fn keep_during<F: Future>(&self, body: F) -> Result<F::Output, Error> {
        let leading = async {
            tokio::select! {
                biased;
                output = body => output,
                never = self.keep_announced() => match never {},
            }
        };
        self.guard.until_lost(leading).await
    }

    /// Resigns after a body. Returns its output, if this client led until now.
    pub(super) async fn end<T>(self, output: Result<T, Error>) -> Result<T, Error> {
        let output = output.and_then(|output| self.ensure(Duration::ZERO).map(|()| output));
        let Self { guard, announcer } = self;
        announcer.withdraw(&guard).await;
        guard.release_quietly().await;
        output
    }

    /// Writes the announcement again every minute, for servers that lost it. Never returns. For code that leads without
    /// [`run`](Self::run).
    ///
    /// # Cancel safety
    ///
    /// May be dropped at any time.
    pub async fn keep_announced(&self) -> Infallible {
        self.announcer.repeat(&self.guard).await
    }

    /// Resigns: withdraws the announcement, releases the lock for the next leader, and returns the outcome
    /// of the release.
    ///
    /// # Errors
    ///
    /// The errors of [`Guard::release`].
    ///
    /// # Cancel safety
    ///
    /// Dropping the future only discards the answer: the lock is released in the background.
    #[doc(alias = "step down")]
    #[doc(alias = "abdicate")]
    pub async fn resign(self) -> Result<ReleaseOutcome, Error> {
        let Self { guard, announcer } = self;
        announcer.withdraw(&guard).await;
        guard.release().await
    }

    /// Returns the guard alone. It is as valid as before, and observers see what was published until it
    /// ends.
    pub fn into_guard(self) -> Guard {
        self.guard
    }
}

impl fmt::Debug for Leadership {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Leadership")
            .field("guard", &self.guard)
            .finish_non_exhaustive()
    }
}
