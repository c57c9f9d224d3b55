use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock};

use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::validity::Lease;
use crate::env::clock::BootInstant;
use crate::env::locked;
use crate::store::{Held, LockRequest, Term};
use crate::telemetry::{HoldEnd, HoldMeter};
use crate::types::{Fence, Key, LostReason, Mode};

/// A granted request and the state of its lease. The guard, which queries it, and the renewer, which renews
/// it, share it.
///
/// One mutex orders a deadline that passes and a renewal that moves it, so that no answer "lost" is ever
/// revoked.
#[derive(Debug)]
pub(crate) struct HeldLease {
    pub(crate) id: u64,
    /// Its position among the [new leases](super::new_leases::NewLeases), while it is one.
    position: AtomicUsize,
    /// How many guards hold it.
    guards: AtomicUsize,
    granted: Arc<LockRequest>,
    /// The request in shared mode, from the call of `downgrade` on. It is never unset, because a request
    /// that was sent may have taken effect.
    downgraded: OnceLock<Arc<LockRequest>>,
    pub(crate) fence: Fence,
    handed_out: AtomicBool,
    lease: Mutex<Lease>,
    /// Created for the first caller that asks for it: most locks are released before that.
    lost: OnceLock<CancellationToken>,
    /// Whether the holder released the lock or gave it up.
    is_over: AtomicBool,
    /// Cancelled when the holder releases the lock or gives it up. Created for the first watch.
    ended: OnceLock<CancellationToken>,
    deadlines: OnceLock<watch::Sender<Option<BootInstant>>>,
    /// Whether clients waited for the lock at the last look.
    is_contended: AtomicBool,
    /// How often the record of the lock was written.
    steps: AtomicU32,
    /// Set for a lease that a guard holds.
    meter: OnceLock<HoldMeter>,
}

impl HeldLease {
    pub(crate) fn new(id: u64, granted: Arc<LockRequest>, fence: Fence, lease: Lease) -> Self {
        Self {
            id,
            position: AtomicUsize::new(usize::MAX),
            guards: AtomicUsize::new(1),
            granted,
            downgraded: OnceLock::new(),
            fence,
            handed_out: AtomicBool::new(true),
            lease: Mutex::new(lease),
            lost: OnceLock::new(),
            is_over: AtomicBool::new(false),
            ended: OnceLock::new(),
            deadlines: OnceLock::new(),
            is_contended: AtomicBool::new(false),
            steps: AtomicU32::new(0),
            meter: OnceLock::new(),
        }
    }

    /// Only under the mutex of the new leases.
    pub(super) fn set_position(&self, position: usize) {
        self.position.store(position, Ordering::Relaxed);
    }

    pub(super) fn position(&self) -> usize {
        self.position.load(Ordering::Relaxed)
    }

    /// Counts another guard.
    pub(crate) fn enter(&self) {
        self.guards.fetch_add(1, Ordering::Relaxed);
    }

    /// Ends a guard. Returns whether it was the last one.
    pub(crate) fn leave(&self) -> bool {
        // What other guards did comes before the release.
        self.guards.fetch_sub(1, Ordering::AcqRel) == 1
    }

    /// Returns whether the caller has the only guard.
    pub(crate) fn has_one_guard(&self) -> bool {
        self.guards.load(Ordering::Acquire) == 1
    }

    /// Starts to measure how long the lease is held, unless a meter already does.
    pub(crate) fn measure(&self, meter: HoldMeter) {
        self.meter.get_or_init(|| meter);
    }

    /// The same, for a lease that no other thread sees yet.
    pub(crate) fn measured_by(mut self, meter: HoldMeter) -> Self {
        self.meter = meter.into();
        self
    }

    /// Records that the holder releases the lease or gives it up at `now`. Its renewals end.
    pub(crate) fn ended(&self, end: HoldEnd, now: BootInstant) {
        self.is_over.store(true, Ordering::Release);
        if let Some(ended) = self.ended.get() {
            ended.cancel();
        }
        let Some(meter) = self.meter.get() else {
            return;
        };
        // Checks a copy, to change nothing. A deadline that passed unnoticed does not make this a clean
        // end.
        let verdict = locked(&self.lease).clone().check(now);
        match verdict {
            Ok(()) => meter.end(self.lock(), end, now),
            Err(reason) => meter.lose(self.lock(), reason, self.deadline(), now),
        }
    }

    /// Returns whether the holder released the lock or gave it up.
    pub(crate) fn is_over(&self) -> bool {
        self.is_over.load(Ordering::Acquire)
    }

    /// Returns the request for renewals and releases.
    pub(crate) fn request(&self) -> &Arc<LockRequest> {
        self.downgraded.get().unwrap_or(&self.granted)
    }

    /// Returns the lock, and the fence that identifies this lease of it.
    pub(crate) fn lock(&self) -> (&Key, Fence) {
        (&self.granted.key, self.fence)
    }

    /// Records how many clients wait for the lock. Returns whether some do, and none did at the look before.
    pub(crate) fn contended(&self, waiters: usize) -> bool {
        let is_contended = waiters > 0;
        !self.is_contended.swap(is_contended, Ordering::Relaxed) && is_contended
    }

    /// Returns whether the lease, which was renewed in `mode`, is still in that mode. It does not read
    /// the request: with many leases, loading it from memory takes longer than all the rest.
    pub(crate) fn is_still_in(&self, mode: Mode) -> bool {
        mode == Mode::Shared || self.downgraded.get().is_none()
    }

    pub(crate) fn granted_mode(&self) -> Mode {
        self.granted.mode
    }

    /// Switches to the shared request.
    pub(crate) fn downgrade(&self) {
        self.downgraded
            .get_or_init(|| Arc::new((*self.granted).clone().with_mode(Mode::Shared)));
    }

    /// Continues the steps after `steps`, because an earlier guard of this fence may have written.
    pub(crate) fn with_steps_after(self, steps: u32) -> Self {
        self.steps.store(steps, Ordering::Relaxed);
        self
    }

    /// Returns the number of the next write of its record, from 1 on or after the steps that it was
    /// given.
    pub(crate) fn next_step(&self) -> u32 {
        self.steps.fetch_add(1, Ordering::Relaxed) + 1
    }

    pub(crate) fn renewing(&self) {
        locked(&self.lease).renewing();
    }

    pub(crate) fn held(&self) -> Held {
        Held {
            request: Arc::clone(self.request()),
            fence: self.fence,
        }
    }

    pub(crate) fn check(&self, now: BootInstant) -> Result<(), LostReason> {
        let verdict = locked(&self.lease).check(now);
        self.announce(verdict, now)
    }

    /// Returns whether the lock stays unavailable although its guard is released: the guard was lost, so
    /// its work may still be running.
    pub(crate) fn stays_closed(&self, now: BootInstant) -> bool {
        let was_used = self.handed_out.load(Ordering::Relaxed);
        !self.granted.delay.is_zero() && was_used && self.check(now).is_err()
    }

    /// Sets whether a caller has the guard. Until then, no work uses the lock.
    pub(crate) fn hand_out(&self, handed_out: bool) {
        self.handed_out.store(handed_out, Ordering::Relaxed);
    }

    pub(crate) fn renewed(&self, term: Term, now: BootInstant) -> Result<(), LostReason> {
        let verdict = locked(&self.lease).renewed(term, now);
        if let (Ok(()), Some(deadlines)) = (verdict, self.deadlines.get()) {
            self.tell_deadline(deadlines);
        }
        self.announce(verdict, now)
    }

    pub(crate) fn uncertain(&self, now: BootInstant) -> Result<(), LostReason> {
        let verdict = locked(&self.lease).uncertain(now);
        self.announce(verdict, now)
    }

    pub(crate) fn lose(&self, reason: LostReason, now: BootInstant) -> LostReason {
        let reason = locked(&self.lease).lose(reason);
        self.tell_lost(reason, now);
        reason
    }

    pub(crate) fn deadline(&self) -> Option<BootInstant> {
        locked(&self.lease).deadline()
    }

    pub(crate) fn hold_deadline(&self) -> Option<BootInstant> {
        locked(&self.lease).hold_deadline()
    }

    pub(crate) fn is_in_doubt(&self) -> bool {
        locked(&self.lease).is_in_doubt()
    }

    /// Returns when to check the lease next: at its renewal or its deadline, whichever comes first.
    pub(crate) fn next_event(&self) -> Option<BootInstant> {
        let lease = locked(&self.lease);
        match (lease.renew_at(), lease.deadline()) {
            (Some(renewal), Some(deadline)) => Some(renewal.min(deadline)),
            (renewal, deadline) => renewal.or(deadline),
        }
    }

    pub(crate) fn is_due(&self, now: BootInstant) -> bool {
        locked(&self.lease).is_due(now)
    }

    pub(crate) fn lost_token(&self) -> &CancellationToken {
        let token = self.lost.get_or_init(CancellationToken::new);
        // After the token exists: a loss before that found no token to cancel.
        if self.lost_reason().is_some() {
            token.cancel();
        }
        token
    }

    pub(crate) fn lost_reason(&self) -> Option<LostReason> {
        locked(&self.lease).lost()
    }

    /// Only for a caller that has the guard: an end before the token was created does not cancel it.
    pub(crate) fn ended_token(&self) -> &CancellationToken {
        self.ended.get_or_init(CancellationToken::new)
    }

    pub(crate) fn deadlines(&self) -> watch::Receiver<Option<BootInstant>> {
        let deadlines = self.deadlines.get_or_init(|| watch::Sender::new(None));
        // After the channel exists: a deadline that moved before that found no channel.
        self.tell_deadline(deadlines);
        deadlines.subscribe()
    }

    /// Reads the deadline while it holds the channel's lock, so that the sent deadline never moves back.
    fn tell_deadline(&self, deadlines: &watch::Sender<Option<BootInstant>>) {
        deadlines.send_modify(|deadline| *deadline = self.deadline());
    }

    fn announce(
        &self,
        verdict: Result<(), LostReason>,
        now: BootInstant,
    ) -> Result<(), LostReason> {
        if let Err(reason) = verdict {
            self.tell_lost(reason, now);
        }
        verdict
    }

    /// Reports that the lease is lost.
    fn tell_lost(&self, reason: LostReason, now: BootInstant) {
        if let Some(meter) = self.meter.get() {
            meter.lose(self.lock(), reason, self.deadline(), now);
        }
        if let Some(token) = self.lost.get() {
            token.cancel();
        }
    }
}
