//! What a client may assume about one lease: pure arithmetic over instants that are passed in.
#![deny(clippy::disallowed_types)]

use std::time::Duration;

use crate::env::clock::BootInstant;
use crate::store::Term;
use crate::types::LostReason;

/// How long a lease lives, and how long it may be kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LeaseTimes {
    pub(crate) ttl: Duration,
    /// The last part of each term, which guards do not use.
    pub(crate) delay: Duration,
    /// The maximum hold time of the guard, counted from the request that was granted.
    pub(crate) max_hold: Option<Duration>,
}

impl LeaseTimes {
    /// Returns the deadline that a term earns.
    fn deadline(&self, term: Term) -> Option<BootInstant> {
        term.deadline(self.ttl, self.delay)
    }

    /// Returns the renewal interval.
    pub(crate) fn interval(&self) -> Duration {
        self.ttl / 3
    }

    /// Returns how much earlier the first renewal may be. Leases taken together then spread over most of
    /// a renewal interval, and no second of it gets more than 10/7 of its share. The rest of the interval
    /// is left to locks that are released soon and need no renewal.
    pub(crate) fn spread(&self) -> Duration {
        self.interval().saturating_sub(self.ttl / 10)
    }

    /// Returns how early a renewal may be sent together with others.
    pub(crate) fn early(&self) -> Duration {
        (self.ttl / 30).min(EARLY_MAX)
    }
}

/// A lease that is held until a deadline that only moves forward, and then lost for good.
///
/// Every deadline counts from before the client *sent* the request that earned it: the store cannot have
/// begun to count earlier.
#[derive(Clone, Debug)]
pub(crate) struct Lease {
    times: LeaseTimes,
    /// When the store may let the lease expire, less the margin.
    lease_deadline: Option<BootInstant>,
    hold_deadline: Option<BootInstant>,
    /// When a renewal is due if all goes well. These times are whole renewal intervals apart. Otherwise,
    /// leases that were sent in one message or were in doubt at the same time would stay together.
    next_interval: BootInstant,
    renew_at: Option<BootInstant>,
    /// Whether a renewal is in progress.
    renewing: bool,
    /// Whether a TTL that is not known here earned the deadline.
    resumed: bool,
    state: LeaseState,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LeaseState {
    Held,
    /// The last renewal failed; the deadline still lies ahead.
    InDoubt,
    Lost(LostReason),
}

impl Lease {
    /// Returns a lease granted for `term`. `spread`, random and at most
    /// [`LeaseTimes::spread`], brings the first renewal forward, so that leases taken together are not
    /// renewed together.
    pub(crate) fn granted(times: LeaseTimes, term: Term, spread: Duration) -> Self {
        let sent = term.since;
        let next_interval = sent + times.interval().saturating_sub(spread);
        let mut lease = Self {
            times,
            lease_deadline: times.deadline(term),
            hold_deadline: times.max_hold.map(|span| sent + span),
            next_interval,
            renew_at: None,
            renewing: false,
            resumed: false,
            state: LeaseState::Held,
        };
        lease.plan_renewal(next_interval);
        lease
    }

    /// Returns a lease that was granted elsewhere and has this deadline. It has not been renewed here
    /// yet.
    pub(crate) fn resumed(
        times: LeaseTimes,
        deadline: BootInstant,
        hold_deadline: Option<BootInstant>,
    ) -> Self {
        // Whole renewal intervals before the deadline: as good a time as any, and already past.
        let interval = u64::try_from(times.interval().as_nanos()).unwrap_or(u64::MAX);
        Self {
            times,
            lease_deadline: Some(deadline),
            hold_deadline,
            next_interval: BootInstant::from_nanos(deadline.as_nanos() % interval.max(1)),
            renew_at: None,
            renewing: false,
            resumed: true,
            state: LeaseState::Held,
        }
    }

    /// Returns the end of the whole hold, which renewals do not move.
    pub(crate) fn hold_deadline(&self) -> Option<BootInstant> {
        self.hold_deadline
    }

    /// Returns the instant from which the guard is invalid; `None` if the hold has no end.
    pub(crate) fn deadline(&self) -> Option<BootInstant> {
        match (self.lease_deadline, self.hold_deadline) {
            (Some(lease), Some(hold)) => Some(lease.min(hold)),
            (lease, hold) => lease.or(hold),
        }
    }

    /// Checks that the guard is valid at `now`. Once this fails, it always fails.
    pub(crate) fn check(&mut self, now: BootInstant) -> Result<(), LostReason> {
        if let LeaseState::Lost(reason) = self.state {
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
            LeaseState::InDoubt => LostReason::Unreachable,
            // No renewal was even sent: nothing ran here between its due time and now.
            LeaseState::Held if overdue && !self.renewing => LostReason::Paused,
            _ => LostReason::Expired,
        }
    }

    /// Records that a renewal is sent.
    pub(crate) fn renewing(&mut self) {
        self.renewing = true;
    }

    /// Records that a renewal was confirmed, for `term`. It moves the deadline only if the old one has
    /// not passed: after that, another owner may have held the lock.
    pub(crate) fn renewed(&mut self, term: Term, now: BootInstant) -> Result<(), LostReason> {
        self.check(now)?;
        self.renewing = false;
        let earned = self.times.deadline(term);
        // A resumed lease has this TTL from now on, even if its deadline was later before.
        let known = self.lease_deadline.filter(|_| !self.resumed);
        self.resumed = false;
        self.lease_deadline = known.max(earned);
        self.state = LeaseState::Held;
        self.next_interval = self.beat_after(term.since);
        self.plan_renewal(self.next_interval);
        Ok(())
    }

    /// Records that no member, or too few, answered a renewal: try again soon.
    pub(crate) fn uncertain(&mut self, now: BootInstant) -> Result<(), LostReason> {
        self.check(now)?;
        self.renewing = false;
        self.state = LeaseState::InDoubt;
        let retry = (self.times.ttl / 30).min(RETRY_MAX);
        self.plan_renewal(now + retry);
        Ok(())
    }

    /// Marks the lease as lost. The first reason stays.
    pub(crate) fn lose(&mut self, reason: LostReason) -> LostReason {
        if let LeaseState::Lost(first) = self.state {
            return first;
        }
        self.state = LeaseState::Lost(reason);
        self.renew_at = None;
        reason
    }

    /// Returns why the lease is known to be lost; `None` if it is not.
    pub(crate) fn lost(&self) -> Option<LostReason> {
        match self.state {
            LeaseState::Lost(reason) => Some(reason),
            _ => None,
        }
    }

    pub(crate) fn is_in_doubt(&self) -> bool {
        self.state == LeaseState::InDoubt
    }

    /// Returns when the next renewal is due; `None` if no further one is needed.
    pub(crate) fn renew_at(&self) -> Option<BootInstant> {
        self.renew_at
    }

    /// Returns whether a renewal sent at `now` counts as the next due renewal.
    pub(crate) fn is_due(&self, now: BootInstant) -> bool {
        let soon = now + self.times.early();
        self.renew_at.is_some_and(|at| at <= soon)
    }

    /// Returns the first due time that a renewal sent at `sent` does not cover: at most one renewal
    /// interval and [`LeaseTimes::early`] later.
    fn beat_after(&self, sent: BootInstant) -> BootInstant {
        let seen_to = sent + self.times.early();
        if seen_to < self.next_interval {
            return self.next_interval;
        }
        let interval = self.times.interval().as_nanos().max(1);
        let over = seen_to.since(self.next_interval).as_nanos() % interval;
        let left = u64::try_from(interval - over).unwrap_or(u64::MAX);
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

/// A lease in doubt is renewed again at least this often.
const RETRY_MAX: Duration = Duration::from_secs(1);

/// Renewals due within this time of each other are sent together.
pub(crate) const EARLY_MAX: Duration = Duration::from_millis(20);

#[cfg(test)]
mod interval_tests;

#[cfg(test)]
mod tests;
