use std::fmt;
use std::future::Future;
use std::time::Duration;

use super::announcer::Announcer;
use super::leader_election::check_value;
use crate::attempt::LostReason;
use crate::clock::BootInstant;
use crate::error::Error;
use crate::fence::Fence;
use crate::guard::{Ended, Guard};

/// To be the leader: until told otherwise, or until [`resign`](Self::resign). Made by
/// [`Election::campaign`](crate::Election::campaign).
///
/// It is a [`Guard`] that others can see. What holds for guards holds here: it says by itself when it is
/// lost, at its deadline at the latest and before anybody else leads; once lost it stays lost; and work
/// that is past its check may arrive late, so show the [`fence`](Self::fence) to what is led.
///
/// Dropping it resigns in the background, and leaves its announcement, which counts no more.
///
/// # Examples
///
/// ```
/// # pollster::block_on(async {
/// use std::time::Duration;
/// use leasehold::{Client, MemoryStore};
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

    /// The guard of the election's lock.
    pub fn guard(&self) -> &Guard {
        &self.guard
    }

    /// The fencing token: greater than that of every earlier leader.
    pub fn fence(&self) -> Fence {
        self.guard.fence()
    }

    /// The instant from which on this one does not lead unless its lease is renewed before; `None` where
    /// leadership has no end, as on the file store.
    pub fn deadline(&self) -> Option<BootInstant> {
        self.guard.deadline()
    }

    /// Whether this one leads at this instant. Once false, for ever false.
    pub fn is_valid(&self) -> bool {
        self.guard.is_valid()
    }

    /// As [`Guard::ensure`]: that this one leads for at least `span` from now, whatever happens.
    ///
    /// # Errors
    ///
    /// Those of [`Guard::ensure`].
    pub fn ensure(&self, span: Duration) -> Result<(), Error> {
        self.guard.ensure(span)
    }

    /// Resolves with the reason once the leadership is lost: at its deadline at the latest, by itself.
    ///
    /// # Cancel safety
    ///
    /// May be dropped at any time.
    pub async fn lost(&self) -> LostReason {
        self.guard.lost().await
    }

    /// Publishes `value` in place of what was published before. Observers never see an older value after a newer
    /// one.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::InvalidInput`](crate::ErrorKind::InvalidInput) for a value of more than
    /// [`Election::VALUE_MAX`](crate::Election::VALUE_MAX) bytes; nothing changes then.
    /// [`ErrorKind::Lost`](crate::ErrorKind::Lost) if this one does not lead any more: nothing was written where
    /// a later leader has been. With [`Effect::Unknown`](crate::Effect::Unknown) if the store did not
    /// decide: [`lead`](Self::lead) writes `value` again within a minute, and so may the caller.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future changes nothing but that the answer is not heard.
    pub async fn publish(&self, value: impl Into<String>) -> Result<(), Error> {
        let value = value.into();
        check_value(&value).map_err(|error| error.with_key(self.guard.key()))?;
        self.guard.ensure(Duration::ZERO)?;
        self.announcer.publish(&self.guard, value).await
    }

    /// Runs `body` while this one leads: cancels it (drops it) as soon as the leadership is lost. Meanwhile what
    /// was published is written again every minute, for servers that forgot it. When `body` has ended this
    /// one still leads, until it resigns or is dropped.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Lost`](crate::ErrorKind::Lost) if the leadership was lost before `body` ended; its output,
    /// if there was one, is dropped.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future drops `body`; this one still leads.
    ///
    /// # Examples
    ///
    /// ```
    /// # pollster::block_on(async {
    /// use leasehold::{Client, MemoryStore};
    ///
    /// let locks = Client::new(MemoryStore::new());
    /// let election = locks.election("scheduler");
    /// // Once more after each loss: the next term begins with a new fence.
    /// let jobs = loop {
    ///     let leadership = election.campaign().await?;
    ///     let term = leadership.lead(async {
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
    pub async fn lead<F: Future>(&self, body: F) -> Result<F::Output, Error> {
        let output = tokio::select! {
            biased;
            reason = self.lost() => return Err(self.guard.lost_error(reason)),
            output = body => output,
            never = self.announcer.repeat(&self.guard) => match never {},
        };
        self.guard.ensure(Duration::ZERO).map(|()| output)
    }

    /// Stops leading: takes the announcement back, frees the lock for the next one, and says how that ended.
    ///
    /// # Errors
    ///
    /// Those of [`Guard::release`].
    ///
    /// # Cancel safety
    ///
    /// Dropping the future changes nothing but that the answer is not heard: the lock is freed in the
    /// background.
    pub async fn resign(self) -> Result<Ended, Error> {
        let Self { guard, announcer } = self;
        announcer.withdraw(&guard).await;
        guard.release().await
    }

    /// The guard alone: it holds as before, and observers see what was published until it ends.
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
