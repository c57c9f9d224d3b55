//! What a client may believe of one lease: pure arithmetic over instants that are handed in.

use std::time::Duration;

use crate::attempt::LostReason;
use crate::clock::BootInstant;

/// How long a lease lives, and how long it may be kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LeaseTimes {
    pub(crate) ttl: Duration,
    /// By how much the deadline lies before the lease's end; `None` where leases do not expire.
    pub(crate) margin: Option<Duration>,
    /// How long the guard may be held in all, counted from the request that was granted.
    pub(crate) max_hold: Option<Duration>,
}

impl LeaseTimes {
    /// From one renewal to the next.
    pub(crate) fn beat(&self) -> Duration {
        self.ttl / 3
    }

    /// By how much the first renewal may come before the beat: leases taken together then fall on
    /// most of a beat, and no second of it gets more than 10/7 of its share. The rest of it is left to
    /// locks that are given back soon and need no renewal.
    pub(crate) fn spread(&self) -> Duration {
        self.beat().saturating_sub(self.ttl / 10)
    }

    /// A renewal may be sent so much before it is due, together with others.
    pub(crate) fn early(&self) -> Duration {
        (self.ttl / 30).min(EARLY_MAX)
    }
}

/// Held until a deadline that only moves forward, then lost for ever.
///
/// Every deadline counts from before the request that earned it was *sent*: the store cannot have
/// begun to count earlier.
#[derive(Clone, Debug)]
pub(crate) struct Lease {
    times: LeaseTimes,
    /// When the store may let it expire, less the margin.
    lease_deadline: Option<BootInstant>,
    hold_deadline: Option<BootInstant>,
    /// When a renewal is due if all goes well. All are whole beats apart: leases that are sent in one
    /// message, or were in doubt at one time, would otherwise stay together for ever.
    next_beat: BootInstant,
    renew_at: Option<BootInstant>,
    /// A renewal is under way.
    renewing: bool,
    /// Its deadline was earned by a TTL that is not known here.
    resumed: bool,
    state: State,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Held,
    /// The last renewal failed; the deadline still lies ahead.
    InDoubt,
    Lost(LostReason),
}

impl Lease {
    /// A lease granted to a request that was sent at `sent`. `spread`, random and at most
    /// [`LeaseTimes::spread`], brings the first renewal forward, so that leases taken together are
    /// not renewed together.
    pub(crate) fn granted(times: LeaseTimes, sent: BootInstant, spread: Duration) -> Self {
        let next_beat = sent + times.beat().saturating_sub(spread);
        let mut lease = Self {
            times,
            lease_deadline: times
                .margin
                .map(|margin| sent + times.ttl.saturating_sub(margin)),
            hold_deadline: times.max_hold.map(|span| sent + span),
            next_beat,
            renew_at: None,
            renewing: false,
            resumed: false,
            state: State::Held,
        };
        lease.plan_renewal(next_beat);
        lease
    }

    /// A lease that somebody else was granted, whose deadline is known; nothing was renewed here yet.
    pub(crate) fn resumed(
        times: LeaseTimes,
        deadline: BootInstant,
        hold_deadline: Option<BootInstant>,
    ) -> Self {
        // Whole beats before its deadline: that is as good a beat as any, and has begun.
        let beat = u64::try_from(times.beat().as_nanos()).unwrap_or(u64::MAX);
        Self {
            times,
            lease_deadline: Some(deadline),
            hold_deadline,
            next_beat: BootInstant::from_nanos(deadline.as_nanos() % beat.max(1)),
            renew_at: None,
            renewing: false,
            resumed: true,
            state: State::Held,
        }
    }

    /// When the store may let it expire, less the margin, however long it may be held.
    pub(crate) fn lease_deadline(&self) -> Option<BootInstant> {
        self.lease_deadline
    }

    /// The end of the whole hold, however often it is renewed.
    pub(crate) fn hold_deadline(&self) -> Option<BootInstant> {
        self.hold_deadline
    }

    /// The instant from which on the guard is not valid; `None` where it has no end.
    pub(crate) fn deadline(&self) -> Option<BootInstant> {
        match (self.lease_deadline, self.hold_deadline) {
            (Some(lease), Some(hold)) => Some(lease.min(hold)),
            (lease, hold) => lease.or(hold),
        }
    }

    /// Whether the guard is valid at `now`. Once this said no, it never says yes again.
    pub(crate) fn check(&mut self, now: BootInstant) -> Result<(), LostReason> {
        if let State::Lost(reason) = self.state {
            return Err(reason);
        }
        if self.hold_deadline.is_some_and(|end| now >= end) {
            return Err(self.lose(LostReason::MaxHold));
        }
        if self.lease_deadline.is_some_and(|end| now >= end) {
            return Err(self.lose(self.reason_of_expiry(now)));
        }
        Ok(())
    }

    fn reason_of_expiry(&self, now: BootInstant) -> LostReason {
        let overdue = self.renew_at.is_some_and(|due| due < now);
        match self.state {
            State::InDoubt => LostReason::Unreachable,
            // Nobody has even asked: nothing ran here between the renewal's time and now.
            State::Held if overdue && !self.renewing => LostReason::StoodStill,
            _ => LostReason::Expired,
        }
    }

    /// A renewal is sent.
    pub(crate) fn renewing(&mut self) {
        self.renewing = true;
    }

    /// A renewal sent at `sent` was confirmed. It moves the deadline only if the old one has not
    /// passed: in between somebody else may have held the lock.
    pub(crate) fn renewed(
        &mut self,
        sent: BootInstant,
        now: BootInstant,
    ) -> Result<(), LostReason> {
        self.check(now)?;
        self.renewing = false;
        let earned = self
            .times
            .margin
            .map(|margin| sent + self.times.ttl.saturating_sub(margin));
        // One that is taken up again stands for this TTL from now on, were it shorter than before.
        let known = self.lease_deadline.filter(|_| !self.resumed);
        self.resumed = false;
        self.lease_deadline = known.max(earned);
        self.state = State::Held;
        self.next_beat = self.beat_after(sent);
        self.plan_renewal(self.next_beat);
        Ok(())
    }

    /// A renewal was not answered, or not by enough members: try again soon.
    pub(crate) fn doubtful(&mut self, now: BootInstant) -> Result<(), LostReason> {
        self.check(now)?;
        self.renewing = false;
        self.state = State::InDoubt;
        let retry = (self.times.ttl / 30).min(RETRY_MAX);
        self.plan_renewal(now + retry);
        Ok(())
    }

    /// The lease is gone. The first reason stays.
    pub(crate) fn lose(&mut self, reason: LostReason) -> LostReason {
        if let State::Lost(first) = self.state {
            return first;
        }
        self.state = State::Lost(reason);
        self.renew_at = None;
        reason
    }

    /// Why the lease is known to be lost; `None` if it is not.
    pub(crate) fn lost(&self) -> Option<LostReason> {
        match self.state {
            State::Lost(reason) => Some(reason),
            _ => None,
        }
    }

    pub(crate) fn is_in_doubt(&self) -> bool {
        self.state == State::InDoubt
    }

    /// When the next renewal is due; `None` if none is needed any more.
    pub(crate) fn renew_at(&self) -> Option<BootInstant> {
        self.renew_at
    }

    /// Whether a renewal that is sent at `now` is the one that is due next.
    pub(crate) fn is_due(&self, now: BootInstant) -> bool {
        let soon = now + self.times.early();
        self.renew_at.is_some_and(|at| at <= soon)
    }

    /// The first beat that a renewal sent at `sent` was not sent for: at most a beat and
    /// [`LeaseTimes::early`] later.
    fn beat_after(&self, sent: BootInstant) -> BootInstant {
        let seen_to = sent + self.times.early();
        if seen_to < self.next_beat {
            return self.next_beat;
        }
        let beat = self.times.beat().as_nanos().max(1);
        let over = seen_to.since(self.next_beat).as_nanos() % beat;
        let left = u64::try_from(beat - over).unwrap_or(u64::MAX);
        seen_to + Duration::from_nanos(left)
    }

    fn plan_renewal(&mut self, at: BootInstant) {
        let lasts_anyway = match (self.hold_deadline, self.lease_deadline) {
            (Some(hold), Some(lease)) => hold <= lease,
            _ => false,
        };
        self.renew_at = (!lasts_anyway).then_some(at);
    }
}

/// A renewal in doubt is repeated at least this often.
const RETRY_MAX: Duration = Duration::from_secs(1);

/// Renewals due so close together travel together.
pub(crate) const EARLY_MAX: Duration = Duration::from_millis(20);

#[cfg(test)]
mod beat_tests;

#[cfg(test)]
mod tests;
