use std::fmt;
use std::time::Duration;

use leasehold::member::{MemberFailure, MemberHealth, MemberRecord, MemberStatus};

use crate::output::time_text::whole_seconds;

/// Why a quorum grants no lock at present: too few of its servers have a vote.
#[derive(Clone, Debug)]
pub(crate) struct QuorumShortfall {
    total: usize,
    /// The servers without a vote.
    pub(crate) failures: Vec<MemberFailure>,
    /// No server that answers has a record of the quorum.
    is_uninitialized: bool,
    /// No server has a vote, because a client has just initialized the quorum.
    is_new: bool,
}

/// Whether no server that answers has a record of the quorum, although there are enough `members` for one.
pub(crate) fn have_no_record<'a>(
    members: usize,
    mut answers: impl Iterator<Item = &'a MemberStatus> + Clone,
) -> bool {
    members >= 3
        && answers.clone().next().is_some()
        && answers.all(|it| {
            !it.member_record
                .as_ref()
                .is_some_and(MemberRecord::is_formed)
        })
}

/// How many of `members` must have a vote.
pub(crate) fn needed(members: usize) -> usize {
    members / 2 + 1
}

impl QuorumShortfall {
    /// The shortage according to the health of the servers, if there is one. Files have none.
    pub(crate) fn of(health: &[MemberHealth]) -> Option<Self> {
        let failure = |member: &MemberHealth| match &member.status {
            Err(error) => Some(MemberFailure::new(member.id.clone(), error.clone())),
            Ok(_) => member.untrusted_reason.clone(),
        };
        let total = health.len();
        let failures: Vec<_> = health.iter().filter_map(failure).collect();
        let answers = health
            .iter()
            .filter_map(|member| member.status.as_ref().ok());
        let is_short = total > 0 && total - failures.len() < needed(total);
        is_short.then(|| Self {
            total,
            is_new: failures.len() == total
                && answers.clone().filter(|it| is_new(it)).count() == total,
            is_uninitialized: have_no_record(total, answers),
            failures,
        })
    }

    /// When enough servers have a vote again, if only time is missing.
    pub(crate) fn no_vote_for(&self) -> Option<Duration> {
        let lacking = needed(self.total) + self.failures.len() - self.total;
        let known = self
            .failures
            .iter()
            .filter_map(|failure| failure.eligible_after);
        let mut spans: Vec<_> = known.collect();
        spans.sort_unstable();
        spans.get(lacking - 1).copied()
    }

    /// What to do if the quorum is not initialized, or was just initialized by a client.
    pub(crate) fn advice(&self) -> Option<&'static str> {
        match (self.is_uninitialized, self.is_new) {
            (true, _) => Some(NOT_INITIALIZED),
            (_, true) => Some(NEW),
            _ => None,
        }
    }

    /// How many servers have a vote, and when enough of them do; of a single server, why it cannot be used. The most
    /// important part comes first, because a terminal cuts off the line.
    pub(crate) fn summary(&self) -> String {
        // A single server is no quorum, and has no vote.
        if let (1, [failure]) = (self.total, &self.failures[..]) {
            return failure.error.reason().to_owned();
        }
        let (total, needed) = (self.total, needed(self.total));
        let voting = total - self.failures.len();
        let state = match self.no_vote_for() {
            Some(span) => format!(
                "enough servers have a vote in {} (now {voting} of {total}, {needed} needed)",
                whole_seconds(span)
            ),
            None => format!("{voting} of {total} servers have a vote, {needed} needed"),
        };
        match (self.is_uninitialized, self.is_new) {
            (true, _) => format!("{NOT_INITIALIZED}; {state}"),
            (_, true) => format!("{state}; {NEW}"),
            _ => state,
        }
    }
}

/// Whether the server joined its quorum recently, which then was initialized.
fn is_new(status: &MemberStatus) -> bool {
    status.member_record.as_ref().is_some_and(|member_record| {
        let age = status.clock.distance(member_record.changed);
        member_record.configuration() == 1 && age < member_record.set.max_ttl * 2
    })
}

/// Printed if new servers have no vote yet.
const NEW: &str = "a client has just initialized this quorum; `leasehold init` ends this wait";

/// What to do if servers are too young for `once`, and waiting is not all that helps.
#[cfg(feature = "redis")]
pub(crate) fn once_remedy<'a>(
    mut answers: impl Iterator<Item = &'a MemberStatus>,
) -> Option<&'static str> {
    let text =
        "if no server lost data before a client initialized the quorum, run `leasehold init` now";
    answers.any(MemberStatus::may_be_stated_new).then_some(text)
}

/// Printed for a quorum without records.
pub(crate) const NOT_INITIALIZED: &str = "the quorum is not initialized; run `leasehold init` to give new servers a vote at once \
                                     (otherwise clients initialize it once all servers answer)";

impl fmt::Display for QuorumShortfall {
    /// Ends with the reason of each server that has no vote.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.summary())?;
        if self.total == 1 {
            return Ok(());
        }
        for failure in MemberFailure::grouped(&self.failures) {
            write!(f, "; {failure}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use leasehold::clock::WallTime;
    use leasehold::member::{DataGeneration, MemberId, MemberRecord, MemberSet, RunId};
    use leasehold::{Error, ErrorKind};

    fn member(id: &str, out_for: Option<u64>) -> MemberHealth {
        let clock = WallTime::from_micros(1);
        let second = Duration::from_secs(1);
        let mut status = MemberStatus::new(RunId::new(id), clock, second);
        status.member_record = Some(MemberRecord {
            set: MemberSet::new([MemberId::new(id)], second, second),
            generation: 1,
            changed: clock,
            data_generation: DataGeneration::parse("0123456789abcdef").unwrap(),
            since: clock,
            run: status.run.clone(),
            durable: false,
            observations: Default::default(),
        });
        let mut health = MemberHealth::new(MemberId::new(id), Ok(status));
        health.untrusted_reason = out_for.map(|millis| {
            let error = Error::new(ErrorKind::Untrusted, "restarted");
            let mut failure = MemberFailure::new(MemberId::new(id), error);
            failure.eligible_after = Some(Duration::from_millis(millis));
            failure
        });
        health
    }

    fn silent(id: &str) -> MemberHealth {
        let error = Error::new(ErrorKind::Unreachable, "connection refused");
        MemberHealth::new(MemberId::new(id), Err(error))
    }

    #[test]
    fn majority_of_members_is_no_shortfall() {
        assert!(QuorumShortfall::of(&[]).is_none());
        let two = [member("a", None), silent("b"), member("c", None)];
        assert!(QuorumShortfall::of(&two).is_none());
    }

    #[test]
    fn shortfall_ends_when_enough_members_have_votes() {
        let out = [
            member("a", Some(30_000)),
            member("b", Some(5_200)),
            member("c", Some(9_000)),
        ];
        let quorum_shortfall = QuorumShortfall::of(&out).unwrap();
        assert_eq!(quorum_shortfall.no_vote_for(), Some(Duration::from_secs(9)));
        let dead = [member("a", Some(30_000)), silent("b"), silent("c")];
        let quorum_shortfall = QuorumShortfall::of(&dead).unwrap();
        assert_eq!(quorum_shortfall.no_vote_for(), None);
        let text = QuorumShortfall::of(&[member("a", Some(5_200)), silent("b"), member("c", None)]);
        assert!(text.unwrap().to_string().starts_with(
            "enough servers have a vote in 6s (now 1 of 3, 2 needed); a: restarted (no vote for 5s 200ms); b: "
        ));
    }

    #[test]
    fn single_server_has_a_reason_and_no_vote() {
        let one = QuorumShortfall::of(&[silent("a")]).unwrap();
        assert_eq!(one.to_string(), "connection refused");
    }

    #[test]
    fn new_quorum_without_votes_names_init() {
        let new = ["a", "b", "c"].map(|id| member(id, Some(1_000)));
        let quorum_shortfall = QuorumShortfall::of(&new).unwrap();
        assert_eq!(quorum_shortfall.advice(), Some(NEW));
        assert!(quorum_shortfall.to_string().contains("leasehold init"));
        let mut old = new;
        for member in &mut old {
            member.status.as_mut().unwrap().clock = WallTime::from_micros(9_000_000);
        }
        assert_eq!(QuorumShortfall::of(&old).unwrap().advice(), None);
    }

    #[test]
    fn advice_is_given_when_no_member_has_records() {
        let mut first = member("a", Some(1));
        let of = |first: &MemberHealth| {
            QuorumShortfall::of(&[first.clone(), silent("b"), silent("c")]).unwrap()
        };
        assert_eq!(of(&first).advice(), None);
        first.status.as_mut().unwrap().member_record = None;
        assert!(of(&first).to_string().starts_with(NOT_INITIALIZED));
        let dead = QuorumShortfall::of(&[silent("a"), silent("b"), silent("c")]).unwrap();
        assert_eq!(
            dead.advice(),
            None,
            "it is unknown whether they have records"
        );
        let two = QuorumShortfall::of(&[silent("a"), silent("b")]).unwrap();
        assert_eq!(two.advice(), None, "no set");
    }
}
