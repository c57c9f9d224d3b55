use std::collections::BTreeMap;

use leasehold::{ErrorKind, Mode};

use super::Violation;
use super::facts::{End, Facts, WaitFacts};
use super::servers::Servers;
use crate::history::{Denial, Kind, Wait, What};
use crate::time::{MILLIS, SECOND, Time};

/// I10: a waiter that is not near its turn asks a server at most once a second, unless it is notified. A waiter that
/// finds no majority leaves the queues, and asks again after a pause that grows.
pub(super) fn poll_rate(facts: &Facts<'_>) -> Vec<Violation> {
    let mut servers = Servers::default();
    let mut asked = BTreeMap::<(Wait, usize), (Time, bool)>::new();
    let mut left = BTreeMap::<(Wait, usize), Vec<Time>>::new();
    let mut violations = Vec::new();
    if facts.plan.spikes > 0 {
        // A request without a reply in time is repeated.
        return violations;
    }
    for event in facts.events {
        servers.see(event);
        match &event.what {
            What::Notified { server, wait } => {
                asked.remove(&(*wait, *server));
            }
            // A waiter near its turn asks at the end of the lease.
            What::Queue { waits, .. } => {
                asked.retain(|(wait, _), _| {
                    let position = position(facts, waits, *wait);
                    position.is_none_or(|position| position > near(&facts.waits[wait]))
                });
            }
            // A new connection begins with a question.
            What::Cancelled { .. } | What::Crashed { .. } | What::Available { .. } => asked.clear(),
            What::Executed(it) if it.kind == Kind::Acquire => {
                let near = near(&facts.waits[&it.wait]);
                let queues = servers.queues();
                let positions = queues.filter_map(|(.., queue)| position(facts, queue, it.wait));
                let positions = positions.collect::<Vec<_>>();
                let is_behind =
                    !positions.is_empty() && positions.iter().all(|position| *position > near);
                let before = asked.insert((it.wait, it.server), (event.at, is_behind));
                if let Some((last, was_behind)) = before
                    && event.at - last < PAUSE_MIN
                    && (was_behind && is_behind && facts.is_calm(last))
                    && !learns_its_end(&facts.waits[&it.wait], event.at)
                {
                    let text = format!(
                        "w{} asked server {} again after {} ms, far from its turn",
                        it.wait,
                        it.server,
                        (event.at - last) / MILLIS
                    );
                    violations.push(reject("poll_rate", event.at, text));
                }
            }
            What::Executed(it)
                if it.kind == Kind::Release && facts.waits[&it.wait].is_open(event.at) =>
            {
                asked.retain(|(wait, _), _| *wait != it.wait);
                let left = left.entry((it.wait, it.server)).or_default();
                left.retain(|at| at + SECOND >= event.at);
                left.push(event.at);
                if left.len() == LEAVES_MAX + 1 && facts.is_calm(left[0]) {
                    let text = format!(
                        "w{} left server {} more than {LEAVES_MAX} times in 1 s",
                        it.wait, it.server
                    );
                    violations.push(reject("poll_rate", event.at, text));
                }
            }
            _ => {}
        }
    }
    violations
}

/// I10: a waiter begins a limited number of rounds. Each one that fails returns it to the queues, without a notification
/// that could limit the rate.
pub(super) fn rounds(facts: &Facts<'_>) -> Vec<Violation> {
    let mut failed = BTreeMap::<(Wait, usize), Vec<Time>>::new();
    let mut violations = Vec::new();
    for event in facts.events {
        let What::Executed(it) = &event.what else {
            continue;
        };
        if it.kind != Kind::Requeue || it.stray {
            continue;
        }
        let failed = failed.entry((it.wait, it.server)).or_default();
        failed.retain(|at| at + SECOND >= event.at);
        failed.push(event.at);
        if failed.len() == ROUNDS_MAX + 1 {
            let text = format!(
                "w{} gave more than {ROUNDS_MAX} rounds back at server {} in 1 s",
                it.wait, it.server
            );
            violations.push(reject("rounds", event.at, text));
        }
    }
    violations
}

/// Returns the position of a wait in a queue. Requests for a shared lease have their turn together if no other
/// waiter is before them.
fn position(facts: &Facts<'_>, queue: &[Wait], wait: Wait) -> Option<usize> {
    let at = queue.iter().position(|it| *it == wait)?;
    let mut row = queue[..=at].iter().map(|it| facts.waits.get(it));
    let are_shared = row.all(|it| it.is_some_and(|it| it.asked.mode == Mode::Shared));
    Some(match are_shared {
        true => 1,
        false => at + 1,
    })
}

/// Whether a request that runs at `at` tells the waiter why its wait ends: the lock now has another number of permits. A
/// heartbeat only shows that something is wrong.
fn learns_its_end(wait: &WaitFacts, at: Time) -> bool {
    let is_refused = matches!(
        wait.end,
        Some(End::Denied(Denial::Failed {
            kind: ErrorKind::PermitsDiffer,
            ..
        }))
    );
    is_refused && wait.over.saturating_sub(at) < LEARNED_WITHIN
}

/// Returns how many waiters are near their turn. A waiter for a permit asks when the lease of that permit ends.
fn near(wait: &WaitFacts) -> usize {
    let permits = wait.asked.mode.permits();
    permits.map_or(2, |permits| 2.max(permits.get() as usize))
}

/// I10: no client asks a server for its status more often than necessary.
pub(super) fn bounded(facts: &Facts<'_>) -> Vec<Violation> {
    let mut looks = BTreeMap::<(usize, usize), Vec<Time>>::new();
    let mut violations = Vec::new();
    for event in facts.events {
        let What::Looked { server, client } = event.what else {
            continue;
        };
        let looks = looks.entry((client, server)).or_default();
        looks.retain(|at| at + SECOND >= event.at);
        looks.push(event.at);
        if looks.len() == LOOKS_MAX + 1 {
            let text = format!(
                "client {client} asked server {server} for its status {LOOKS_MAX} times in 1 s"
            );
            violations.push(reject("bounded", event.at, text));
        }
    }
    violations
}

fn reject(check: &'static str, at: Time, text: String) -> Violation {
    Violation {
        invariant: "I10",
        check,
        at,
        text,
    }
}

/// A second, minus the variation in how long messages take.
const PAUSE_MIN: Time = 800 * MILLIS;

/// A request to each member and its answer take no longer, apart from spikes.
const LEARNED_WITHIN: Time = 100 * MILLIS;

/// The longest pause doubles from about 10 ms to 800 ms, and each pause is a random part of it.
const LEAVES_MAX: usize = 15;

/// A round without a majority takes 10 ms and more, and waiters that split the votes of the servers fail some times.
const ROUNDS_MAX: usize = 40;

/// Each time something changes on one of five servers, the others may have to learn of it.
const LOOKS_MAX: usize = 60;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::checks::invented::*;

    #[test]
    fn waiter_far_from_its_turn_asks_rarely() {
        let again = |millis, told: bool| {
            let asks = |millis| ran(millis, 0, Kind::Acquire, 1, &[(9, 9_000)], &[(9, 9_000)]);
            let mut events = vec![
                event(0, What::Calm),
                asked(500, 1, 0),
                queue(900, 0, &[7, 8, 1]),
                asks(1_000),
                asks(millis),
            ];
            if told {
                events.insert(4, event(1_010, What::Notified { server: 0, wait: 1 }));
            }
            judge(poll_rate, events)
        };
        assert_eq!(
            (again(1_500, false), again(1_900, false), again(1_500, true)),
            (1, 0, 0)
        );
    }

    #[test]
    fn waiter_may_ask_why_its_wait_ends() {
        let denied = |kind| {
            let asks = |millis| ran(millis, 0, Kind::Acquire, 1, &[(9, 9_000)], &[(9, 9_000)]);
            let reason = Denial::Failed {
                kind,
                without_effect: true,
            };
            let events = vec![
                event(0, What::Calm),
                asked(500, 1, 0),
                queue(900, 0, &[7, 8, 1]),
                asks(1_000),
                asks(1_500),
                event(1_501, What::Denied { wait: 1, reason }),
            ];
            judge(poll_rate, events)
        };
        let other = denied(ErrorKind::NoQuorum);
        assert_eq!((denied(ErrorKind::PermitsDiffer), other), (0, 1));
    }

    #[test]
    fn waiter_that_left_may_ask_again_sometimes() {
        let leaves = |times: u64| {
            let rounds = (0..times).flat_map(|n| {
                let at = 1_000 + 40 * n;
                let release = ran(at + 10, 0, Kind::Release, 1, &[(9, 9_000)], &[(9, 9_000)]);
                let ask = ran(at, 0, Kind::Acquire, 1, &[(9, 9_000)], &[(9, 9_000)]);
                [ask, release]
            });
            let begin = vec![
                event(0, What::Calm),
                asked(500, 1, 0),
                queue(900, 0, &[7, 8, 1]),
            ];
            judge(poll_rate, [begin, rounds.collect()].concat())
        };
        assert_eq!((leaves(15), leaves(16)), (0, 1));
    }

    #[test]
    fn waiter_gives_few_rounds_back() {
        let rounds = |count: u64| {
            let back = |n| ran(1_000 + 10 * n, 0, Kind::Requeue, 1, &[(1, 9_000)], &[]);
            let begin = vec![asked(500, 1, 0)];
            judge(rounds, [begin, (0..count).map(back).collect()].concat())
        };
        assert_eq!((rounds(40), rounds(41)), (0, 1));
    }

    #[test]
    fn readers_at_the_head_may_ask_together() {
        let asks = |millis| ran(millis, 0, Kind::Acquire, 4, &[], &[]);
        let with = |first: Mode| {
            let others = [1, 2, 3].map(|wait| in_mode(Mode::Shared, vec![asked(500, wait, 0)]));
            let events = [
                vec![event(0, What::Calm)],
                in_mode(first, vec![asked(400, 0, 0)]),
                others.concat(),
                in_mode(Mode::Shared, vec![asked(600, 4, 0)]),
                vec![queue(900, 0, &[0, 1, 2, 3, 4]), asks(1_000), asks(1_100)],
            ];
            judge(poll_rate, events.concat())
        };
        assert_eq!((with(Mode::Shared), with(Mode::Exclusive)), (0, 1));
    }

    #[test]
    fn status_is_rarely_asked() {
        let looks = |count: u64| {
            let look = |n| {
                event(
                    1_000 + n,
                    What::Looked {
                        server: 0,
                        client: 0,
                    },
                )
            };
            judge(bounded, (0..count).map(look).collect())
        };
        assert_eq!((looks(60), looks(61)), (0, 1));
    }
}
