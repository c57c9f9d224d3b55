use std::collections::BTreeSet;
use std::time::Duration;

use leasehold::Owner;

use super::Violation;
use super::waits::askings;
use crate::sim::history::{Event, What};

/// I5: once everybody has ended nobody is queued, nor is anything reserved, but for those of whom a
/// fault may have kept the servers from knowing; and once queues are forgotten, nobody at all.
pub(super) fn check(events: &[Event]) -> Vec<Violation> {
    let mut violations = Vec::new();
    let excused = excused(events);
    let mut rested = false;
    for Event { at, what } in events {
        match what {
            What::Rested => rested = true,
            What::Queued {
                server,
                key,
                waiter,
            } if rested || !excused.contains(waiter) => {
                let text = format!("server {server} still has {waiter} in the queue of key {key}");
                violations.push(Violation {
                    invariant: "I5",
                    at: *at,
                    text,
                });
            }
            _ => {}
        }
    }
    violations
}

/// Those who ended while things went wrong, or without a word.
fn excused(events: &[Event]) -> BTreeSet<Owner> {
    let cleared = events
        .iter()
        .find(|event| matches!(event.what, What::Cleared));
    let noticed = cleared.map_or(Duration::MAX, |event| event.at + UNNOTICED_MAX);
    let crashed = events.iter().filter_map(|event| match event.what {
        What::Crashed { client, .. } => Some(client),
        _ => None,
    });
    let crashed: BTreeSet<usize> = crashed.collect();
    let askings = askings(events).into_iter();
    let excused = askings.filter(|it| it.over <= noticed || crashed.contains(&it.client));
    excused.filter_map(|asking| asking.waiter).collect()
}

/// For so long a client may take a member for silent that answers again, and not tell it anything.
const UNNOTICED_MAX: Duration = Duration::from_secs(2);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sim::checks::invented::*;
    use crate::sim::history::Manner;

    fn ends_at(millis: u64, then: &[Event]) -> usize {
        let mut events = waits(1_000, 1, 0, Manner::Patient);
        let cleared = event(2_000, What::Cleared);
        let ended = event(millis, What::Cancelled { hold: 1 });
        let in_order = if millis < 2_000 {
            [ended, cleared]
        } else {
            [cleared, ended]
        };
        events.extend(in_order);
        events.extend_from_slice(then);
        check(&events).len()
    }

    #[test]
    fn a_waiter_that_is_left_in_a_queue_is_rejected() {
        let settled = [event(5_000, What::Settled), queued(5_000, 1)];
        assert_eq!(ends_at(4_001, &settled), 1);
        for ends in [1_500, 4_000] {
            let left = ends_at(ends, &settled);
            assert_eq!(left, 0, "its leaving may have been lost");
        }
        let crashed = [crashed(4_500, 0, true)];
        assert_eq!(ends_at(4_001, &[&crashed[..], &settled].concat()), 0);
    }

    #[test]
    fn nobody_is_queued_for_ever() {
        let rested = [event(40_000, What::Rested), queued(40_000, 1)];
        assert_eq!(ends_at(1_500, &rested), 1);
    }
}
