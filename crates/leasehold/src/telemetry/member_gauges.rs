use metrics::Gauge;

use super::labels::VoteState;
use super::metric::MEMBERS;
use super::registry::{Each, Registry};

/// Counts the members of a quorum by their state. Each member is in one state while this value lives. For
/// stores that have members.
#[derive(Debug)]
pub struct MemberGauges {
    counts: Each<VoteState, Gauge>,
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
    fn vote_state(self) -> VoteState {
        match (self.failing, self.counts) {
            (true, _) => VoteState::Failing,
            (false, Some(true)) => VoteState::Trusted,
            (false, Some(false)) => VoteState::Untrusted,
            (false, None) => VoteState::Unknown,
        }
    }
}

impl MemberGauges {
    /// Returns the [metric](MEMBERS) for `members` members of `store`, all in the state `unknown`, at the
    /// recorder that is installed now.
    pub fn new(store: &str, members: usize) -> Self {
        let counts =
            metrics::with_recorder(|recorder| Registry::new(recorder, store).gauges(&MEMBERS));
        let gauges = Self {
            counts,
            members: vec![Facts::default(); members],
        };
        for facts in &gauges.members {
            gauges.counts.of(facts.vote_state()).increment(1);
        }
        gauges
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
        let before = std::mem::replace(&mut self.members[member], facts).vote_state();
        if before != facts.vote_state() {
            self.counts.of(before).decrement(1);
            self.counts.of(facts.vote_state()).increment(1);
        }
    }
}

impl Drop for MemberGauges {
    fn drop(&mut self) {
        for facts in &self.members {
            self.counts.of(facts.vote_state()).decrement(1);
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
        let mut members = recorder.scope(|| MemberGauges::new("a store", 1));
        let state = || {
            let count = |word: &&str| recorder.sum(MEMBERS.name, &[("state", word)]);
            let counted = VoteState::VALUES.iter().filter(|word| count(word) != 0.0);
            assert!(counted.clone().all(|word| count(word) == 1.0));
            counted.copied().collect::<Vec<_>>()
        };
        for (counts, word) in [
            (None, "unknown"),
            (Some(true), "trusted"),
            (Some(false), "untrusted"),
        ] {
            if let Some(counts) = counts {
                members.judged(0, counts);
            }
            assert_eq!(state(), [word]);
            members.failing(0, true);
            assert_eq!(state(), ["failing"], "was {word}");
            members.failing(0, false);
            assert_eq!(state(), [word]);
        }
        members.failing(0, true);
        members.judged(0, true);
        assert_eq!(state(), ["failing"], "of another's word");
        drop(members);
        assert!(state().is_empty());
    }
}
