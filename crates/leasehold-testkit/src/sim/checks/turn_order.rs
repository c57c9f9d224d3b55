use std::collections::BTreeMap;
use std::time::Duration;

use leasehold::{ErrorKind, RESERVATION};

use super::Violation;
use super::company::may_stand_together;
use super::queues::Queues;
use super::waits::{Asking, Outcome, askings};
use crate::sim::history::{Event, Hold, Manner, Named, What};

/// I9: while nothing is in the way, who is queued on a majority of the servers before somebody else
/// so much as asks is granted before it, unless that one goes ahead of the queue, or the lock became
/// free without being handed over. Those who may hold together come in together, in any order; but a
/// writer that waits is passed by no reader.
pub(super) fn check(events: &[Event]) -> Vec<Violation> {
    let askings = askings(events);
    let known = known_since(events, &askings);
    let openings = openings(events, &askings);
    let mut violations = Vec::new();
    let granted = askings.iter().filter(|asking| {
        asking.outcome == Some(Outcome::Granted) && asking.manner != Manner::Barging
    });
    for later in granted {
        let passed = |earlier: &&Asking| {
            let known = known.get(&earlier.hold);
            earlier.key == later.key
                && later.over < earlier.over
                && !came_together(earlier, later)
                && !had_no_turn(earlier, later)
                && known.is_some_and(|since| *since + CLOCKS_PART <= later.asked)
        };
        let Some(earlier) = askings.iter().find(passed) else {
            continue;
        };
        let excuses = |opening: &Opening| opening.from < later.over && later.asked < opening.to;
        if openings.iter().any(excuses) {
            continue;
        }
        let text = format!(
            "key {}: h{} of client {} was granted before h{} of client {}, which was queued at {:.3} \
             already",
            later.key,
            later.hold,
            later.client,
            earlier.hold,
            earlier.client,
            known[&earlier.hold].as_secs_f64()
        );
        violations.push(Violation {
            invariant: "I9",
            at: later.over,
            text,
        });
    }
    violations
}

/// Or the wait of one ended in the midst of that.
fn came_together(earlier: &Asking, later: &Asking) -> bool {
    let busy = [Named::Busy, Named::Unknown(ErrorKind::Busy)];
    let came = match earlier.outcome {
        Some(Outcome::Granted | Outcome::GivenUp) => true,
        Some(Outcome::Denied(named)) => busy.contains(&named),
        _ => false,
    };
    came && earlier.over <= later.over + TOGETHER && may_stand_together(&[earlier.mode, later.mode])
}

/// It was refused in the end as permits of another number were held, and they were by then.
fn had_no_turn(earlier: &Asking, later: &Asking) -> bool {
    earlier.is_told_of_others() && earlier.mode != later.mode
}

/// Since when each wait was queued on a majority, while all was calm.
fn known_since(events: &[Event], askings: &[Asking]) -> BTreeMap<Hold, Duration> {
    let mut known = BTreeMap::new();
    let mut queues = Queues::default();
    for event in events {
        queues.see(event);
        if !queues.is_calm() || !matches!(event.what, What::Queue { .. } | What::Calm) {
            continue;
        }
        for asking in askings.iter().filter(|asking| asking.is_open(event.at)) {
            if queues.on_majority(asking) {
                known.entry(asking.hold).or_insert(event.at);
            }
        }
    }
    known
}

/// When a lock may be there for whoever comes first.
struct Opening {
    from: Duration,
    to: Duration,
}

fn openings(events: &[Event], askings: &[Asking]) -> Vec<Opening> {
    let given_up = askings
        .iter()
        .filter(|it| it.outcome == Some(Outcome::GivenUp));
    let given_up: BTreeMap<_, _> = given_up.map(|it| (it.waiter, it.over)).collect();
    let opening = |event: &Event| {
        let span = match event.what {
            What::Lost { .. } | What::Crashed { .. } => LEASE_MAX + ATTEMPT_MAX,
            What::LeftFree { .. } => GAP + ATTEMPT_MAX,
            // It is kept for one who will not come.
            What::Told { waiter, .. }
                if given_up
                    .get(&Some(waiter))
                    .is_some_and(|over| *over <= event.at) =>
            {
                RESERVATION + ATTEMPT_MAX
            }
            _ => return None,
        };
        let (from, to) = (event.at, event.at + span);
        Some(Opening { from, to })
    };
    events.iter().filter_map(opening).collect()
}

/// The longest lease, for how long a lock is left free now and then, and what an attempt takes.
const LEASE_MAX: Duration = Duration::from_secs(4);
const GAP: Duration = Duration::from_millis(150);
const ATTEMPT_MAX: Duration = Duration::from_millis(350);

/// What messages take, and a second attempt.
const TOGETHER: Duration = Duration::from_millis(500);

/// By so much two clients may take the members' clocks differently, and the clocks themselves part:
/// twice the tolerance.
const CLOCKS_PART: Duration = Duration::from_millis(200);

#[cfg(test)]
mod tests {
    use leasehold::{Mode, Permits};

    use super::*;
    use crate::sim::checks::invented::*;

    fn second_is_granted_first(asks: u64, manner: Manner, between: Vec<Event>) -> usize {
        let events = [
            vec![event(500, What::Calm)],
            waits(1_000, 1, 0, Manner::Patient),
            queues(1_100, &[1]),
            waits(asks, 2, 1, manner),
            between,
            vec![granted(3_000, 2, 9_000), granted(4_000, 1, 9_000)],
        ];
        check(&events.concat()).len()
    }

    #[test]
    fn who_overtakes_in_the_queue_is_rejected() {
        assert_eq!(second_is_granted_first(1_300, Manner::Patient, vec![]), 1);
        assert_eq!(second_is_granted_first(1_300, Manner::Once, vec![]), 1);
        assert_eq!(second_is_granted_first(1_299, Manner::Patient, vec![]), 0);
        assert_eq!(second_is_granted_first(1_300, Manner::Barging, vec![]), 0);
    }

    #[test]
    fn readers_come_in_together_and_pass_no_writer() {
        let passed = |earlier, later, second: u64| {
            let denied = |named| event(second, What::Denied { hold: 1, named });
            let ends = [
                granted(second, 1, 9_000),
                denied(Named::Busy),
                denied(Named::Unknown(ErrorKind::Busy)),
                event(second, What::Cancelled { hold: 1 }),
            ];
            ends.map(|end| {
                let events = [
                    vec![event(500, What::Calm)],
                    in_mode(earlier, waits(1_000, 1, 0, Manner::Patient)),
                    queues(1_100, &[1]),
                    in_mode(later, waits(1_300, 2, 1, Manner::Patient)),
                    vec![granted(3_000, 2, 9_000), end],
                ];
                check(&events.concat()).len()
            })
        };
        let (alone, shared) = (Mode::Exclusive, Mode::Shared);
        assert_eq!(passed(shared, shared, 3_500), [0; 4]);
        assert_eq!(passed(shared, shared, 3_501), [1; 4]);
        assert_eq!(passed(alone, shared, 3_001), [1; 4]);
        assert_eq!(passed(shared, alone, 3_001), [1; 4]);
    }

    #[test]
    fn who_is_refused_for_the_number_it_wants_may_be_passed() {
        let passed = |earlier, later, kind| {
            let named = Named::Unknown(kind);
            let events = [
                vec![event(500, What::Calm)],
                in_mode(earlier, waits(1_000, 1, 0, Manner::Patient)),
                queues(1_100, &[1]),
                in_mode(later, waits(1_300, 2, 1, Manner::Patient)),
                vec![
                    granted(3_000, 2, 9_000),
                    event(4_000, What::Denied { hold: 1, named }),
                ],
            ];
            check(&events.concat()).len()
        };
        let [two, three] = [2, 3].map(|n| Mode::Permit(Permits::new(n).unwrap()));
        let (differ, busy) = (ErrorKind::PermitsDiffer, ErrorKind::Busy);
        assert_eq!(passed(three, two, differ), 0);
        assert_eq!(passed(three, three, differ), 1);
        assert_eq!(passed(three, two, busy), 1);
    }

    #[test]
    fn who_gave_up_or_missed_its_turn_may_be_passed() {
        let overtaken = |between| second_is_granted_first(2_000, Manner::Patient, between);
        assert_eq!(
            overtaken(vec![event(2_500, What::Cancelled { hold: 1 })]),
            0
        );
        assert_eq!(overtaken(vec![lost(2_500, 7)]), 0);
    }
}
