use std::collections::BTreeMap;

use super::Violation;
use super::facts::Facts;
use crate::history::{Event, RecordEvent, What};
use crate::time::Time;

/// A fence and a step.
type Version = (u64, u32);

/// What the clients learned of one record.
#[derive(Default)]
struct Record {
    /// The values that a majority has, each with the instant at which a client learned it.
    settled: Vec<(Time, Version)>,
    /// The openings: when the client learned of them, their fences and what they found.
    opened: Vec<(Time, u64, Option<Version>)>,
}

/// I2: each opening finds every acknowledged value of a smaller fence. Each reading finds the values that
/// were acknowledged before it began.
///
/// A server that lost its data may have lost records, too. Runs with such a server are not checked.
pub(super) fn records(facts: &Facts<'_>) -> Vec<Violation> {
    let forgot = |event: &Event| matches!(event.what, What::Forgot { .. });
    if facts.events.iter().any(forgot) {
        return Vec::new();
    }
    let mut records = BTreeMap::<usize, Record>::new();
    let mut violations = Vec::new();
    for event in facts.events {
        let What::Record { lock, what, .. } = &event.what else {
            continue;
        };
        let record = records.entry(*lock).or_default();
        match *what {
            RecordEvent::Opened { fence, found } => record.opened.push((event.at, fence, found)),
            RecordEvent::Written { version } => record.settled.push((event.at, version)),
            RecordEvent::Read {
                began,
                found,
                settled,
            } => {
                let before = record.settled.iter().filter(|(at, _)| *at < began);
                let greatest = before.map(|(_, version)| *version).max();
                if found < greatest {
                    let text = format!("lock {lock}: read {found:?} after {greatest:?}");
                    violations.push(reject(event.at, text));
                }
                if let Some(version) = found.filter(|_| settled) {
                    record.settled.push((event.at, version));
                }
            }
        }
    }
    for (lock, record) in &records {
        for (at, fence, found) in &record.opened {
            let settled = record.settled.iter().map(|(_, version)| *version);
            let missed = settled.filter(|version| version.0 < *fence && Some(*version) > *found);
            if let Some(version) = missed.max() {
                let text =
                    format!("lock {lock}: opened by {fence} found {found:?}, not {version:?}");
                violations.push(reject(*at, text));
            }
        }
    }
    violations
}

fn reject(at: Time, text: String) -> Violation {
    Violation {
        invariant: "I2",
        check: "records",
        at,
        text,
    }
}

#[cfg(test)]
mod tests {
    use super::super::invented::{event, judge};
    use super::*;

    fn record(millis: u64, what: RecordEvent) -> Event {
        let (client, lock) = (0, 0);
        event(millis, What::Record { client, lock, what })
    }

    fn opened(millis: u64, fence: u64, found: Option<Version>) -> Event {
        record(millis, RecordEvent::Opened { fence, found })
    }

    fn written(millis: u64, version: Version) -> Event {
        record(millis, RecordEvent::Written { version })
    }

    fn read(millis: u64, began: u64, found: Option<Version>, settled: bool) -> Event {
        let began = began * crate::time::MILLIS;
        let what = RecordEvent::Read {
            began,
            found,
            settled,
        };
        record(millis, what)
    }

    #[test]
    fn opening_that_misses_a_value_is_rejected() {
        let ok = vec![written(10, (5, 1)), opened(20, 7, Some((5, 1)))];
        assert_eq!(judge(records, ok), 0);
        let missed = vec![written(10, (5, 2)), opened(20, 7, Some((5, 1)))];
        assert_eq!(judge(records, missed), 1);
        // The write came later, and should have been refused.
        let late = vec![opened(10, 7, None), written(20, (5, 1))];
        assert_eq!(judge(records, late), 1);
        let own = vec![opened(10, 7, None), written(20, (7, 1))];
        assert_eq!(judge(records, own), 0);
    }

    #[test]
    fn reading_that_misses_a_value_is_rejected() {
        let during = vec![written(10, (5, 1)), read(20, 5, None, true)];
        assert_eq!(judge(records, during), 0);
        let after = vec![written(10, (5, 1)), read(20, 15, None, true)];
        assert_eq!(judge(records, after), 1);
        let settled = vec![read(10, 5, Some((5, 1)), true), opened(20, 7, None)];
        assert_eq!(judge(records, settled), 1);
        let open = vec![read(10, 5, Some((5, 1)), false), opened(20, 7, None)];
        assert_eq!(judge(records, open), 0);
    }

    #[test]
    fn lost_data_excuses_a_lost_record() {
        let lost = event(15, What::Forgot { server: 0 });
        let missed = vec![written(10, (5, 2)), lost, opened(20, 7, None)];
        assert_eq!(judge(records, missed), 0);
    }
}
