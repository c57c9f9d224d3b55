use std::time::Duration;

use leasehold::clock::BootInstant;

/// When which members had no vote, as the test that broke them knows. This gives the time for which a free
/// lock was not granted although a majority could grant it.
#[derive(Clone, Debug)]
pub struct Outages {
    members: usize,
    spans: Vec<(usize, BootInstant, BootInstant)>,
}

impl Outages {
    /// Returns the state without outages, for this many members.
    pub fn new(members: usize) -> Self {
        Self {
            members,
            spans: Vec::new(),
        }
    }

    /// Notes that by the rules, `member` had no vote from `from` until `until`.
    pub fn note(&mut self, member: usize, from: BootInstant, until: BootInstant) {
        self.spans.push((member, from, until));
    }

    /// Returns the longest time between `begin` and `end` in which the lock was not `held` while a majority
    /// had a vote. A hold lasts from its grant to the last instant at which it was known to be valid.
    pub fn longest_wait(
        &self,
        held: &[(BootInstant, BootInstant)],
        begin: BootInstant,
        end: BootInstant,
    ) -> Duration {
        let outages = self.spans.iter().map(|(_, from, until)| (*from, *until));
        let mut marks: Vec<_> = outages
            .chain(held.iter().copied())
            .flat_map(|(from, until)| [from, until])
            .filter(|mark| (begin..end).contains(mark))
            .chain([begin, end])
            .collect();
        marks.sort_unstable();
        let is_held = |from, until| {
            let mut holds = held.iter();
            holds.any(|hold| hold.0 <= from && until <= hold.1)
        };
        let mut longest = Duration::ZERO;
        let mut waiting_since = begin;
        for pair in marks.windows(2) {
            let (from, until) = (pair[0], pair[1]);
            if is_held(from, from) {
                waiting_since = from;
            }
            if is_held(from, until) || !self.has_majority(from) {
                waiting_since = until;
            } else {
                longest = longest.max(until.since(waiting_since));
            }
        }
        longest
    }

    /// Whether a majority had a vote just after `instant`.
    fn has_majority(&self, instant: BootInstant) -> bool {
        let is_out = |member: usize| {
            let mut own = self.spans.iter().filter(|span| span.0 == member);
            own.any(|(_, from, until)| (*from..*until).contains(&instant))
        };
        let out = (0..self.members).filter(|member| is_out(*member)).count();
        out * 2 < self.members
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(nanos: u64) -> BootInstant {
        BootInstant::from_nanos(nanos)
    }

    fn longest(outages: &Outages, held: &[(u64, u64)]) -> u128 {
        let held: Vec<_> = held
            .iter()
            .map(|(from, until)| (at(*from), at(*until)))
            .collect();
        outages.longest_wait(&held, at(0), at(100)).as_nanos()
    }

    #[test]
    fn widest_gap_includes_both_ends() {
        let none = Outages::new(3);
        assert_eq!(longest(&none, &[(10, 12), (20, 25), (70, 99)]), 45);
        assert_eq!(longest(&none, &[(10, 10), (20, 30)]), 70);
        assert_eq!(longest(&none, &[(5, 60), (50, 70)]), 30, "they overlap");
        assert_eq!(longest(&none, &[]), 100);
    }

    #[test]
    fn impossible_grants_are_not_counted_as_waits() {
        let mut outages = Outages::new(3);
        outages.note(0, at(10), at(80));
        assert_eq!(
            longest(&outages, &[(10, 10)]),
            90,
            "one of three harms nobody"
        );
        outages.note(1, at(30), at(60));
        assert_eq!(longest(&outages, &[(10, 10), (85, 99)]), 25, "60 to 85");
        outages.note(1, at(55), at(90));
        assert_eq!(longest(&outages, &[(10, 10), (91, 99)]), 20, "10 to 30");
    }
}
