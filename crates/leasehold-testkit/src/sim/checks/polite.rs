use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use leasehold::Owner;

use super::Violation;
use super::queues::Queues;
use crate::sim::execution::Execution;
use crate::sim::history::{Event, Told, What};

/// I10: while nothing is in the way, who is neither next nor the one after asks each server once a
/// second at most, so that the cost of a hand-over does not grow with the queue.
pub(super) fn check(events: &[Event]) -> Vec<Violation> {
    let mut queues = Queues::default();
    let mut latest = BTreeMap::<(Owner, usize), Duration>::new();
    // Since when a waiter is far from its turn wherever it is queued.
    let mut behind = BTreeMap::<Owner, Duration>::new();
    // Until when what a waiter was told may have it ask.
    let mut told = BTreeMap::<Owner, Duration>::new();
    let mut rejected = BTreeSet::new();
    let mut cleared = false;
    let mut violations = Vec::new();
    for event in events {
        queues.see(event);
        match &event.what {
            What::Cleared => cleared = true,
            // Behind those of a client that died it may be the next that lives.
            What::Crashed { .. } if cleared => break,
            What::Queue { waiters, .. } => {
                for waiter in waiters {
                    if queues.places(*waiter).all(|place| place > 2) {
                        behind.entry(*waiter).or_insert(event.at);
                    } else {
                        behind.remove(waiter);
                    }
                }
            }
            What::Told { waiter, word, .. } => {
                let span = match word {
                    Told::YourTurn => Duration::ZERO,
                    Told::Soon(remaining) => *remaining,
                };
                let until = told.entry(*waiter).or_default();
                *until = (*until).max(event.at + span + ON_ITS_WAY);
                behind.remove(waiter);
            }
            What::Executed(Execution {
                server,
                waiter: Some(waiter),
                stray: false,
                ..
            }) => {
                let Some(before) = latest.insert((*waiter, *server), event.at) else {
                    continue;
                };
                let was_behind = behind.get(waiter).is_some_and(|since| *since <= before);
                let too_soon = event.at - before < PAUSE_MIN;
                let unasked = told.get(waiter).is_none_or(|until| *until < event.at);
                let is_rude = queues.is_calm() && was_behind && too_soon && unasked;
                if is_rude && rejected.insert(*waiter) {
                    let pause = event.at - before;
                    let text = format!(
                        "{waiter} asked server {server} again after {pause:?}, far from its turn"
                    );
                    violations.push(Violation {
                        invariant: "I10",
                        at: event.at,
                        text,
                    });
                }
            }
            _ => {}
        }
    }
    violations
}

/// How long after a word of the server somebody asks that goes by it.
const ON_ITS_WAY: Duration = Duration::from_millis(100);

/// A second, less what messages take longer at one time than at another.
const PAUSE_MIN: Duration = Duration::from_millis(900);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sim::checks::invented::*;

    fn asks_again(waiters: &[usize], pause: u64) -> usize {
        let mut events = vec![event(500, What::Calm)];
        events.extend(queues(1_000, waiters));
        events.extend([asks_in_turn(1_000, 0, 3), asks_in_turn(1_000 + pause, 0, 3)]);
        check(&events).len()
    }

    #[test]
    fn who_asks_all_the_time_far_from_its_turn_is_rejected() {
        assert_eq!(asks_again(&[1, 2, 3], 899), 1);
        assert_eq!(asks_again(&[1, 2, 3], 900), 0);
        assert_eq!(asks_again(&[1, 3], 100), 0, "it is the one after the next");
    }

    #[test]
    fn who_is_told_something_may_ask() {
        let events = [
            vec![event(500, What::Calm)],
            queues(1_000, &[1, 2, 3]),
            vec![
                asks_in_turn(1_000, 0, 3),
                told(1_100, 3),
                asks_in_turn(1_200, 0, 3),
            ],
        ];
        assert!(check(&events.concat()).is_empty());
    }

    #[test]
    fn who_is_told_when_to_ask_may_ask_then() {
        let asks_at = |millis| {
            let word = Told::Soon(Duration::from_millis(400));
            let mut soon = told(1_000, 3);
            if let What::Told { word: said, .. } = &mut soon.what {
                *said = word;
            }
            let events = [
                vec![event(500, What::Calm), soon],
                queues(1_000, &[1, 2, 3]),
                vec![asks_in_turn(1_200, 0, 3), asks_in_turn(millis, 0, 3)],
            ];
            check(&events.concat()).len()
        };
        assert_eq!((asks_at(1_500), asks_at(1_501)), (0, 1));
    }
}
