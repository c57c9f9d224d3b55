use metrics::Gauge;

use super::labels::Standing;
use super::metric::MEMBERS;
use super::registry::{Each, Registry};

/// Counts the members of a quorum by their state. Each member is in one state while this value lives. For
/// stores that have members.
#[derive(Debug)]
pub struct MemberStandings {
    counts: Each<Standing, Gauge>,
    members: Vec<Facts>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Facts {
    /// Its last answer was an error, or did not come.
    failing: bool,
    /// Whether its answers count; `None` before its first answer.
    counts: Option<bool>,
}

impl Facts {
    fn standing(self) -> Standing {
        match (self.failing, self.counts) {
            (true, _) => Standing::Failing,
            (false, Some(true)) => Standing::Counting,
            (false, Some(false)) => Standing::Distrusted,
            (false, None) => Standing::Unknown,
        }
    }
}

impl MemberStandings {
    /// Returns the [metric](MEMBERS) for `members` members of `store`, all in the state `unknown`, at the
    /// recorder that is installed now.
    pub fn new(store: &str, members: usize) -> Self {
        let counts =
            metrics::with_recorder(|recorder| Registry::new(recorder, store).gauges(&MEMBERS));
        let standings = Self {
            counts,
            members: vec![Facts::default(); members],
        };
        for facts in &standings.members {
            standings.counts.of(facts.standing()).increment(1);
        }
        standings
    }

    /// Records that requests to the member begin to fail, or are answered again.
    pub fn failing(&mut self, member: usize, failing: bool) {
        let counts = self.members[member].counts;
        self.set(member, Facts { failing, counts });
    }

    /// Records whether the member has a vote from now on.
    pub fn judged(&mut self, member: usize, counts: bool) {
        let facts = self.members[member];
        // Called with every answer: there is hardly ever anything new.
        if facts.counts != Some(counts) {
            let counts = Some(counts);
            self.set(member, Facts { counts, ..facts });
        }
    }

    fn set(&mut self, member: usize, facts: Facts) {
        let before = std::mem::replace(&mut self.members[member], facts).standing();
        if before != facts.standing() {
            self.counts.of(before).decrement(1);
            self.counts.of(facts.standing()).increment(1);
        }
    }
}

impl Drop for MemberStandings {
    fn drop(&mut self) {
        for facts in &self.members {
            self.counts.of(facts.standing()).decrement(1);
        }
    }
}

#[cfg(test)]
mod tests {
    use leasehold_testkit::telemetry::TestRecorder;

    use super::*;
    use crate::telemetry::labels::LabelValue as _;

    #[test]
    fn failing_member_returns_to_its_former_state() {
        let recorder = TestRecorder::new();
        let mut members = recorder.scope(|| MemberStandings::new("a store", 1));
        let standing = || {
            let count = |word: &&str| recorder.sum(MEMBERS.name, &[("state", word)]);
            let counted = Standing::VALUES.iter().filter(|word| count(word) != 0.0);
            assert!(counted.clone().all(|word| count(word) == 1.0));
            counted.copied().collect::<Vec<_>>()
        };
        for (counts, word) in [
            (None, "unknown"),
            (Some(true), "counting"),
            (Some(false), "distrusted"),
        ] {
            if let Some(counts) = counts {
                members.judged(0, counts);
            }
            assert_eq!(standing(), [word]);
            members.failing(0, true);
            assert_eq!(standing(), ["failing"], "was {word}");
            members.failing(0, false);
            assert_eq!(standing(), [word]);
        }
        members.failing(0, true);
        members.judged(0, true);
        assert_eq!(standing(), ["failing"], "of another's word");
        drop(members);
        assert!(standing().is_empty());
    }
}
