//! The settings of a store.

use std::sync::Arc;
use std::time::Duration;

use leasehold::member::{MemberId, MemberSet};
use leasehold::store::{Store, exact_span};
use leasehold::{Error, ErrorKind};
use leasehold_quorum::TrustRules;

use super::RedisStore;
use crate::RedisMember;
use crate::url::MEMBERS_MAX;

impl RedisStore {
    /// The greatest number of members.
    pub const MEMBERS_MAX: usize = MEMBERS_MAX;

    /// The default difference between the clocks of members.
    pub const CLOCK_TOLERANCE: Duration = Duration::from_millis(250);

    /// The smallest `clock_tolerance`. Clocks that are set well differ by less than this, even with the
    /// adjustments of time daemons and the travel time of a reply.
    pub const CLOCK_TOLERANCE_MIN: Duration = Duration::from_millis(10);

    /// The greatest `max_ttl`. A member has no vote for that time after a restart.
    pub const MAX_TTL_MAX: Duration = Duration::from_secs(60 * 60);

    /// Sets the longest TTL of any lease in a quorum that this store initializes. A member that may have forgotten
    /// leases has no vote for this time and a second. The default is 60 s.
    ///
    /// Only [`init`](Self::init) needs it. The members of a quorum state its limits, and all clients use those.
    #[must_use]
    pub fn max_ttl(mut self, ttl: Duration) -> Self {
        self.limits.max_ttl = Some(ttl);
        self.set = MemberSet::new(self.set.ids, ttl, self.set.clock_tolerance);
        self
    }

    /// Sets by how much the clocks of members may differ in a quorum that this store initializes. The TTL must be at
    /// least ten times as long. Deadlines come twice that much earlier. The default is
    /// [`RedisStore::CLOCK_TOLERANCE`].
    ///
    /// Only [`init`](Self::init) needs it, as for [`max_ttl`](Self::max_ttl).
    #[must_use]
    pub fn clock_tolerance(mut self, tolerance: Duration) -> Self {
        self.limits.clock_tolerance = Some(tolerance);
        self.set = MemberSet::new(self.set.ids, self.set.max_ttl, tolerance);
        self
    }

    /// Sets what happens to members that may have forgotten leases. By default the rules are enforced for
    /// three members or more. A single server serves efficiency, and continues right after a restart.
    #[must_use]
    pub fn trust(mut self, rules: TrustRules) -> Self {
        self.enforced = rules == TrustRules::Enforced;
        self
    }

    /// Writes nothing to the servers, for tools that only show the [`Health`](leasehold::store::Health) of the
    /// members. Such a store does not take locks reliably, since it does not maintain the member records.
    #[must_use]
    pub fn read_only(mut self) -> Self {
        self.read_only = true;
        self
    }

    /// Checks the limits. `clock_tolerance` must be at least [`RedisStore::CLOCK_TOLERANCE_MIN`]. `max_ttl`
    /// must be between ten times that tolerance, which is the shortest TTL, and
    /// [`RedisStore::MAX_TTL_MAX`]. With other limits no lock can be taken.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::InvalidInput`], naming the value and the rule.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::time::Duration;
    /// use leasehold_redis::RedisStore;
    ///
    /// # fn main() -> Result<(), leasehold::Error> {
    /// let store = RedisStore::new(["redis://10.0.0.1"])?;
    /// let error = store.max_ttl(Duration::from_secs(2)).checked().unwrap_err();
    /// assert!(error.to_string().contains("max_ttl 2s is too short"));
    /// # Ok(()) }
    /// ```
    pub fn checked(self) -> Result<Self, Error> {
        check(self.set.max_ttl, self.set.clock_tolerance)?;
        Ok(self)
    }

    /// Returns the members, with the limits of a quorum that this store initializes. One that is initialized has the
    /// limits that its members state ([`stated_set`](Self::stated_set)).
    pub fn set(&self) -> &MemberSet {
        &self.set
    }

    /// Returns the members' ids in the order of the URLs.
    pub fn member_ids(&self) -> impl Iterator<Item = &MemberId> {
        self.members.iter().map(RedisMember::id)
    }

    /// Returns the members in the order of the URLs.
    pub fn members(&self) -> &[RedisMember] {
        &self.members
    }
}

fn check(max_ttl: Duration, tolerance: Duration) -> Result<(), Error> {
    let refuse = |text| Err(Error::new(ErrorKind::InvalidInput, text));
    if tolerance < RedisStore::CLOCK_TOLERANCE_MIN {
        return refuse(format!(
            "clock_tolerance {} is too small; use at least {}, because clocks never agree better",
            exact_span(tolerance),
            exact_span(RedisStore::CLOCK_TOLERANCE_MIN)
        ));
    }
    if max_ttl > RedisStore::MAX_TTL_MAX {
        return refuse(format!(
            "max_ttl {} is too long; use at most {}, because a server has no vote for that \
             time after a restart",
            exact_span(max_ttl),
            exact_span(RedisStore::MAX_TTL_MAX)
        ));
    }
    if max_ttl / 10 < tolerance {
        return refuse(format!(
            "max_ttl {} is too short for clock_tolerance {}; use at least ten \
             times the tolerance",
            exact_span(max_ttl),
            exact_span(tolerance)
        ));
    }
    Ok(())
}

impl From<RedisStore> for Arc<dyn Store> {
    fn from(store: RedisStore) -> Self {
        let members = store.members.len();
        if members > 1 && members.is_multiple_of(2) {
            tracing::warn!(
                members,
                "an even number of servers tolerates no more failures than one server less; use an odd number"
            );
        }
        Arc::new(store)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_that_fit_are_accepted() {
        for (max_ttl, tolerance) in [(100, 10), (2_500, 250), (3_600_000, 360_000)] {
            check(
                Duration::from_millis(max_ttl),
                Duration::from_millis(tolerance),
            )
            .unwrap();
        }
    }

    #[test]
    fn limits_that_do_not_fit_are_named() {
        for (max_ttl, tolerance, start) in [
            (
                60_000,
                9,
                "clock_tolerance 9ms is too small; use at least 10ms",
            ),
            (3_600_001, 250, "max_ttl 1h 1ms is too long; use at most 1h"),
            (
                2_499,
                250,
                "max_ttl 2s 499ms is too short for clock_tolerance 250ms; use at least ten times",
            ),
        ] {
            let refused = check(
                Duration::from_millis(max_ttl),
                Duration::from_millis(tolerance),
            );
            let text = refused.unwrap_err().to_string();
            assert!(text.starts_with(start), "{text}");
        }
    }
}
