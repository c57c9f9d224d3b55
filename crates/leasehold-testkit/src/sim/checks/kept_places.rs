use std::collections::BTreeMap;
use std::time::Duration;

use leasehold::Owner;

use super::Violation;
use super::company::permits_differ;
use super::queues::Queues;
use super::waits::{Asking, askings};
use crate::sim::execution::{Execution, Kind};
use crate::sim::history::{Event, What};

/// I9: who goes on waiting keeps its place at every server: where its attempt was refused, but not
/// because permits of another number are held, and, while
/// nothing is in the way, where an attempt that failed elsewhere is taken back.
pub(super) fn check(events: &[Event]) -> Vec<Violation> {
    let askings = askings(events);
    let by_waiter = askings.iter().filter_map(|it| Some((it.waiter?, it)));
    let by_waiter: BTreeMap<Owner, &Asking> = by_waiter.collect();
    let mut waiters = BTreeMap::<Owner, Owner>::new();
    let mut queues = Queues::default();
    let mut violations = Vec::new();
    let mut due: Option<Due<'_>> = None;
    for event in events {
        let told = due.as_ref().is_some_and(|due| due.is_told_by(event));
        if told {
            queues.see(event);
        }
        if told || !matches!(event.what, What::Queue { .. }) {
            violations.extend(due.take().and_then(|due| due.broken(&queues)));
        }
        queues.see(event);
        let What::Executed(execution) = &event.what else {
            continue;
        };
        if let Some(waiter) = execution.waiter {
            waiters.insert(execution.owner, waiter);
            let differs = |asking: &&Asking| permits_differ(asking.mode, &execution.before);
            if execution.kind == Kind::Acquire
                && execution.own_after().is_none()
                && !by_waiter.get(&waiter).is_some_and(differs)
            {
                due = Some(Due {
                    at: event.at,
                    execution,
                    waiter,
                });
            }
        }
        if execution.kind == Kind::Release
            && execution.own_before().is_some()
            && queues.is_calm()
            && let Some(waiter) = waiters.get(&execution.owner)
            && let Some(asking) = by_waiter.get(waiter)
            && asking.is_open(event.at)
            && asking.is_open(event.at + ON_ITS_WAY)
        {
            due = Some(Due {
                at: event.at,
                execution,
                waiter: *waiter,
            });
        }
    }
    violations
}

/// A waiter that must be queued after a request. What the request did to the queue is told right
/// after it, if anything.
struct Due<'a> {
    at: Duration,
    execution: &'a Execution,
    waiter: Owner,
}

impl Due<'_> {
    fn is_told_by(&self, event: &Event) -> bool {
        let Execution { server, key, .. } = self.execution;
        matches!(&event.what, What::Queue { server: s, key: k, .. } if s == server && k == key)
    }

    fn broken(self, queues: &Queues) -> Option<Violation> {
        let Self {
            at,
            execution,
            waiter,
        } = self;
        let kept = queues.is_queued(execution.server, execution.key, waiter);
        (!kept).then(|| Violation {
            invariant: "I9",
            at,
            text: format!("{waiter} waits, and lost its place: {execution}"),
        })
    }
}

/// A word of the server, or to it, is no older than this.
const ON_ITS_WAY: Duration = Duration::from_millis(100);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sim::checks::invented::*;
    use crate::sim::history::Manner;

    fn after_refusal(then: Event) -> usize {
        check(&[asks_in_turn(1_000, 0, 1), then, event(1_000, What::Calm)]).len()
    }

    #[test]
    fn who_is_refused_and_not_queued_is_rejected() {
        assert_eq!(after_refusal(queue(1_000, 0, &[1])), 0);
        assert_eq!(after_refusal(queue(1_000, 0, &[2])), 1);
        assert_eq!(after_refusal(queue(1_000, 1, &[1])), 1, "another server");
    }

    #[test]
    fn who_gives_an_attempt_up_and_waits_on_is_queued_again() {
        let taken_back = |then: Vec<Event>| {
            let mut granted = executed(1_100, 0, Kind::Acquire, 1, None, Some((1, 5_000)));
            if let What::Executed(execution) = &mut granted.what {
                execution.waiter = Some(execution.owner);
            }
            let events = [
                vec![event(500, What::Calm)],
                waits(1_000, 1, 0, Manner::Patient),
                vec![granted],
                vec![executed(1_200, 0, Kind::Release, 1, Some((1, 5_000)), None)],
                then,
                vec![event(2_000, What::Quiet)],
            ];
            check(&events.concat()).len()
        };
        assert_eq!(taken_back(vec![queue(1_200, 0, &[1])]), 0);
        assert_eq!(taken_back(vec![]), 1);
        let gave_up = event(1_250, What::Cancelled { hold: 1 });
        assert_eq!(taken_back(vec![gave_up]), 0);
    }
}
