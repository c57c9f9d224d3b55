use std::sync::Arc;
use std::time::Duration;

use crate::ambient::Ambient;
use crate::card::MemberSet;
use crate::guarantees::LeaseTerms;
use crate::member::Member;
use crate::quorum::Quorum;
use crate::quorum::link::Link;
use crate::quorum::roster::Roster;

/// What a quorum is built from, again whenever one of them is set.
#[derive(Clone, Debug)]
pub(super) struct Settings {
    pub(super) members: Vec<Arc<dyn Member>>,
    pub(super) ambient: Ambient,
    max_ttl: Duration,
    clock_tolerance: Duration,
    /// `None`: enforced from three members on.
    trust: Option<TrustRules>,
}

/// What becomes of members that may have forgotten leases, or whose clocks are wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum TrustRules {
    /// Their answers do not count until they are safe again.
    Enforced,
    /// It is logged, and that is all: a server that forgets its locks grants them twice.
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
        }
    }

    pub(super) fn build(self) -> Quorum {
        let ids = self.members.iter().map(|member| member.id().clone());
        let set = MemberSet::new(ids, self.max_ttl, self.clock_tolerance);
        let enforced = match self.trust {
            Some(rules) => rules == TrustRules::Enforced,
            None => self.members.len() >= 3,
        };
        let roster = Roster::new(self.members.clone(), set, enforced, self.ambient.clone());
        let links = (0..self.members.len())
            .map(|place| Link::new(place, Arc::clone(&roster), self.ambient.clone()))
            .collect();
        Quorum {
            roster,
            links,
            settings: self,
        }
    }
}

impl Quorum {
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
