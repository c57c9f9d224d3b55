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
    /// the store refuses a shared request as unsupported.
    pub shared: bool,
    /// Whether a lock can have permits. At most as many owners then hold the lock as it has permits, each
    /// with its own lease and fence. Otherwise the store refuses a request on a permit as unsupported.
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

/// The condition under which no two clients hold requests that exclude each other.
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
    /// Only at a resource that checks fences. The store may end a lease early, so a former holder can
    /// believe that it holds the lock when the next one does.
    Fence,
}

/// When a lease ends by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Expiry {
    /// After its TTL, unless renewed: guards have a deadline.
    Lease,
    /// With the session of its client, and all leases of that client with it: guards have a deadline. The
    /// server grants the session's timeout, and the TTL of a request is a wish. A lock has no delay, and no
    /// handle that another process could use.
    WithSession,
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
}

impl LeaseTerms {
    /// The shortest TTL of any store.
    pub const TTL_MIN: Duration = Duration::from_millis(100);
    /// The longest TTL of a single store. A long lease does not delay it after a restart.
    pub const TTL_MAX: Duration = Duration::from_secs(24 * 60 * 60);
    /// The longest TTL of a quorum, unless its members agreed on another. A member that may have forgotten
    /// leases has no vote for that time.
    pub const QUORUM_TTL_MAX: Duration = Duration::from_secs(60);

    /// Returns the limits of a store whose leases may be as long as a day.
    pub const fn single() -> Self {
        Self {
            ttl_min: Self::TTL_MIN,
            ttl_max: Self::TTL_MAX,
        }
    }

    /// The same limits, with a longest TTL of `ttl_max`.
    #[must_use]
    pub fn with_ttl_max(mut self, ttl_max: Duration) -> Self {
        self.ttl_max = ttl_max;
        self
    }
}
