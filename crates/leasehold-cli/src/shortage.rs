use std::fmt;
use std::time::Duration;

use leasehold::{MemberFailure, MemberHealth};

use crate::set::have_no_card;

/// Why a set grants no lock at present: fewer of its members count than are needed.
#[derive(Clone, Debug)]
pub(crate) struct Shortage {
    total: usize,
    /// Those that do not count.
    pub(crate) failures: Vec<MemberFailure>,
    /// No member that answers has a card.
    is_unformed: bool,
}

/// How many of `members` must count.
pub(crate) fn needed(members: usize) -> usize {
    members / 2 + 1
}

impl Shortage {
    /// The shortage in what members said, if there is one. A store without members has none.
    pub(crate) fn of(health: &[MemberHealth]) -> Option<Self> {
        let failure = |member: &MemberHealth| match &member.presence {
            Err(error) => Some(MemberFailure::new(member.id.clone(), error.clone())),
            Ok(_) => member.distrust.clone(),
        };
        let total = health.len();
        let failures: Vec<_> = health.iter().filter_map(failure).collect();
        let answers = health
            .iter()
            .filter_map(|member| member.presence.as_ref().ok());
        let is_short = total > 0 && total - failures.len() < needed(total);
        is_short.then(|| Self {
            total,
            failures,
            is_unformed: have_no_card(total, answers),
        })
    }

    /// After how long enough members count again, if it takes nothing but time.
    pub(crate) fn counts_again(&self) -> Option<Duration> {
        let lacking = needed(self.total) + self.failures.len() - self.total;
        let known = self
            .failures
            .iter()
            .filter_map(|failure| failure.counts_again);
        let mut spans: Vec<_> = known.collect();
        spans.sort_unstable();
        spans.get(lacking - 1).copied()
    }

    /// What can be done where no member has a card.
    pub(crate) fn advice(&self) -> Option<&'static str> {
        self.is_unformed.then_some(NOT_FORMED)
    }
}

/// Said of a set without cards.
pub(crate) const NOT_FORMED: &str = "the set is not formed: once all its servers answer, any client \
                                     forms it, and `leasehold init` lets new servers count at once";

impl fmt::Display for Shortage {
    /// The most important comes first: on a terminal the line is cut at the edge.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (total, needed) = (self.total, needed(self.total));
        let counting = total - self.failures.len();
        if let Some(advice) = self.advice() {
            write!(f, "{advice}; ")?;
        }
        match self.counts_again() {
            Some(span) => write!(
                f,
                "enough members count in {} ({counting} of {total} now, {needed} are needed)",
                whole_seconds(span)
            )?,
            None => write!(
                f,
                "{counting} of {total} members count, {needed} are needed"
            )?,
        }
        for failure in &self.failures {
            write!(f, "; {failure}")?;
        }
        Ok(())
    }
}

/// A span for people who wait for its end: never shorter than it is.
pub(crate) fn whole_seconds(span: Duration) -> humantime::FormattedDuration {
    let secs = span.as_secs() + u64::from(span.subsec_nanos() > 0);
    humantime::format_duration(Duration::from_secs(secs))
}

#[cfg(test)]
mod tests {
    use super::*;
    use leasehold::clock::WallTime;
    use leasehold::{Card, Error, ErrorKind, Life, MemberId, MemberSet, Presence, RunId};

    fn member(id: &str, out_for: Option<u64>) -> MemberHealth {
        let clock = WallTime::from_micros(1);
        let second = Duration::from_secs(1);
        let mut presence = Presence::new(RunId::new(id), clock, second);
        presence.card = Some(Card {
            set: MemberSet::new([MemberId::new(id)], second, second),
            generation: 1,
            changed: clock,
            life: Life::parse("0123456789abcdef").unwrap(),
            since: clock,
            run: presence.run.clone(),
            durable: false,
            sightings: Default::default(),
        });
        let mut health = MemberHealth::new(MemberId::new(id), Ok(presence));
        health.distrust = out_for.map(|millis| {
            let error = Error::new(ErrorKind::Untrusted, "restarted");
            let mut failure = MemberFailure::new(MemberId::new(id), error);
            failure.counts_again = Some(Duration::from_millis(millis));
            failure
        });
        health
    }

    fn silent(id: &str) -> MemberHealth {
        let error = Error::new(ErrorKind::Unreachable, "connection refused");
        MemberHealth::new(MemberId::new(id), Err(error))
    }

    #[test]
    fn a_majority_is_enough_and_no_members_lack_nothing() {
        assert!(Shortage::of(&[]).is_none());
        let two = [member("a", None), silent("b"), member("c", None)];
        assert!(Shortage::of(&two).is_none());
    }

    #[test]
    fn it_ends_when_as_many_count_again_as_are_needed() {
        let out = [
            member("a", Some(30_000)),
            member("b", Some(5_200)),
            member("c", Some(9_000)),
        ];
        let shortage = Shortage::of(&out).unwrap();
        assert_eq!(shortage.counts_again(), Some(Duration::from_secs(9)));
        let dead = [member("a", Some(30_000)), silent("b"), silent("c")];
        let shortage = Shortage::of(&dead).unwrap();
        assert_eq!(shortage.counts_again(), None);
        let text = Shortage::of(&[member("a", Some(5_200)), silent("b"), member("c", None)]);
        assert!(text.unwrap().to_string().starts_with(
            "enough members count in 6s (1 of 3 now, 2 are needed); a: restarted (counts again in 5s); b: "
        ));
    }

    #[test]
    fn what_to_do_is_said_where_no_member_has_a_card() {
        let mut first = member("a", Some(1));
        let of = |first: &MemberHealth| {
            Shortage::of(&[first.clone(), silent("b"), silent("c")]).unwrap()
        };
        assert_eq!(of(&first).advice(), None);
        first.presence.as_mut().unwrap().card = None;
        assert!(of(&first).to_string().starts_with(NOT_FORMED));
        let dead = Shortage::of(&[silent("a"), silent("b"), silent("c")]).unwrap();
        assert_eq!(dead.advice(), None, "nobody knows whether it has cards");
        let two = Shortage::of(&[silent("a"), silent("b")]).unwrap();
        assert_eq!(two.advice(), None, "no set");
    }
}
