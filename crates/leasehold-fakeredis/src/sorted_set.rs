use std::cmp::Ordering;
use std::ops::Range;

use crate::failure::Failure;
use crate::number;

/// Members with scores, ordered by score, and then by member.
///
/// A lookup searches the members one by one. The sets of locks are small, so an index would cost more.
#[derive(Clone, Debug, Default)]
pub(crate) struct SortedSet {
    entries: Vec<(f64, Vec<u8>)>,
}

fn order(a: (f64, &[u8]), b: (f64, &[u8])) -> Ordering {
    let by_score = a.0.partial_cmp(&b.0).unwrap_or(Ordering::Equal);
    by_score.then_with(|| a.1.cmp(b.1))
}

impl SortedSet {
    pub(crate) fn entries(&self) -> &[(f64, Vec<u8>)] {
        &self.entries
    }

    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }

    pub(crate) fn rank(&self, member: &[u8]) -> Option<usize> {
        self.entries.iter().position(|(_, other)| other == member)
    }

    pub(crate) fn score(&self, member: &[u8]) -> Option<f64> {
        Some(self.entries[self.rank(member)?].0)
    }

    pub(crate) fn insert(&mut self, score: f64, member: &[u8]) {
        let entry = match self.rank(member) {
            Some(rank) => (score, self.entries.remove(rank).1),
            None => (score, member.to_vec()),
        };
        let is_before = |(score, other): &(f64, Vec<u8>)| {
            order((*score, other), (entry.0, &entry.1)) == Ordering::Less
        };
        let at = self.entries.partition_point(is_before);
        self.entries.insert(at, entry);
    }

    pub(crate) fn remove(&mut self, member: &[u8]) -> bool {
        let rank = self.rank(member);
        if let Some(rank) = rank {
            self.entries.remove(rank);
        }
        rank.is_some()
    }

    pub(crate) fn remove_range(&mut self, ranks: Range<usize>) -> Vec<(f64, Vec<u8>)> {
        self.entries.drain(ranks).collect()
    }

    /// Returns the ranks of the members whose scores lie in a range.
    pub(crate) fn ranks_by_score(&self, scores: &ScoreRange) -> Range<usize> {
        let start = self.entries.partition_point(|(score, _)| {
            let (min, is_open) = scores.min;
            *score < min || (is_open && *score == min)
        });
        let end = self.entries.partition_point(|(score, _)| {
            let (max, is_open) = scores.max;
            *score < max || (!is_open && *score == max)
        });
        start..end.max(start)
    }
}

/// Scores between two limits. Each limit may be exclusive, as in `(5`.
pub(crate) struct ScoreRange {
    min: (f64, bool),
    max: (f64, bool),
}

impl ScoreRange {
    pub(crate) fn read(min: &[u8], max: &[u8]) -> Result<Self, Failure> {
        let limit = |text: &[u8]| {
            let inner = text.strip_prefix(b"(");
            let score = number::float(inner.unwrap_or(text));
            let score = score.map_err(|_| Failure::from("ERR min or max is not a float"));
            score.map(|score| (score, inner.is_some()))
        };
        Ok(Self {
            min: limit(min)?,
            max: limit(max)?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set() -> SortedSet {
        let mut set = SortedSet::default();
        for (score, member) in [(2.0, "b"), (1.0, "z"), (2.0, "a"), (3.0, "c")] {
            set.insert(score, member.as_bytes());
        }
        set
    }

    #[test]
    fn equal_scores_are_ordered_by_member() {
        let set = set();
        let members: Vec<_> = set.entries().iter().map(|(_, member)| member[0]).collect();
        assert_eq!(members, b"zabc");
        assert_eq!(set.rank(b"b"), Some(2));
    }

    #[test]
    fn ranges_have_open_and_closed_ends() {
        let set = set();
        let ranks = |min: &str, max: &str| {
            let range = ScoreRange::read(min.as_bytes(), max.as_bytes()).unwrap();
            set.ranks_by_score(&range)
        };
        assert_eq!(ranks("-inf", "+inf"), 0..4);
        assert_eq!(ranks("(1", "2"), 1..3);
        assert_eq!(ranks("1", "(2"), 0..1);
        assert!(ranks("3", "1").is_empty());
    }
}
