use std::time::Duration;

/// What a store promises. The answers are few and honest, so that a program can refuse to go on
/// where it needs more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Guarantees {
    /// Whether two holders are excluded, and as long as what holds true.
    pub exclusion: Exclusion,
    /// What the order of fences rests on.
    pub fencing: Fencing,
    /// When a lease ends by itself.
    pub expiry: Expiry,
    /// How a waiter learns that the lock is free.
    pub waiting: Waiting,
    /// In which order waiters are served.
    pub order: Order,
    /// Whether shared mode is offered.
    pub sharing: Sharing,
    /// Whether a lock can have permits.
    pub counting: Counting,
    /// Whether an operator can break a lock.
    pub breaking: Breaking,
}

impl Guarantees {
    /// The promises of a store, one by one.
    pub fn new(
        exclusion: Exclusion,
        fencing: Fencing,
        expiry: Expiry,
        waiting: Waiting,
        order: Order,
        sharing: Sharing,
    ) -> Self {
        Self {
            exclusion,
            fencing,
            expiry,
            waiting,
            order,
            sharing,
            counting: Counting::Unsupported,
            breaking: Breaking::Unsupported,
        }
    }

    /// The same promises, and this one.
    #[must_use]
    pub fn with_counting(mut self, counting: Counting) -> Self {
        self.counting = counting;
        self
    }

    /// The same promises, and this one.
    #[must_use]
    pub fn with_breaking(mut self, breaking: Breaking) -> Self {
        self.breaking = breaking;
        self
    }
}

/// As long as what holds true no two holders exclude each other's claims.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Exclusion {
    /// Enforced by one kernel: always.
    Kernel,
    /// As long as this one process lives.
    Process,
    /// As long as the one server keeps its data and its clock runs evenly. Not against failover.
    OneServer,
    /// As long as no member loses its data or has its clock stepped while a lock is held. A quorum
    /// promises no more if its trust rules are not enforced: by default, one of
    /// two members.
    EveryMember,
    /// As long as no majority of members loses its data, or has its clocks stepped, at once.
    Majority,
}

/// What the order of fences rests on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Fencing {
    /// A counter on a disk, written through before the guard is returned.
    Durable,
    /// A counter in memory, and the clients' wall clocks where it was lost.
    CounterThenClock,
}

/// When a lease ends by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Expiry {
    /// After its TTL, unless renewed: guards have a deadline.
    Lease,
    /// When the holding process ends, and never before: guards have no deadline.
    WithProcess,
}

/// How a waiter learns that the lock is free.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Waiting {
    /// It asks again after random pauses.
    Polling,
    /// It is told.
    Notified,
}

/// In which order waiters are served.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Order {
    /// In none.
    Unordered,
    /// First come, first served.
    Fifo,
}

/// Whether shared mode is offered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Sharing {
    /// Exclusive mode alone; a shared claim is refused as unsupported.
    ExclusiveOnly,
    /// Readers share; a steady stream of readers can keep a writer waiting.
    ReadersPreferred,
    /// Readers share, and a waiting writer keeps later readers out.
    WritersPreferred,
}

/// Whether a lock can be held by a number of owners, each with one of its permits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Counting {
    /// A claim on a permit is refused as unsupported.
    Unsupported,
    /// Never more hold the lock than it has permits; each permit has a lease and a fence of its own.
    Permits,
}

/// Whether an operator can break a lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Breaking {
    /// Nobody can take the lock from its holder: to break it is refused as unsupported.
    Unsupported,
    /// An exclusive lease can be broken.
    Exclusive,
}

/// The times a store's leases keep to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct LeaseTerms {
    /// The shortest TTL that leaves room for the margin.
    pub ttl_min: Duration,
    /// The longest TTL; leases are renewed, so that none need be long.
    pub ttl_max: Duration,
    /// What [`LeaseTerms::margin`] adds to a tenth of the TTL: room for the members' clocks.
    pub clock_allowance: Duration,
}

impl LeaseTerms {
    /// The shortest TTL of any store.
    pub const TTL_MIN: Duration = Duration::from_millis(100);
    /// The longest TTL unless a set of members agreed on another.
    pub const TTL_MAX: Duration = Duration::from_secs(60);

    /// The terms of one place with one clock.
    pub const fn single() -> Self {
        Self {
            ttl_min: Self::TTL_MIN,
            ttl_max: Self::TTL_MAX,
            clock_allowance: Duration::from_millis(2),
        }
    }

    /// The terms of several members whose clocks agree to within `clock_tolerance`.
    pub fn quorum(clock_tolerance: Duration, ttl_max: Duration) -> Self {
        Self {
            ttl_min: Self::TTL_MIN.max(clock_tolerance * 10),
            ttl_max,
            clock_allowance: Duration::from_millis(2).max(clock_tolerance * 2),
        }
    }

    /// By how much a guard's deadline lies before the end of its lease at the store: a tenth of
    /// the TTL for clocks that run at different rates, and the allowance.
    pub fn margin(&self, ttl: Duration) -> Duration {
        ttl / 10 + self.clock_allowance
    }

    /// The shortest TTL of a lease whose guard is valid for `span`: what [`LeaseTerms::margin`] takes
    /// away comes on top. It may be longer than the longest allowed.
    pub fn ttl_for(&self, span: Duration) -> Duration {
        // Rounded down, as is the tenth that the margin takes from it: that gives back at least as much.
        let ttl = span.saturating_add(self.clock_allowance).saturating_mul(10) / 9;
        ttl.max(self.ttl_min)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lease_for_a_span_is_valid_for_that_span_and_hardly_longer() {
        let set = LeaseTerms::quorum(Duration::from_millis(250), LeaseTerms::TTL_MAX);
        for terms in [LeaseTerms::single(), set] {
            let rounded = [0, 1, 90, 1_999, 30_000, 3_600_001].map(Duration::from_millis);
            // Each of them leaves another remainder.
            let odd = (0..90).map(|nanos| Duration::new(30, nanos));
            for span in rounded.into_iter().chain(odd) {
                let ttl = terms.ttl_for(span);
                let valid = ttl - terms.margin(ttl);
                assert!(valid >= span, "{valid:?} of {ttl:?} for {span:?}");
                let is_shortest = ttl == terms.ttl_min;
                let is_tight = valid < span + Duration::from_micros(1);
                assert!(is_shortest || is_tight, "{ttl:?} for {span:?}");
            }
        }
        let endless = LeaseTerms::single().ttl_for(Duration::MAX);
        assert!(endless > LeaseTerms::TTL_MAX);
    }
}
