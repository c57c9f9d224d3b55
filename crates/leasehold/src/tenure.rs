use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::attempt::LostReason;
use crate::claim::{Claim, Held, Mode};
use crate::clock::BootInstant;
use crate::fence::Fence;
use crate::lease::Lease;
use crate::telemetry::{HoldEnd, HoldMeter};

/// A granted claim and what is believed of its lease: shared by the guard, which asks, and the
/// keeper, which renews.
///
/// One mutex orders a deadline that passes against a renewal that moves it, so that no answer
/// "lost" is ever taken back.
#[derive(Debug)]
pub(crate) struct Tenure {
    pub(crate) id: u64,
    granted: Arc<Claim>,
    /// The claim in shared mode, from when that was wanted on: what was sent may have taken effect, so
    /// it is never taken back.
    downgraded: OnceLock<Arc<Claim>>,
    pub(crate) fence: Fence,
    handed_out: AtomicBool,
    lease: Mutex<Lease>,
    /// Made for whoever first asks to be told: most locks are given back before anybody does.
    lost: OnceLock<CancellationToken>,
    /// Its holder gave the lock back or up.
    is_over: AtomicBool,
    /// Cancelled when the holder gives the lock back or up. Made for the first watch.
    ended: OnceLock<CancellationToken>,
    deadlines: OnceLock<watch::Sender<Option<BootInstant>>>,
    /// How often its record was written.
    steps: AtomicU32,
    /// Of a lease that a guard holds.
    meter: OnceLock<HoldMeter>,
}

impl Tenure {
    pub(crate) fn new(id: u64, granted: Arc<Claim>, fence: Fence, lease: Lease) -> Self {
        Self {
            id,
            granted,
            downgraded: OnceLock::new(),
            fence,
            handed_out: AtomicBool::new(true),
            lease: Mutex::new(lease),
            lost: OnceLock::new(),
            is_over: AtomicBool::new(false),
            ended: OnceLock::new(),
            deadlines: OnceLock::new(),
            steps: AtomicU32::new(0),
            meter: OnceLock::new(),
        }
    }

    /// Has it told how long it is held, if no meter does so yet.
    pub(crate) fn measure(&self, meter: HoldMeter) {
        self.meter.get_or_init(|| meter);
    }

    /// Its holder gives it back or up at `now`: it is renewed no more.
    pub(crate) fn ended(&self, end: HoldEnd, now: BootInstant) {
        self.is_over.store(true, Ordering::Release);
        if let Some(ended) = self.ended.get() {
            ended.cancel();
        }
        let Some(meter) = self.meter.get() else {
            return;
        };
        // Of a copy: that nobody looked since its deadline passed does not make it a clean end.
        let verdict = self.lease().clone().check(now);
        match verdict {
            Ok(()) => meter.end(end, now),
            Err(reason) => meter.lose(reason, self.deadline(), now),
        }
    }

    /// Returns whether its holder gave it back or up.
    pub(crate) fn is_over(&self) -> bool {
        self.is_over.load(Ordering::Acquire)
    }

    /// The claim as it is to be renewed and released.
    pub(crate) fn claim(&self) -> &Arc<Claim> {
        self.downgraded.get().unwrap_or(&self.granted)
    }

    /// Whether the claim, which was renewed in `mode`, is in that mode still. Looks at no claim: where
    /// many leases are kept, to have it at hand takes longer than all else.
    pub(crate) fn is_still_in(&self, mode: Mode) -> bool {
        mode == Mode::Shared || self.downgraded.get().is_none()
    }

    pub(crate) fn granted_mode(&self) -> Mode {
        self.granted.mode
    }

    /// From now on the claim is the shared one.
    pub(crate) fn downgrade(&self) {
        self.downgraded
            .get_or_init(|| Arc::new((*self.granted).clone().with_mode(Mode::Shared)));
    }

    /// As it is where an earlier guard of this fence may have written: its steps are counted on from `steps`.
    pub(crate) fn with_steps_after(self, steps: u32) -> Self {
        self.steps.store(steps, Ordering::Relaxed);
        self
    }

    /// The number of the next write of its record, from 1 on, or from where it was told to go on.
    pub(crate) fn next_step(&self) -> u32 {
        self.steps.fetch_add(1, Ordering::Relaxed) + 1
    }

    pub(crate) fn renewing(&self) {
        self.lease().renewing();
    }

    pub(crate) fn held(&self) -> Held {
        Held {
            claim: Arc::clone(self.claim()),
            fence: self.fence,
        }
    }

    pub(crate) fn check(&self, now: BootInstant) -> Result<(), LostReason> {
        let verdict = self.lease().check(now);
        self.announce(verdict, now)
    }

    /// Whether the lock is to stay shut although its guard is given back: the guard was lost, so that
    /// work for it may still be under way.
    pub(crate) fn stays_shut(&self, now: BootInstant) -> bool {
        let was_used = self.handed_out.load(Ordering::Relaxed);
        !self.granted.delay.is_zero() && was_used && self.check(now).is_err()
    }

    /// Says whether a caller has the guard: until then there is no work for it.
    pub(crate) fn hand_out(&self, handed_out: bool) {
        self.handed_out.store(handed_out, Ordering::Relaxed);
    }

    pub(crate) fn renewed(&self, sent: BootInstant, now: BootInstant) -> Result<(), LostReason> {
        let verdict = self.lease().renewed(sent, now);
        if let (Ok(()), Some(deadlines)) = (verdict, self.deadlines.get()) {
            self.tell_deadline(deadlines);
        }
        self.announce(verdict, now)
    }

    pub(crate) fn doubtful(&self, now: BootInstant) -> Result<(), LostReason> {
        let verdict = self.lease().doubtful(now);
        self.announce(verdict, now)
    }

    pub(crate) fn lose(&self, reason: LostReason, now: BootInstant) -> LostReason {
        let reason = self.lease().lose(reason);
        self.tell_lost(reason, now);
        reason
    }

    pub(crate) fn deadline(&self) -> Option<BootInstant> {
        self.lease().deadline()
    }

    pub(crate) fn lease_deadline(&self) -> Option<BootInstant> {
        self.lease().lease_deadline()
    }

    pub(crate) fn hold_deadline(&self) -> Option<BootInstant> {
        self.lease().hold_deadline()
    }

    pub(crate) fn is_in_doubt(&self) -> bool {
        self.lease().is_in_doubt()
    }

    /// When it is to be looked at next: at its renewal or its deadline, whichever comes first.
    pub(crate) fn next_event(&self) -> Option<BootInstant> {
        let lease = self.lease();
        match (lease.renew_at(), lease.deadline()) {
            (Some(renewal), Some(deadline)) => Some(renewal.min(deadline)),
            (renewal, deadline) => renewal.or(deadline),
        }
    }

    pub(crate) fn is_due(&self, now: BootInstant) -> bool {
        self.lease().is_due(now)
    }

    pub(crate) fn lost_token(&self) -> &CancellationToken {
        let token = self.lost.get_or_init(CancellationToken::new);
        // After it was made: whoever lost the lease before found none to cancel.
        if self.lost_reason().is_some() {
            token.cancel();
        }
        token
    }

    pub(crate) fn lost_reason(&self) -> Option<LostReason> {
        self.lease().lost()
    }

    /// Only for a caller that has the guard: an end that came before the token was made does not cancel it.
    pub(crate) fn ended_token(&self) -> &CancellationToken {
        self.ended.get_or_init(CancellationToken::new)
    }

    pub(crate) fn deadlines(&self) -> watch::Receiver<Option<BootInstant>> {
        let deadlines = self.deadlines.get_or_init(|| watch::Sender::new(None));
        // After it was made: whoever moved the deadline before found nobody to tell.
        self.tell_deadline(deadlines);
        deadlines.subscribe()
    }

    /// Reads the deadline while nobody else tells one: none goes back.
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

    /// The lease is lost by now.
    fn tell_lost(&self, reason: LostReason, now: BootInstant) {
        if let Some(meter) = self.meter.get() {
            meter.lose(reason, self.deadline(), now);
        }
        if let Some(token) = self.lost.get() {
            token.cancel();
        }
    }

    fn lease(&self) -> MutexGuard<'_, Lease> {
        // No code that holds the mutex can panic half-way; its value is whole.
        self.lease.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
