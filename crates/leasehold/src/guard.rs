use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use crate::attempt::{LostReason, Release};
use crate::background::Running;
use crate::claim::Mode;
use crate::client_core::ClientCore;
use crate::clock::BootInstant;
use crate::error::{Error, ErrorKind};
use crate::fence::Fence;
use crate::guarantees::Sharing;
use crate::key::Key;
use crate::owner::Owner;
use crate::tenure::Tenure;

/// A lock that is held, until it is released, dropped or lost.
///
/// The client's keeper renews the lease behind it. The guard is valid until its
/// [`deadline`](Self::deadline), which lies before the end of the lease at the store and is
/// measured by the client on a clock that counts suspend, from before each request was sent. Once
/// lost, a guard stays lost.
///
/// Validity is a statement about this instant. Work that is already past its check can still reach
/// a resource late; a resource that compares the [`fence`](Self::fence) refuses it.
///
/// Dropping the guard frees the lock in the background. In a forked child every call answers
/// `Forked` or "not valid", and dropping does nothing.
///
/// # Examples
///
/// ```
/// # pollster::block_on(async {
/// use std::time::Duration;
/// use leasehold::{Client, MemoryStore};
///
/// let locks = Client::new(MemoryStore::new());
/// let guard = locks.lock("report").acquire().await?;
/// guard.ensure(Duration::from_secs(5))?; // at least this long, or an error
/// println!("write with fence {}", guard.fence());
/// guard.release().await?;
/// # Ok::<(), leasehold::Error>(()) }).unwrap();
/// ```
#[must_use = "if unused the lock is freed at once"]
#[clippy::has_significant_drop]
pub struct Guard {
    /// One more share of the same hold; the last one frees it.
    pub(crate) hold: Arc<Hold>,
}

/// The hold that all shares of one guard have in common.
pub(crate) struct Hold {
    pub(crate) tenure: Arc<Tenure>,
    pub(crate) client: Arc<ClientCore>,
    pub(crate) freed: bool,
}

/// How a [`Guard`] stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum GuardState {
    /// Valid, and renewed as far as need be.
    Held,
    /// Valid, but the last renewal failed: unless one succeeds, the guard is lost at its deadline.
    InDoubt,
    /// Not valid any more, for ever.
    Lost(LostReason),
}

/// How a [`Guard::release`] ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Ended {
    /// The lease stood, and is freed.
    Released,
    /// The lease did not stand any more; nobody else was touched.
    WasLost,
    /// Other shares of the guard still hold the lock.
    StillShared,
}

impl Guard {
    pub(crate) fn new(tenure: Arc<Tenure>, client: Arc<ClientCore>) -> Self {
        Self {
            hold: Arc::new(Hold {
                tenure,
                client,
                freed: false,
            }),
        }
    }

    /// The lock's name.
    pub fn key(&self) -> &Key {
        &self.tenure().claim().key
    }

    /// Returns the owner of the lease at the store: the identity of the wait that was granted.
    pub fn owner(&self) -> Owner {
        self.tenure().claim().owner
    }

    /// The fencing token: greater than that of every earlier grant of this key.
    pub fn fence(&self) -> Fence {
        self.tenure().fence
    }

    /// How the lock is held. From the call of [`downgrade`](Self::downgrade) on it is
    /// [`Mode::Shared`], whatever came of that.
    pub fn mode(&self) -> Mode {
        self.tenure().claim().mode
    }

    /// The instant from which on the guard is not valid unless it is renewed before; `None` where
    /// the hold has no end, as on the file store.
    pub fn deadline(&self) -> Option<BootInstant> {
        self.tenure().deadline()
    }

    /// The time left until the deadline: zero once lost, [`Duration::MAX`] where there is none.
    pub fn remaining(&self) -> Duration {
        let now = self.hold.client.now();
        match (self.check(now), self.deadline()) {
            (Err(_), _) => Duration::ZERO,
            (Ok(()), Some(deadline)) => deadline.since(now),
            (Ok(()), None) => Duration::MAX,
        }
    }

    /// Whether the lock is held at this instant. Once false, for ever false.
    pub fn is_valid(&self) -> bool {
        self.check_now().is_ok()
    }

    /// Whether renewals are failing while the deadline still lies ahead.
    pub fn is_in_doubt(&self) -> bool {
        self.state() == GuardState::InDoubt
    }

    /// How the guard stands at this instant. [`GuardState::Lost`] is final.
    pub fn state(&self) -> GuardState {
        match self.check_now() {
            Err(reason) => GuardState::Lost(reason),
            Ok(()) if self.tenure().is_in_doubt() => GuardState::InDoubt,
            Ok(()) => GuardState::Held,
        }
    }

    /// Makes sure that the lock is held for at least `span` from now, even if no renewal succeeds
    /// any more. Call it before each step that must not happen without the lock.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Lost`] if the guard is not valid, or not for so long; [`ErrorKind::Forked`] in
    /// a forked child.
    pub fn ensure(&self, span: Duration) -> Result<(), Error> {
        let now = self.hold.client.now();
        if let Err(reason) = self.check(now) {
            return Err(self.lost_error(reason));
        }
        match self.deadline().map(|deadline| deadline.since(now)) {
            Some(left) if left < span => Err(Error::new(
                ErrorKind::Lost,
                format!("held for {left:.1?} more unless renewed, but {span:?} were asked for"),
            )
            .with_key(self.key())),
            _ => Ok(()),
        }
    }

    /// Resolves with the reason once the guard is lost: at its deadline at the latest, by itself.
    /// In a forked child at once.
    ///
    /// # Cancel safety
    ///
    /// May be dropped at any time.
    pub async fn lost(&self) -> LostReason {
        loop {
            if let Err(reason) = self.check_now() {
                return reason;
            }
            self.tenure().lost_token().cancelled().await;
        }
    }

    /// A token that is cancelled once the guard is lost, for handing to the work it protects. It
    /// outlives the guard, and a release does not cancel it.
    pub fn lost_token(&self) -> CancellationToken {
        self.tenure().lost_token().clone()
    }

    /// Resolves with the deadline as soon as it is another than `from`; then again at each
    /// renewal. For passing it on to somebody who must keep it too.
    ///
    /// # Cancel safety
    ///
    /// May be dropped at any time; the next call sees whatever was missed.
    pub async fn deadline_moved(&self, from: Option<BootInstant>) -> Option<BootInstant> {
        let mut deadlines = self.tenure().deadlines();
        match deadlines.wait_for(|deadline| *deadline != from).await {
            Ok(deadline) => *deadline,
            // The sender lives in the tenure, which this guard keeps.
            Err(_) => self.deadline(),
        }
    }

    /// Turns an exclusive lock into a shared one, and lets in the readers that wait. At no moment could
    /// a writer enter. The same lease goes on, with its fence, and its deadline moves as with any
    /// renewal; there is no way back but to release. All [shares](Self::share) of the guard have the
    /// same mode. `Ok` at once where it is shared already.
    ///
    /// Count on shared mode alone from the call on: readers may be in before the answer is here. On a
    /// quorum the lease, like that of any reader, is not put back any more where members forgot it.
    ///
    /// # Errors
    ///
    /// With [`Effect::Unknown`](crate::Effect::Unknown) if the store did not decide: the guard is valid
    /// and in doubt, it is renewed in shared mode from now on, and calling again is fine.
    /// [`ErrorKind::Lost`] if the guard is lost. [`ErrorKind::InvalidInput`] for a permit,
    /// [`ErrorKind::Unsupported`] where there is no shared mode; both change nothing.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future changes nothing but that the answer is not heard.
    ///
    /// # Examples
    ///
    /// ```
    /// # pollster::block_on(async {
    /// use leasehold::{Client, MemoryStore, Mode};
    ///
    /// let locks = Client::new(MemoryStore::new());
    /// let guard = locks.lock("index").acquire().await?;
    /// // write it, then let others read while we do
    /// guard.downgrade().await?;
    /// let reader = locks.lock("index").mode(Mode::Shared).acquire().await?;
    /// # drop((guard, reader));
    /// # Ok::<(), leasehold::Error>(()) }).unwrap();
    /// ```
    pub async fn downgrade(&self) -> Result<(), Error> {
        if let Err(reason) = self.check_now() {
            return Err(self.lost_error(reason));
        }
        let context = &self.hold.client.context;
        let refused = |kind, text| Err(Error::new(kind, text).with_key(self.key()));
        match self.tenure().granted_mode() {
            Mode::Shared => return Ok(()),
            Mode::Permit(_) => {
                let text = "a permit cannot be made shared: only an exclusive lock can";
                return refused(ErrorKind::InvalidInput, text.to_owned());
            }
            Mode::Exclusive if context.guarantees.sharing == Sharing::ExclusiveOnly => {
                let text = format!("{} does not support shared locks", context.store.describe());
                return refused(ErrorKind::Unsupported, text);
            }
            Mode::Exclusive => {}
        }
        let outcome = self.hold.client.downgrade(self.tenure()).await;
        match self.check_now() {
            Ok(()) => outcome,
            Err(reason) => Err(self.lost_error(reason)),
        }
    }

    /// One more guard of the same hold: explicit reentrancy. The lock is freed with the last one.
    pub fn share(&self) -> Self {
        Self {
            hold: Arc::clone(&self.hold),
        }
    }

    /// Frees the lock and says how that ended. Of several shares, the last one frees. A lost guard of a
    /// lock with a [delay](crate::Lock::lock_delay) frees nothing.
    ///
    /// # Errors
    ///
    /// With [`Effect::Unknown`](crate::Effect::Unknown) if the store did not answer; it goes on
    /// trying in the background, and at the latest the TTL frees the lock.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future changes nothing but that the answer is not heard: the lock is freed in
    /// the background.
    pub async fn release(self) -> Result<Ended, Error> {
        if self.hold.client.is_forked() {
            return Err(forked());
        }
        let Some(mut hold) = Arc::into_inner(self.hold) else {
            return Ok(Ended::StillShared);
        };
        hold.freed = true;
        // Until the answer is there the client must live: it may be the last one to hold it.
        match hold.client.free(&hold.tenure)?.await? {
            Release::Released => Ok(Ended::Released),
            Release::WasLost => Ok(Ended::WasLost),
        }
    }

    pub(crate) fn check_now(&self) -> Result<(), LostReason> {
        self.check(self.hold.client.now())
    }

    fn check(&self, now: BootInstant) -> Result<(), LostReason> {
        if self.hold.client.is_forked() {
            return Err(LostReason::Forked);
        }
        self.tenure().check(now)
    }

    pub(crate) fn lost_error(&self, reason: LostReason) -> Error {
        if reason == LostReason::Forked {
            return forked();
        }
        Error::new(ErrorKind::Lost, format!("lost: {reason}")).with_key(self.key())
    }

    pub(crate) fn tenure(&self) -> &Tenure {
        &self.hold.tenure
    }
}

pub(crate) fn forked() -> Error {
    Error::new(
        ErrorKind::Forked,
        "this process is a forked child: open a client of its own after the fork",
    )
}

impl Drop for Hold {
    fn drop(&mut self) {
        if !self.freed && !self.client.is_forked() {
            // A later attempt of this client comes after it.
            let _ = self.client.free(&self.tenure).map(Running::begin);
        }
    }
}

impl fmt::Debug for Guard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Guard")
            .field("key", self.key())
            .field("fence", &self.fence())
            .field("valid", &self.is_valid())
            .field("deadline", &self.deadline())
            .finish_non_exhaustive()
    }
}
