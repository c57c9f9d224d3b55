//! Decides which of an observer's reads are worth reporting.
#![deny(clippy::disallowed_types)]

use super::leader_change::{Leader, LeaderChange};
use crate::store::Version;
use crate::types::{Error, ErrorKind};

/// What the observer has reported so far. Pure: it takes the result of each read and returns what to
/// report.
#[derive(Debug, Default)]
pub(super) struct ChangeTracker {
    reported: Reported,
    /// The greatest version seen on any leader's record.
    newest: Option<Version>,
    /// The last read did not find the leader that was reported.
    missed: bool,
}

/// The last report.
#[derive(Debug, Default)]
enum Reported {
    #[default]
    Nothing,
    Leader(Leader),
    Nobody,
    Unknown(ErrorKind),
}

/// A leader, and the position of its record among the records of all leaders.
#[derive(Clone, Debug)]
pub(super) struct Seen {
    pub(super) leader: Leader,
    pub(super) version: Version,
}

/// What follows from a read.
#[derive(Debug)]
pub(super) enum NextStep {
    Report(LeaderChange),
    /// Nothing new.
    Wait,
    /// Nothing to report yet: a single read may miss a holder while servers come and go.
    ReadAgain,
}

impl ChangeTracker {
    pub(super) fn learn(&mut self, seen: Result<Option<Seen>, Error>) -> NextStep {
        let missed = std::mem::take(&mut self.missed);
        match (seen, &self.reported) {
            (Ok(Some(seen)), _) => self.found(seen),
            (Ok(None), Reported::Nobody) => NextStep::Wait,
            (Ok(None), Reported::Leader(_)) if !missed => {
                self.missed = true;
                NextStep::ReadAgain
            }
            (Ok(None), _) => {
                self.reported = Reported::Nobody;
                NextStep::Report(LeaderChange::Nobody)
            }
            (Err(error), _) => self.failed(error),
        }
    }

    fn found(&mut self, Seen { leader, version }: Seen) -> NextStep {
        let newest = *self.newest.get_or_insert(version);
        if version.fence < newest.fence {
            return self.failed(went_back(version, newest));
        }
        // An older record of the same leader.
        if version < newest {
            return NextStep::Wait;
        }
        self.newest = Some(version);
        match &self.reported {
            Reported::Leader(reported) if !says_more(&leader, reported) => NextStep::Wait,
            _ => {
                self.reported = Reported::Leader(leader.clone());
                NextStep::Report(LeaderChange::Leads(leader))
            }
        }
    }

    fn failed(&mut self, error: Error) -> NextStep {
        if matches!(self.reported, Reported::Unknown(kind) if kind == error.kind()) {
            return NextStep::Wait;
        }
        self.reported = Reported::Unknown(error.kind());
        NextStep::Report(LeaderChange::Unknown(error))
    }
}

/// Returns whether `leader` differs from the reported one, has published another value, or gives its
/// description for the first time. A leader also writes the same record again now and then.
fn says_more(leader: &Leader, reported: &Leader) -> bool {
    let is_named = leader.client.is_some() && reported.client.is_none();
    (leader.fence, &leader.value) != (reported.fence, &reported.value) || is_named
}

fn went_back(version: Version, newest: Version) -> Error {
    let (fence, greatest) = (version.fence, newest.fence);
    let text = format!(
        "a leader with fence {fence} was seen after one with {greatest}: the store forgot its fences"
    );
    Error::new(ErrorKind::Corrupt, text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::env::clock::WallTime;
    use crate::env::{Env, SystemEntropy};
    use crate::types::{ClientId, Fence, Owner};

    /// A leader that wrote its `step`th value.
    fn seen(fence: u64, step: u32, value: &str) -> Seen {
        let fence = Fence::new(fence).unwrap();
        let leader = Leader {
            owner: Owner::random(ClientId::random(&SystemEntropy), &SystemEntropy),
            client: Some(Env::default().this_process(None)),
            fence,
            value: value.into(),
            since: WallTime::from_micros(0),
        };
        let version = Version { fence, step };
        Seen { leader, version }
    }

    /// An observer, and what it reports after each read.
    #[derive(Default)]
    struct Observer(ChangeTracker);

    impl Observer {
        fn sees(&mut self, fence: u64, step: u32, value: &str) -> String {
            reported(self.0.learn(Ok(Some(seen(fence, step, value)))))
        }

        fn sees_nobody(&mut self) -> String {
            reported(self.0.learn(Ok(None)))
        }

        fn fails(&mut self, kind: ErrorKind) -> String {
            reported(self.0.learn(Err(Error::new(kind, "failed"))))
        }
    }

    fn reported(verdict: NextStep) -> String {
        match verdict {
            NextStep::Report(LeaderChange::Leads(leader)) => {
                format!("{} {}", leader.fence, leader.value)
            }
            NextStep::Report(LeaderChange::Nobody) => "nobody".into(),
            NextStep::Report(LeaderChange::Unknown(error)) => error.to_string(),
            NextStep::Wait => String::new(),
            NextStep::ReadAgain => "again".into(),
        }
    }

    #[test]
    fn only_changes_are_told() {
        let mut observer = Observer::default();
        assert_eq!(observer.sees_nobody(), "nobody");
        assert_eq!(observer.sees_nobody(), "");
        assert_eq!(observer.sees(7, 1, "a"), "7 a");
        assert_eq!(observer.sees(7, 1, "a"), "");
        assert_eq!(observer.sees(7, 2, "a"), "", "written again, as it was");
        assert_eq!(observer.sees(7, 3, "b"), "7 b");
        assert_eq!(observer.sees(9, 1, "b"), "9 b");
    }

    #[test]
    fn leader_is_gone_after_two_misses() {
        let mut observer = Observer::default();
        assert_eq!(observer.sees(7, 1, "a"), "7 a");
        assert_eq!(observer.sees_nobody(), "again");
        assert_eq!(observer.sees(7, 1, "a"), "");
        assert_eq!(observer.sees_nobody(), "again");
        assert_eq!(observer.sees_nobody(), "nobody");
        assert_eq!(observer.sees(7, 1, "a"), "7 a", "it can be seen again");
    }

    #[test]
    fn an_older_leader_or_value_is_never_told() {
        let mut observer = Observer::default();
        assert_eq!(observer.sees(9, 2, "b"), "9 b");
        assert_eq!(observer.sees(9, 1, "a"), "");
        let went_back = observer.sees(7, 8, "c");
        assert!(went_back.contains("fence 7 was seen after one with 9"));
        assert_eq!(observer.sees(7, 8, "c"), "", "said once");
        assert_eq!(
            observer.sees(9, 1, "a"),
            "",
            "still older than what was reported"
        );
        assert_eq!(observer.sees(9, 2, "b"), "9 b");
    }

    #[test]
    fn failure_is_reported_once_and_recovery_always() {
        let mut observer = Observer::default();
        assert_eq!(observer.fails(ErrorKind::NoQuorum), "failed");
        assert_eq!(observer.fails(ErrorKind::NoQuorum), "");
        assert_eq!(observer.fails(ErrorKind::Refused), "failed");
        assert_eq!(observer.sees(7, 1, "a"), "7 a");
        assert_eq!(observer.fails(ErrorKind::Refused), "failed");
        assert_eq!(observer.sees(7, 1, "a"), "7 a");
        assert_eq!(observer.fails(ErrorKind::Refused), "failed");
        assert_eq!(observer.sees_nobody(), "nobody");
    }

    #[test]
    fn who_it_is_may_become_known_later() {
        let mut observer = Observer::default();
        let mut unnamed = seen(7, 1, "a");
        unnamed.leader.client = None;
        assert_eq!(reported(observer.0.learn(Ok(Some(unnamed.clone())))), "7 a");
        assert_eq!(reported(observer.0.learn(Ok(Some(unnamed.clone())))), "");
        assert_eq!(observer.sees(7, 1, "a"), "7 a");
        assert_eq!(reported(observer.0.learn(Ok(Some(unnamed)))), "");
    }
}
