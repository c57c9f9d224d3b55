use serde::{Deserialize, Serialize};

use crate::measure::record::{Record, Section};
use crate::report::statistics::{mean, percentile, sorted};

/// What the sections between two instants show.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Figures {
    pub(crate) sections: usize,
    pub(crate) sections_per_second: f64,
    /// From just before release is called until the next acquire has returned, in microseconds.
    /// Counts only releases that found a waiter.
    pub(crate) handover_p50: Option<f64>,
    pub(crate) handover_p99: Option<f64>,
    /// How many hand-overs that were.
    pub(crate) handovers: usize,
    /// The same over all pairs of sections, with or without a waiter: how long the lock was free, in
    /// microseconds per section.
    pub(crate) idle: Option<f64>,
    /// How long a section really took, in microseconds.
    pub(crate) hold: Option<f64>,
    /// The share of sections whose holder had held the section before too.
    pub(crate) same_again: f64,
    pub(crate) grants_least: usize,
    pub(crate) grants_most: usize,
    /// Sections that began before the one before ended.
    pub(crate) overlaps: usize,
}

impl Figures {
    /// Of the sections that lie wholly between `from` and `to`.
    pub(crate) fn of(record: &Record, waiters: usize, from: u64, to: u64) -> Self {
        let mut all = record.sections.clone();
        all.sort_by_key(|section| section.acquired);
        let waiting = earliest_still_waiting(&all, &record.pending);
        let within: Vec<(Section, Option<u64>)> = all
            .into_iter()
            .zip(waiting)
            .filter(|(section, _)| section.acquired >= from && section.releasing <= to)
            .collect();
        let count = within.len();
        let (mut handovers, mut gaps) = (Vec::new(), Vec::new());
        let (mut same, mut overlaps, mut freed) = (0, 0, 0);
        for pair in within.windows(2) {
            let [(one, _), (next, waiting)] = pair else {
                continue;
            };
            freed = freed.max(one.releasing);
            overlaps += usize::from(next.acquired < freed);
            same += usize::from(one.waiter == next.waiter);
            let gap = micros(next.acquired.saturating_sub(one.releasing));
            gaps.push(gap);
            if waiting.is_some_and(|asked| asked <= one.releasing) {
                handovers.push(gap);
            }
        }
        let handovers = sorted(handovers);
        let mut grants = vec![0_usize; waiters];
        for (section, _) in &within {
            grants[section.waiter] += 1;
        }
        let holds: Vec<f64> = within
            .iter()
            .map(|(section, _)| micros(section.releasing.saturating_sub(section.acquired)))
            .collect();
        Self {
            sections: count,
            sections_per_second: number(count) / (micros(to.saturating_sub(from)) / 1e6),
            handover_p50: percentile(&handovers, 50),
            handover_p99: percentile(&handovers, 99),
            handovers: handovers.len(),
            idle: mean(&gaps),
            hold: mean(&holds),
            same_again: number(same) / number(count.saturating_sub(1).max(1)),
            grants_least: grants.iter().copied().min().unwrap_or(0),
            grants_most: grants.iter().copied().max().unwrap_or(0),
            overlaps,
        }
    }
}

/// For each section, the earliest request among its own, those of all later sections, and those still
/// pending at the end.
fn earliest_still_waiting(sections: &[Section], pending: &[u64]) -> Vec<Option<u64>> {
    let mut earliest = pending.iter().copied().min();
    let mut from_the_end: Vec<Option<u64>> = sections
        .iter()
        .rev()
        .map(|section| {
            earliest = Some(earliest.map_or(section.asked, |asked| asked.min(section.asked)));
            earliest
        })
        .collect();
    from_the_end.reverse();
    from_the_end
}

fn micros(nanos: u64) -> f64 {
    std::time::Duration::from_nanos(nanos).as_secs_f64() * 1e6
}

/// Returns each value once, the least first.
pub(crate) fn distinct(values: impl Iterator<Item = usize>) -> Vec<usize> {
    let values: std::collections::BTreeSet<usize> = values.collect();
    values.into_iter().collect()
}

/// Counts of one run are far below four thousand million.
pub(crate) fn number(count: usize) -> f64 {
    f64::from(u32::try_from(count).unwrap_or(u32::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A section from microseconds.
    fn section(waiter: usize, asked: u64, acquired: u64, releasing: u64) -> Section {
        Section {
            waiter,
            asked: asked * 1000,
            acquired: acquired * 1000,
            releasing: releasing * 1000,
        }
    }

    fn figures(sections: Vec<Section>, pending: Vec<u64>, from: u64, to: u64) -> Figures {
        let record = Record {
            sections,
            pending,
            ..Record::default()
        };
        Figures::of(&record, 3, from * 1000, to * 1000)
    }

    #[test]
    fn a_hand_over_goes_from_release_to_the_next_acquire() {
        let all = vec![
            section(1, 0, 1130, 2130),
            section(0, 0, 0, 1000),
            section(2, 0, 2330, 3330),
        ];
        let figures = figures(all, vec![], 0, 1_000_000);
        assert_eq!(figures.handovers, 2);
        assert_eq!(figures.handover_p50, Some(130.0));
        assert_eq!(figures.handover_p99, Some(200.0));
        assert_eq!(figures.idle, Some(165.0));
        assert_eq!(figures.hold, Some(1000.0));
        assert!((figures.sections_per_second - 3.0).abs() < 1e-9);
        assert_eq!((figures.grants_least, figures.grants_most), (1, 1));
        assert_eq!((figures.overlaps, figures.sections), (0, 3));
    }

    #[test]
    fn a_lock_that_nobody_waits_for_is_not_handed_over() {
        let all = vec![section(0, 0, 0, 1000), section(1, 1500, 1600, 2600)];
        let unwanted = figures(all.clone(), vec![], 0, 10_000);
        assert_eq!((unwanted.handovers, unwanted.idle), (0, Some(600.0)));
        assert_eq!(unwanted.handover_p50, None);
        // A waiter that never got the lock was waiting all the time.
        let starved = figures(all, vec![0], 0, 10_000);
        assert_eq!((starved.handovers, starved.handover_p50), (1, Some(600.0)));
    }

    #[test]
    fn whoever_waits_longest_makes_it_a_hand_over_though_another_comes_first() {
        let all = vec![
            section(0, 0, 0, 1000),
            section(1, 1500, 1600, 2600),
            section(2, 500, 2700, 3700),
        ];
        assert_eq!(figures(all, vec![], 0, 10_000).handovers, 2);
    }

    #[test]
    fn two_holders_at_once_are_counted_and_so_is_the_same_one_again() {
        let all = vec![
            section(0, 0, 0, 5000),
            section(1, 0, 1000, 2000),
            section(1, 0, 3000, 4000),
            section(1, 0, 6000, 7000),
        ];
        let figures = figures(all, vec![], 0, 10_000);
        assert_eq!(figures.overlaps, 2);
        assert!((figures.same_again - 2.0 / 3.0).abs() < 1e-9);
        assert_eq!((figures.grants_least, figures.grants_most), (0, 3));
    }

    #[test]
    fn what_lies_outside_the_window_does_not_count() {
        let all = vec![
            section(0, 0, 0, 1000),
            section(1, 0, 1100, 2100),
            section(2, 0, 2200, 3200),
            section(0, 0, 3300, 4300),
        ];
        let figures = figures(all, vec![], 1000, 3500);
        assert_eq!((figures.sections, figures.handovers), (2, 1));
    }
}
