use std::sync::Arc;
use std::time::Duration;

use crate::ambient::Ambient;
use crate::card::MemberSet;
use crate::error::{Error, ErrorKind};
use crate::guarantees::LeaseTerms;
use crate::member::Member;
use crate::quorum::Quorum;
use crate::quorum::link::Link;
use crate::quorum::roster::Roster;
use crate::quorum::waiting::Waits;
use crate::telemetry::{self, MemberStandings};

/// What a quorum is built from, again whenever one of them is set.
#[derive(Clone, Debug)]
pub(super) struct Settings {
    pub(super) members: Vec<Arc<dyn Member>>,
    pub(super) ambient: Ambient,
    max_ttl: Duration,
    clock_tolerance: Duration,
    /// `None`: enforced from three members on.
    trust: Option<TrustRules>,
    foreign_gap: Duration,
}

/// What becomes of members that may have forgotten leases, or whose clocks are wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum TrustRules {
    /// Their answers do not count until they are safe again.
    Enforced,
    /// It is logged, and that is all: a server that forgets its locks grants them twice, so the
    /// quorum promises [`Exclusion::EveryMember`](crate::Exclusion::EveryMember). Members of
    /// another set refuse all the same.
    Logged,
}

impl Settings {
    pub(super) fn of(members: Vec<Arc<dyn Member>>) -> Self {
        Self {
            members,
            ambient: Ambient::default(),
            max_ttl: LeaseTerms::TTL_MAX,
            clock_tolerance: Quorum::CLOCK_TOLERANCE,
            trust: None,
            foreign_gap: Quorum::FOREIGN_GAP,
        }
    }

    pub(super) fn build(self) -> Quorum {
        let ids = self.members.iter().map(|member| member.id().clone());
        let set = MemberSet::new(ids, self.max_ttl, self.clock_tolerance);
        let enforced = match self.trust {
            Some(rules) => rules == TrustRules::Enforced,
            None => self.members.len() >= 3,
        };
        let store = describe(&self.members);
        let standings = MemberStandings::new(&store, self.members.len());
        let (members, ambient) = (self.members.clone(), self.ambient.clone());
        let roster = Roster::new(members, set, enforced, ambient, standings);
        let gap = Some(self.foreign_gap).filter(|gap| !gap.is_zero());
        let (waits, errands) = Waits::new(self.members.len(), gap, self.ambient.clone());
        let link = |place| {
            let (roster, waits) = (Arc::clone(&roster), Arc::clone(&waits));
            Link::new(place, roster, waits, self.ambient.clone())
        };
        let links = (0..self.members.len()).map(link).collect();
        Quorum {
            roster,
            links,
            waits,
            errands,
            hand_over: telemetry::hand_over(&store),
            settings: self,
        }
    }
}

/// The only member, or the quorum with all its members, in a few words.
pub(super) fn describe(members: &[Arc<dyn Member>]) -> String {
    if let [only] = members {
        return only.describe();
    }
    let ids: Vec<_> = members.iter().map(|member| member.id().as_str()).collect();
    format!("quorum of {} ({})", ids.len(), ids.join(", "))
}

impl Quorum {
    /// The least `clock_tolerance`: what time daemons and the way of an answer leave between clocks
    /// that are set well.
    pub const CLOCK_TOLERANCE_MIN: Duration = Duration::from_millis(10);

    /// For how long a lock is left free for clients that poll.
    pub const FOREIGN_GAP: Duration = Duration::from_millis(150);

    /// The greatest `max_ttl`: a member that restarted is out for so long.
    pub const MAX_TTL_MAX: Duration = Duration::from_secs(60 * 60);

    /// The set with its limits, as it stands on the members' cards.
    pub fn set(&self) -> &MemberSet {
        self.roster.set()
    }

    /// The same quorum, if its limits may be those of a set: `clock_tolerance` at least
    /// [`Quorum::CLOCK_TOLERANCE_MIN`], and `max_ttl` from ten times that tolerance, which is the
    /// shortest TTL, to [`Quorum::MAX_TTL_MAX`]. With other limits no lock can be taken.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::InvalidInput`], naming the value and the rule.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::time::Duration;
    /// use leasehold::ambient::Ambient;
    /// use leasehold::{MemoryStore, Quorum};
    ///
    /// # fn main() -> Result<(), leasehold::Error> {
    /// let member = || MemoryStore::member("a", Ambient::default());
    /// let quorum = Quorum::new([std::sync::Arc::new(member()) as _])?;
    /// let error = quorum.max_ttl(Duration::from_secs(2)).checked().unwrap_err();
    /// assert!(error.to_string().contains("max_ttl 2s is too short"));
    /// # Ok(()) }
    /// ```
    pub fn checked(self) -> Result<Self, Error> {
        let (max_ttl, tolerance) = (self.settings.max_ttl, self.settings.clock_tolerance);
        let refuse = |text| Err(Error::new(ErrorKind::InvalidInput, text));
        if tolerance < Self::CLOCK_TOLERANCE_MIN {
            return refuse(format!(
                "clock_tolerance {tolerance:?} is too small; use at least {:?}, because clocks never agree \
                 better",
                Self::CLOCK_TOLERANCE_MIN
            ));
        }
        if max_ttl > Self::MAX_TTL_MAX {
            return refuse(format!(
                "max_ttl {max_ttl:?} is too long; use at most {:?}, because a server has no vote for that \
                 time after a restart",
                Self::MAX_TTL_MAX
            ));
        }
        if max_ttl / 10 < tolerance {
            return refuse(format!(
                "max_ttl {max_ttl:?} is too short for clock_tolerance {tolerance:?}; use at least ten \
                 times the tolerance"
            ));
        }
        Ok(self)
    }

    /// The same members, of which all clients agreed that their clocks differ by at most
    /// `tolerance`. It bounds the TTL from below (ten times) and shortens deadlines (twice).
    #[must_use]
    pub fn clock_tolerance(self, tolerance: Duration) -> Self {
        self.with(|settings| settings.clock_tolerance = tolerance)
    }

    /// The same members, of which all clients agreed that no lease lives longer than `ttl` unless
    /// renewed: so long, and a second, a member does not count after it may have forgotten leases.
    /// 60 s unless the set says otherwise.
    #[must_use]
    pub fn max_ttl(self, ttl: Duration) -> Self {
        self.with(|settings| settings.max_ttl = ttl)
    }

    /// The same members under these rules. Unless this is said, they are enforced from three
    /// members on: one server alone is for efficiency, and goes on at once after a restart.
    #[must_use]
    pub fn trust(self, rules: TrustRules) -> Self {
        self.with(|settings| settings.trust = Some(rules))
    }

    /// The same members, of which a lock that is handed on all the time is left free for `gap` now
    /// and then, so that clients of other libraries, which poll, get it too. Those who wait in the
    /// queue stand back meanwhile. 150 ms unless this is said; zero turns it off.
    ///
    /// That is every 5 s, and every second for ten minutes after such a client was seen to hold the
    /// lock. The first of them, which nobody can see while it waits, may thus wait for 5 s, and
    /// longer if it asks more seldom than once in a `gap`.
    #[must_use]
    pub fn foreign_gap(self, gap: Duration) -> Self {
        self.with(|settings| settings.foreign_gap = gap)
    }

    /// Replaces time and chance, for tests and simulations.
    #[must_use]
    pub fn ambient(self, ambient: Ambient) -> Self {
        self.with(|settings| settings.ambient = ambient)
    }

    fn with(mut self, change: impl FnOnce(&mut Settings)) -> Self {
        change(&mut self.settings);
        self.settings.build()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::MemoryStore;

    fn checked(max_ttl: u64, clock_tolerance: u64) -> Result<Quorum, String> {
        let member = MemoryStore::member("m", Ambient::default());
        let quorum = Quorum::of_one(Arc::new(member))
            .max_ttl(Duration::from_millis(max_ttl))
            .clock_tolerance(Duration::from_millis(clock_tolerance));
        quorum.checked().map_err(|error| {
            assert_eq!(error.kind(), ErrorKind::InvalidInput);
            error.to_string()
        })
    }

    #[test]
    fn limits_fit_each_other_or_are_named_with_the_rule() {
        for (max_ttl, clock_tolerance) in [(100, 10), (2_500, 250), (3_600_000, 360_000)] {
            checked(max_ttl, clock_tolerance).unwrap();
        }
        let text = checked(60_000, 9).unwrap_err();
        assert!(
            text.starts_with("clock_tolerance 9ms is too small; use at least 10ms"),
            "{text}"
        );
        let text = checked(3_600_001, 250).unwrap_err();
        assert!(
            text.starts_with("max_ttl 3600.001s is too long; use at most 3600s"),
            "{text}"
        );
        let text = checked(2_499, 250).unwrap_err();
        let rule = "max_ttl 2.499s is too short for clock_tolerance 250ms; use at least ten times";
        assert!(text.starts_with(rule), "{text}");
    }
}
