use std::collections::BTreeMap;
use std::time::Duration;

use leasehold::RESERVATION;

use super::Violation;
use super::queues::Queues;
use super::spans::{Span, spans};
use super::waits::{Asking, askings};
use crate::sim::history::{Event, Hold, What};

/// I8: a lock that is given back while nothing is in the way, and somebody is queued for it on a
/// majority of the servers, is granted again at once, or within the time of a reservation for each
/// client that died: split votes do not last, and nobody sleeps through its turn.
pub(super) fn check(events: &[Event]) -> Vec<Violation> {
    let (spans, askings) = (spans(events), askings(events));
    let held: BTreeMap<Hold, &Span> = spans.iter().map(|span| (span.hold, span)).collect();
    let mut queues = Queues::default();
    let mut violations = Vec::new();
    for event in events {
        queues.see(event);
        let What::Ended { hold, .. } = event.what else {
            continue;
        };
        let Some(span) = held.get(&hold).filter(|span| span.end == event.at) else {
            continue;
        };
        let late = event.at + free_max(events, event.at);
        let next = spans.iter().filter(|next| next.key == span.key);
        let granted = |next: &Span| event.at < next.granted && next.granted <= late;
        if !queues.is_calm() || next.into_iter().any(granted) {
            continue;
        }
        let waits = |it: &&Asking| it.key == span.key && it.is_open(event.at) && it.is_open(late);
        let mut waiting = askings.iter().filter(waits);
        if let Some(first) = waiting.find(|asking| queues.on_majority(asking)) {
            let text = format!(
                "key {} is free, and h{} waits for it still: h{hold} gave it back at {:.3}",
                span.key,
                first.hold,
                event.at.as_secs_f64()
            );
            violations.push(Violation {
                invariant: "I8",
                at: late,
                text,
            });
        }
    }
    violations
}

/// How long the lock may be free that was given back at `at`.
fn free_max(events: &[Event], at: Duration) -> Duration {
    let soon = |event: &&Event| event.at <= at + AT_ONCE;
    // Who died before all was set right is known to be dead.
    let is_cleared = |event: &Event| matches!(event.what, What::Cleared);
    let cleared = events.iter().position(is_cleared).unwrap_or(0);
    let dead = events[cleared..].iter().filter(soon);
    // Its waiters may be told, and heard, until the servers know; then they are passed over.
    let dead = dead.filter(|event| match event.what {
        What::Crashed { killed, .. } => !killed || event.at + NOTICED >= at,
        _ => false,
    });
    AT_ONCE + RESERVATION * dead.count() as u32
}

/// What messages take, a moment for those who poll, and a second attempt.
const AT_ONCE: Duration = Duration::from_millis(500);

/// By then a server knows that a client was killed.
const NOTICED: Duration = Duration::from_millis(200);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sim::checks::invented::*;
    use crate::sim::history::Manner;

    fn given_back(queue: Vec<Event>, then: Vec<Event>) -> usize {
        let events = [
            vec![event(500, What::Calm)],
            grant(1, 0, 0, 1_000, 9_000),
            waits(2_000, 2, 1, Manner::Patient),
            queue,
            vec![ended(3_000, 1)],
            then,
        ];
        check(&events.concat()).len()
    }

    #[test]
    fn a_hand_over_that_takes_long_is_rejected() {
        let queue = queues(2_100, &[2]);
        let next = |millis| vec![granted(millis, 2, 9_000)];
        assert_eq!(given_back(queue.clone(), next(3_500)), 0);
        assert_eq!(given_back(queue.clone(), next(3_501)), 1);
        assert_eq!(given_back(queue, vec![]), 1);
    }

    #[test]
    fn a_client_that_is_gone_costs_one_reservation_until_it_is_known_to_be() {
        let crash = |millis, killed, next| {
            let crash = vec![crashed(millis, 7, killed)];
            given_back(
                [crash, queues(2_100, &[2])].concat(),
                vec![granted(next, 2, 9_000)],
            )
        };
        assert_eq!(crash(1_500, false, 4_500), 0);
        assert_eq!(crash(1_500, false, 4_501), 1);
        assert_eq!(crash(1_500, true, 3_501), 1);
        assert_eq!(crash(2_900, true, 4_500), 0);
    }

    #[test]
    fn who_is_known_to_a_minority_or_gives_up_may_be_missed() {
        let minority = vec![queue(2_100, 0, &[2])];
        assert_eq!(given_back(minority, vec![]), 0);
        let gives_up = vec![event(3_500, What::Cancelled { hold: 2 })];
        assert_eq!(given_back(queues(2_100, &[2]), gives_up), 0);
    }
}
