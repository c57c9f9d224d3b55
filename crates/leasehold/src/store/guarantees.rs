use std::time::Duration;

/// What a store promises. A program can read it, and refuse to run where it needs more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Guarantees {
    /// Whether the store excludes a second holder, and under which condition.
    pub exclusion: Exclusion,
    /// When a lease ends by itself.
    pub expiry: Expiry,
    /// The order in which the store serves waiters.
    pub order: Order,
    /// Whether the store supports shared mode. A waiting writer then keeps later readers out. Otherwise
    /// the store refuses a shared claim as unsupported.
    pub shared: bool,
    /// Whether a lock can have permits. At most as many owners then hold the lock as it has permits, each
    /// with its own lease and fence. Otherwise the store refuses a claim on a permit as unsupported.
    pub permits: bool,
}

impl Guarantees {
    /// Returns these promises, without shared mode and without permits.
    pub fn new(exclusion: Exclusion, expiry: Expiry, order: Order) -> Self {
        Self {
            exclusion,
            expiry,
            order,
            shared: false,
            permits: false,
        }
    }

    /// The same promises, with shared mode.
    #[must_use]
    pub fn with_shared(mut self) -> Self {
        self.shared = true;
        self
    }

    /// The same promises, with permits.
    #[must_use]
    pub fn with_permits(mut self) -> Self {
        self.permits = true;
        self
    }
}

/// The condition under which no two clients hold claims that exclude each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Exclusion {
    /// Enforced by one kernel: always.
    Kernel,
    /// As long as this one process lives.
    Process,
    /// As long as the one server keeps its data and its clock runs evenly. Not across a failover.
    OneServer,
    /// As long as no member loses its data or has its clock stepped while a lock is held. A quorum that
    /// does not enforce its trust rules promises no more; by default, that is a quorum of two members.
    EveryMember,
    /// As long as no majority of members loses its data, or has its clocks stepped, at once.
    Majority,
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

/// The order in which the store serves waiters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Order {
    /// No particular order.
    Unordered,
    /// First come, first served.
    Fifo,
}

/// The limits of a store's leases.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct LeaseTerms {
    /// The shortest TTL that leaves room for the margin.
    pub ttl_min: Duration,
    /// The longest TTL. The client renews leases, so none needs to be long.
    pub ttl_max: Duration,
    /// What [`LeaseTerms::margin`] adds to a tenth of the TTL: room for the members' clocks.
    pub clock_allowance: Duration,
}

impl LeaseTerms {
    /// The shortest TTL of any store.
    pub const TTL_MIN: Duration = Duration::from_millis(100);
    /// The longest TTL of a single store. A long lease does not delay it after a restart.
    pub const TTL_MAX: Duration = Duration::from_secs(24 * 60 * 60);
    /// The longest TTL of a quorum, unless its members agreed on another. A member that may have forgotten
    /// leases has no vote for that time.
    pub const QUORUM_TTL_MAX: Duration = Duration::from_secs(60);

    /// Returns the limits of a single store with one clock.
    pub const fn single() -> Self {
        Self {
            ttl_min: Self::TTL_MIN,
            ttl_max: Self::TTL_MAX,
            clock_allowance: Duration::from_millis(2),
        }
    }

    /// Returns the limits of several members whose clocks agree to within `clock_tolerance`.
    pub fn quorum(clock_tolerance: Duration, ttl_max: Duration) -> Self {
        Self {
            ttl_min: Self::TTL_MIN.max(clock_tolerance * 10),
            ttl_max,
            clock_allowance: Duration::from_millis(2).max(clock_tolerance * 2),
        }
    }

    /// Returns how far a guard's deadline lies before the end of its lease at the store: a tenth of the
    /// TTL, because clocks run at different rates, plus the allowance.
    pub fn margin(&self, ttl: Duration) -> Duration {
        ttl / 10 + self.clock_allowance
    }

    /// Returns the shortest TTL of a lease whose guard is valid for `span`, which includes what
    /// [`LeaseTerms::margin`] takes away. It may be longer than the longest allowed TTL.
    pub fn ttl_for(&self, span: Duration) -> Duration {
        // Rounded down. The margin rounds its tenth down too, which gives back at least as much.
        let ttl = span.saturating_add(self.clock_allowance).saturating_mul(10) / 9;
        ttl.max(self.ttl_min)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lease_for_a_span_lasts_hardly_longer() {
        let set = LeaseTerms::quorum(Duration::from_millis(250), LeaseTerms::QUORUM_TTL_MAX);
        for terms in [LeaseTerms::single(), set] {
            let rounded = [0, 1, 90, 1_999, 30_000, 3_600_001].map(Duration::from_millis);
            // Each of them leaves a different remainder.
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
