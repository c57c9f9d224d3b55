use crate::measure::record::{Record, Section};
use crate::report::statistics::{percentile, sorted};

/// What the sections between two instants show.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Figures {
    /// From just before release is called until the next acquire has returned, in microseconds.
    /// Counts only releases that found a waiter.
    pub(crate) p50: f64,
    pub(crate) p99: f64,
    pub(crate) grants: usize,
    pub(crate) grants_least: usize,
    pub(crate) grants_most: usize,
    /// Sections that began before the one before ended.
    pub(crate) overlaps: usize,
}

impl Figures {
    /// Of the sections that lie wholly between `from` and `to`; `None` without a hand-over.
    pub(crate) fn of(record: &Record, waiters: usize, from: u64, to: u64) -> Option<Self> {
        let mut all = record.sections.clone();
        all.sort_by_key(|section| section.acquired);
        let waiting = earliest_still_waiting(&all, &record.pending);
        let within: Vec<(Section, Option<u64>)> = all
            .into_iter()
            .zip(waiting)
            .filter(|(section, _)| section.acquired >= from && section.releasing <= to)
            .collect();
        let mut handovers = Vec::new();
        let (mut overlaps, mut freed) = (0, 0);
        for pair in within.windows(2) {
            let [(one, _), (next, waiting)] = pair else {
                continue;
            };
            freed = freed.max(one.releasing);
            overlaps += usize::from(next.acquired < freed);
            if waiting.is_some_and(|asked| asked <= one.releasing) {
                handovers.push(micros(next.acquired.saturating_sub(one.releasing)));
            }
        }
        let handovers = sorted(handovers);
        let mut grants = vec![0_usize; waiters];
        for (section, _) in &within {
            grants[section.waiter] += 1;
        }
        Some(Self {
            p50: percentile(&handovers, 50)?,
            p99: percentile(&handovers, 99)?,
            grants: within.len(),
            grants_least: grants.iter().copied().min().unwrap_or(0),
            grants_most: grants.iter().copied().max().unwrap_or(0),
            overlaps,
        })
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

    fn figures(sections: Vec<Section>, pending: Vec<u64>, from: u64, to: u64) -> Option<Figures> {
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
        let expected = Figures {
            p50: 130.0,
            p99: 200.0,
            grants: 3,
            grants_least: 1,
            grants_most: 1,
            overlaps: 0,
        };
        assert_eq!(figures(all, vec![], 0, 1_000_000), Some(expected));
    }

    #[test]
    fn a_lock_without_waiters_is_not_handed_over() {
        let all = vec![section(0, 0, 0, 1000), section(1, 1500, 1600, 2600)];
        assert_eq!(figures(all.clone(), vec![], 0, 10_000), None);
        // A waiter that never got the lock was waiting all the time.
        let starved = figures(all, vec![0], 0, 10_000).unwrap();
        assert_eq!((starved.p50, starved.p99), (600.0, 600.0));
    }

    #[test]
    fn two_holders_at_once_are_counted() {
        let all = vec![
            section(0, 0, 0, 5000),
            section(1, 0, 1000, 2000),
            section(1, 0, 3000, 4000),
            section(1, 0, 6000, 7000),
        ];
        let figures = figures(all, vec![], 0, 10_000).unwrap();
        assert_eq!(figures.overlaps, 2);
        assert_eq!((figures.grants_least, figures.grants_most), (0, 3));
    }

    #[test]
    fn sections_outside_the_window_do_not_count() {
        let all = vec![
            section(0, 0, 0, 1000),
            section(1, 0, 1100, 2100),
            section(2, 0, 2200, 3200),
            section(0, 0, 3300, 4300),
        ];
        let figures = figures(all, vec![], 1000, 3500).unwrap();
        assert_eq!((figures.grants_least, figures.grants_most), (0, 1));
    }
}
