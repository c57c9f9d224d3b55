mod fencing;
mod handles;
mod running;
mod watching;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use crate::env::clock::BootInstant;
use crate::lease::{ClientCore, HeldLease};
use crate::store::ReleaseReply;
use crate::types::{
    Error, ErrorKind, Fence, Key, LostReason, Mode, Owner, exact_span, forked, rough_span,
};

/// A held lock, until it is released, dropped or lost.
///
/// ```
/// # pollster::block_on(async {
/// use std::time::Duration;
/// use leasehold::{Client, memory::MemoryStore};
///
/// let locks = Client::new(MemoryStore::new());
/// let guard = locks.lock("report").acquire().await?;
/// guard.ensure(Duration::from_secs(5))?; // at least this long, or an error
/// println!("write with fence {}", guard.fence());
/// guard.release().await?;
/// # Ok::<(), leasehold::Error>(()) }).unwrap();
/// ```
///
/// The client renews the lease in the background. The guard is valid until its
/// [`deadline`](Self::deadline), which lies before the end of the lease at the store. The client measures
/// it on a clock that includes suspend, from before it sent each request. Once lost, a guard stays lost.
///
/// Validity describes this instant. Work that has already passed its check can still reach a resource
/// late; a resource that compares the [`fence`](Self::fence) refuses it.
///
/// Dropping the guard frees the lock in the background. Until the store has carried that out, `try_acquire` of the same client may
/// find the lock held; [`release`](Self::release) waits for it. In a forked child, every call returns `Forked` or
/// "not valid", and dropping the guard does nothing.
#[doc(alias = "lease")]
#[doc(alias = "mutex guard")]
#[must_use = "if unused the lock is freed at once; bind it to a name such as `_guard`, not to `_`"]
#[clippy::has_significant_drop]
pub struct Guard {
    pub(crate) hold: Hold,
}

/// A right to a lease. Dropping the last one of a lease frees the lock.
pub(crate) struct Hold {
    pub(crate) held_lease: Arc<HeldLease>,
    pub(crate) client: Arc<ClientCore>,
    has_left: bool,
}

/// The state of a [`Guard`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum GuardState {
    /// Valid, and renewed as needed.
    Held,
    /// Valid, but the last renewal failed. Unless one succeeds, the guard is lost at its deadline.
    InDoubt,
    /// No longer valid. Final.
    Lost(LostReason),
}

/// The outcome of a [`Guard::release`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ReleaseOutcome {
    /// The lease existed and is now freed.
    Released,
    /// The lease no longer existed. The release affected no other holder.
    WasLost,
    /// The lock was entered more than once and is still held. The last release frees it.
    StillHeld,
}

impl Guard {
    pub(crate) fn new(held_lease: Arc<HeldLease>, client: Arc<ClientCore>) -> Self {
        Self {
            hold: Hold::new(held_lease, client),
        }
    }

    /// Returns the lock's name.
    pub fn key(&self) -> &Key {
        &self.held_lease().request().key
    }

    /// Returns the owner of the lease at the store: the identity of the round that was granted.
    pub fn owner(&self) -> Owner {
        self.held_lease().request().owner
    }

    /// Returns the fencing token, which is greater than that of every earlier grant of this key.
    pub fn fence(&self) -> Fence {
        self.held_lease().fence
    }

    /// Returns the TTL that was asked for, without the [delay](crate::Lock::lock_delay).
    pub fn ttl(&self) -> Duration {
        self.held_lease().request().usable_ttl()
    }

    /// Returns the mode of the hold. From a call of [`downgrade`](Self::downgrade) on it is
    /// [`Mode::Shared`], whether or not the store confirmed that.
    pub fn mode(&self) -> Mode {
        self.held_lease().request().mode
    }

    /// Returns the instant from which the guard is invalid unless it is renewed before; `None` if the
    /// hold has no end, as on the file store.
    pub fn deadline(&self) -> Option<BootInstant> {
        self.held_lease().deadline()
    }

    /// Returns the time left until the deadline: zero once lost, [`Duration::MAX`] without a deadline.
    pub fn remaining(&self) -> Duration {
        let now = self.hold.client.now();
        match (self.check(now), self.deadline()) {
            (Err(_), _) => Duration::ZERO,
            (Ok(()), Some(deadline)) => deadline.since(now),
            (Ok(()), None) => Duration::MAX,
        }
    }

    /// Returns whether the lock is held at this instant. Once false, it stays false.
    #[doc(alias = "is_locked")]
    pub fn is_valid(&self) -> bool {
        self.check_now().is_ok()
    }

    /// Returns whether renewals are failing while the deadline still lies ahead.
    pub fn is_in_doubt(&self) -> bool {
        self.state() == GuardState::InDoubt
    }

    /// Returns the current state of the guard. [`GuardState::Lost`] is final.
    pub fn state(&self) -> GuardState {
        match self.check_now() {
            Err(reason) => GuardState::Lost(reason),
            Ok(()) if self.held_lease().is_in_doubt() => GuardState::InDoubt,
            Ok(()) => GuardState::Held,
        }
    }

    /// Checks that the lock is held for at least `span` from now, even if no further renewal succeeds.
    /// Call it before each step that must not happen without the lock.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Lost`] if the guard is not valid for at least `span`; [`ErrorKind::Forked`] in a
    /// forked child.
    pub fn ensure(&self, span: Duration) -> Result<(), Error> {
        let now = self.hold.client.now();
        if let Err(reason) = self.check(now) {
            return Err(self.lost_error(reason));
        }
        match self.deadline().map(|deadline| deadline.since(now)) {
            Some(left) if left < span => Err(Error::new(
                ErrorKind::Lost,
                format!(
                    "held for {} more unless renewed, but {} were asked for",
                    rough_span(left),
                    exact_span(span)
                ),
            )
            .with_key(self.key())),
            _ => Ok(()),
        }
    }

    /// Turns an exclusive lock into a shared one, and lets in the waiting readers. No writer can enter in
    /// between. The lease and its fence stay the same, and the deadline moves as with any renewal. The
    /// only way back is a release. All guards of the [same hold](Self::reenter) change their mode. Returns `Ok`
    /// at once if the lock was acquired in shared mode.
    ///
    /// Rely only on shared mode from the call on: readers may enter before the answer arrives. On a
    /// quorum, the lease is no longer restored on members that forgot it, as with any reader.
    ///
    /// # Errors
    ///
    /// With [`Effect::Unknown`](crate::Effect::Unknown) if the store did not decide. The guard is then
    /// valid and in doubt, and is renewed in shared mode from now on. Calling again is fine.
    /// [`ErrorKind::Lost`] if the guard is lost. [`ErrorKind::InvalidInput`] for a permit, and
    /// [`ErrorKind::Unsupported`] if the store has no shared mode; both change nothing.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future only loses the answer.
    ///
    /// # Examples
    ///
    /// ```
    /// # pollster::block_on(async {
    /// use leasehold::{Client, Mode, memory::MemoryStore};
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
        match self.held_lease().granted_mode() {
            Mode::Shared => return Ok(()),
            Mode::Permit(_) => {
                let text = "a permit cannot be made shared: only an exclusive lock can";
                return refused(ErrorKind::InvalidInput, text.to_owned());
            }
            Mode::Exclusive if !context.guarantees.shared => {
                let text = format!("{} does not support shared locks", context.store);
                return refused(ErrorKind::Unsupported, text);
            }
            Mode::Exclusive => {}
        }
        self.hold.client.check_running()?;
        self.held_lease().downgrade();
        self.renew().await
    }

    /// Renews the lease now. The client renews it in time by itself; this is for work that needs a known time from
    /// now on, and for a program that wants to know whether the store still answers. The deadline counts from the
    /// moment at which the renewal was sent. A renewal that is under way already is waited for, and none is sent.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Lost`] if the guard is lost. With [`Effect::Unknown`](crate::Effect::Unknown) if the store did not
    /// answer in time; the guard is then valid and in doubt until its deadline, and is renewed as before.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future only loses the answer.
    ///
    /// # Examples
    ///
    /// ```
    /// # pollster::block_on(async {
    /// use leasehold::{Client, memory::MemoryStore};
    ///
    /// let locks = Client::new(MemoryStore::new());
    /// let guard = locks.lock("import").acquire().await?;
    /// guard.renew().await?;
    /// # Ok::<(), leasehold::Error>(()) }).unwrap();
    /// ```
    #[doc(alias = "extend")]
    #[doc(alias = "reacquire")]
    pub async fn renew(&self) -> Result<(), Error> {
        if let Err(reason) = self.check_now() {
            return Err(self.lost_error(reason));
        }
        let outcome = self.hold.client.renew(self.held_lease()).await;
        match self.check_now() {
            Ok(()) => outcome,
            Err(reason) => Err(self.lost_error(reason)),
        }
    }

    /// Checks that the lock is held for at least `span` from now, as [`ensure`](Self::ensure) does, and renews the lease
    /// if that alone would be too short.
    ///
    /// # Errors
    ///
    /// The errors of [`renew`](Self::renew), and [`ErrorKind::Lost`] if the time is too short even after the renewal: a
    /// guard is valid for nine tenths of its TTL at most, and on ZooKeeper for half of its session.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future only loses the answer.
    ///
    /// # Examples
    ///
    /// ```
    /// # pollster::block_on(async {
    /// use std::time::Duration;
    /// use leasehold::{Client, memory::MemoryStore};
    ///
    /// let locks = Client::new(MemoryStore::new());
    /// let guard = locks.lock("import").ttl(Duration::from_secs(60)).acquire().await?;
    /// guard.ensure_renewed(Duration::from_secs(50)).await?; // the next batch takes less than that
    /// # Ok::<(), leasehold::Error>(()) }).unwrap();
    /// ```
    pub async fn ensure_renewed(&self, span: Duration) -> Result<(), Error> {
        if self.ensure(span).is_ok() {
            return Ok(());
        }
        self.renew().await?;
        self.ensure(span)
    }

    /// Enters the lock once more, and returns a further guard of the same hold. The lock is released when
    /// each of these guards was released or dropped, as with a reentrant lock. This sends nothing: all these
    /// guards have the same lease, fence, and deadline, and are lost together.
    ///
    /// A lock is reentrant only through its guard. A client that acquires a lock that it holds waits for
    /// itself.
    ///
    /// # Examples
    ///
    /// ```
    /// # pollster::block_on(async {
    /// use leasehold::{Client, ReleaseOutcome, memory::MemoryStore};
    ///
    /// let locks = Client::new(MemoryStore::new());
    /// let outer = locks.lock("deploy").acquire().await?;
    /// let inner = outer.reenter();
    /// assert_eq!(inner.release().await?, ReleaseOutcome::StillHeld);
    /// assert_eq!(outer.release().await?, ReleaseOutcome::Released);
    /// # Ok::<(), leasehold::Error>(()) }).unwrap();
    /// ```
    #[doc(alias = "share")]
    pub fn reenter(&self) -> Self {
        self.held_lease().enter();
        Self::new(
            Arc::clone(&self.hold.held_lease),
            Arc::clone(&self.hold.client),
        )
    }

    /// Frees the lock and returns the outcome. If the lock was [reentered](Self::reenter), only the last
    /// release frees it. A lost guard of a lock with a [delay](crate::Lock::lock_delay) frees nothing.
    ///
    /// # Errors
    ///
    /// With [`Effect::Unknown`](crate::Effect::Unknown) if the store did not answer within two thirds of the TTL, at most
    /// 4 s; after a loss, within 100 ms. The client repeats the release in the background, and the TTL frees the lock at the latest.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future only loses the answer: the lock is freed in the background.
    #[doc(alias = "unlock")]
    #[doc(alias = "free")]
    pub async fn release(self) -> Result<ReleaseOutcome, Error> {
        if self.hold.client.is_forked() {
            return Err(forked());
        }
        self.hold.release().await
    }

    pub(crate) fn check_now(&self) -> Result<(), LostReason> {
        self.check(self.hold.client.now())
    }

    fn check(&self, now: BootInstant) -> Result<(), LostReason> {
        if self.hold.client.is_forked() {
            return Err(LostReason::Forked);
        }
        self.held_lease().check(now)
    }

    pub(crate) fn lost_error(&self, reason: LostReason) -> Error {
        Error::lost(reason).with_key(self.key())
    }

    pub(crate) fn held_lease(&self) -> &Arc<HeldLease> {
        &self.hold.held_lease
    }
}

impl Hold {
    pub(crate) fn new(held_lease: Arc<HeldLease>, client: Arc<ClientCore>) -> Self {
        Self {
            held_lease,
            client,
            has_left: false,
        }
    }

    /// Frees the lock, unless others hold it. Must not be called in a forked child.
    pub(crate) async fn release(mut self) -> Result<ReleaseOutcome, Error> {
        if !self.leave() {
            return Ok(ReleaseOutcome::StillHeld);
        }
        // The client lives until the answer arrives: this hold may be the last to keep it alive.
        let reply = self.client.release(&self.held_lease).await;
        match reply.map_err(|error| error.with_key(&self.held_lease.request().key))? {
            ReleaseReply::Released => Ok(ReleaseOutcome::Released),
            ReleaseReply::WasLost => Ok(ReleaseOutcome::WasLost),
        }
    }

    /// Ends the hold. Returns whether it was the last one of its lease.
    pub(crate) fn leave(&mut self) -> bool {
        self.has_left = true;
        self.held_lease.leave()
    }
}

impl Drop for Hold {
    fn drop(&mut self) {
        if !self.has_left && !self.client.is_forked() && self.leave() {
            // Begin at once, so that a later attempt of this client comes after the release.
            self.client.release_in_background(&self.held_lease);
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
