use std::collections::BTreeMap;

use leasehold::Mode;

use super::Violation;
use super::facts::{End, Facts, WaitFacts, are_compatible, is_queued};
use super::servers::Servers;
use crate::history::{Execution, Kind, Manner, Wait, What};
use crate::time::{MILLIS, SECOND, Time};

/// I9: a wait that is queued on a majority of the servers before another client asks is granted before that
/// client, unless the client goes ahead of the queue or the lock was not handed over.
pub(super) fn turn_order(facts: &Facts<'_>) -> Vec<Violation> {
    if facts.plan.spikes > 0 || facts.plan.pollers > 0 {
        return Vec::new();
    }
    let known = known_since(facts);
    let openings = openings(facts);
    let slack = CLOCKS_DIFFER + 10 * facts.plan.delay.1;
    let mut violations = Vec::new();
    for later in facts.waits.values() {
        let may_pass = matches!(later.asked.manner, Manner::Barging | Manner::Foreign);
        if later.end != Some(End::Granted) || may_pass {
            continue;
        }
        let mut passed = facts.waits.values().filter(|earlier| {
            let is_exclusive = !are_compatible(&[earlier.asked.mode, later.asked.mode]);
            let are_permits = [earlier, &later]
                .iter()
                .any(|it| it.asked.mode.permits().is_some());
            let since = known.get(&earlier.asked.wait);
            earlier.asked.lock == later.asked.lock
                && later.over < earlier.over
                && is_exclusive
                && !are_permits
                && !(refused_in_gap(facts, later) && knows_no_waiter(facts, later))
                && since.is_some_and(|since| since + slack <= later.at)
        });
        let Some(earlier) = passed.next() else {
            continue;
        };
        let is_opening = openings.iter().any(|(lock, from, to)| {
            *lock == later.asked.lock && *from < later.over && later.at < *to
        });
        if !is_opening {
            violations.push(Violation {
                invariant: "I9",
                check: "turn order",
                at: later.over,
                text: format!(
                    "lock {}: w{} was granted before w{}, which was queued at {}",
                    later.asked.lock,
                    later.asked.wait,
                    earlier.asked.wait,
                    known[&earlier.asked.wait]
                ),
            });
        }
    }
    violations
}

/// Whether a server refused a waiter of the lock although it held no lease: a gap for clients of other libraries. Only the
/// head of the queue asks in it.
fn refused_in_gap(facts: &Facts<'_>, later: &WaitFacts) -> bool {
    facts.events.iter().any(|event| match &event.what {
        What::Executed(it) => {
            it.lock == later.asked.lock
                && it.wait != later.asked.wait
                && it.kind == Kind::Acquire
                && it.before.is_empty()
                && it.after.is_empty()
                && later.at <= event.at + GAP_POLL + 10 * facts.plan.delay.1
                && event.at <= later.over
        }
        _ => false,
    })
}

/// Whether the client neither waited for the lock nor released it within the last second.
fn knows_no_waiter(facts: &Facts<'_>, later: &WaitFacts) -> bool {
    let mut own = facts.waits.values().filter(|it| {
        it.asked.wait != later.asked.wait
            && (it.asked.client, it.asked.lock) == (later.asked.client, later.asked.lock)
            && it.at <= later.at
    });
    let recent = later.at.saturating_sub(SECOND);
    !own.any(|it| {
        let gone = it.span.as_ref().and_then(|span| span.gone);
        it.over >= recent || gone.is_some_and(|gone| gone >= recent)
    })
}

/// Returns since when each wait was queued on a majority while nothing disturbed it.
fn known_since(facts: &Facts<'_>) -> BTreeMap<Wait, Time> {
    let mut known = BTreeMap::new();
    let mut servers = Servers::default();
    for event in facts.events {
        servers.see(event);
        if let What::Queue { waits, .. } = &event.what
            && facts.is_calm(event.at)
        {
            for wait in waits {
                let is_open = facts.waits[wait].is_open(event.at);
                if is_open && servers.positions(*wait).count() >= facts.plan.majority() {
                    known.entry(*wait).or_insert(event.at);
                }
            }
        }
    }
    known
}

/// Returns the spans in which a lock may pass to a newcomer: after a lease expired, or after the head did
/// not come.
fn openings(facts: &Facts<'_>) -> Vec<(usize, Time, Time)> {
    let mut openings = Vec::new();
    let mut after = |wait: &WaitFacts, at: Time, span: Time| {
        openings.push((wait.asked.lock, at, at + span));
    };
    for wait in facts.waits.values() {
        if let Some(span) = &wait.span
            && !span.is_clean
        {
            after(wait, span.end(), LEASE_MAX);
        }
        if let Some(End::Cancelled | End::Died) = wait.end {
            after(wait, wait.over, LEASE_MAX);
        }
        if let Some(at) = wait.died.into_iter().chain(wait.detached).min() {
            after(wait, at, LEASE_MAX);
        }
    }
    for event in facts.events {
        if let What::Available { .. } = event.what {
            openings.extend(
                (0..facts.plan.locks.len()).map(|lock| (lock, event.at, event.at + LEASE_MAX)),
            );
        }
    }
    openings
}

/// I9: a waiter keeps its position at each server that refused it or took back its failed attempt.
pub(super) fn kept_places(facts: &Facts<'_>) -> Vec<Violation> {
    let mut violations = Vec::new();
    if facts.plan.lazy_scripts {
        // Calling a script that the server does not know does nothing.
        return violations;
    }
    let mut servers = Servers::default();
    // When each server last lost the clients' presence.
    let mut forgot = BTreeMap::<usize, Time>::new();
    let mut due: Option<(Time, &Execution)> = None;
    for event in facts.events {
        let is_told = due.is_some_and(|(_, it)| {
            matches!(&event.what, What::Queue { server, lock, .. } if (*server, *lock) == (it.server, it.lock))
        });
        if is_told {
            servers.see(event);
        }
        if let Some((at, it)) = due.take()
            && !is_queued_at(&servers, it)
        {
            violations.push(Violation {
                invariant: "I9",
                check: "kept positions",
                at,
                text: format!(
                    "w{} lost its position at server {} by {:?}",
                    it.wait, it.server, it.kind
                ),
            });
        }
        servers.see(event);
        if let What::Forgot { server } | What::Stepped { server, .. } = event.what {
            forgot.insert(server, event.at);
        }
        if let What::Executed(it) = &event.what
            && forgot.get(&it.server).is_none_or(|at| {
                let frozen = facts.frozen_for(it.client, *at, it.sent);
                at + PRESENCE_MAX + frozen < it.sent
            })
            && !is_late(facts, event.at, it)
            && must_be_queued(event.at, it, &facts.waits[&it.wait])
        {
            due = Some((event.at, it));
        }
    }
    violations
}

fn must_be_queued(at: Time, it: &Execution, wait: &WaitFacts) -> bool {
    let other_permits = it.before.iter().any(|lease| {
        matches!((lease.mode, wait.asked.mode), (Mode::Permit(held), Mode::Permit(wanted)) if held != wanted)
    });
    let asks = matches!(it.kind, Kind::Acquire | Kind::Requeue);
    let is_dead = wait.died.is_some_and(|died| died <= at);
    asks && !is_dead && it.own_after().is_none() && is_queued(wait) && !other_permits
}

/// A server drops the waiters of a client whose presence ended, and a late message adds no presence. A client does not
/// count the time in which its clocks were stopped.
fn is_late(facts: &Facts<'_>, at: Time, it: &Execution) -> bool {
    let frozen = facts.frozen_for(it.client, at.saturating_sub(PRESENCE), it.sent);
    at - it.sent + frozen >= LATE
}

fn is_queued_at(servers: &Servers, it: &Execution) -> bool {
    let mut queues = servers.queues();
    queues.any(|(server, lock, queue)| {
        (server, lock) == (it.server, it.lock) && queue.contains(&it.wait)
    })
}

/// Two clients may read the servers' clocks with this difference.
const CLOCKS_DIFFER: Time = 100 * MILLIS;

/// The head of the queue asks this often in a gap.
const GAP_POLL: Time = 25 * MILLIS;

/// The longest lease, its delay, and the reservation for a head of the queue that does not come.
const LEASE_MAX: Time = 3_500 * MILLIS;

/// Clients report their presence to a server every second of the time that they run.
const PRESENCE_MAX: Time = 1_500 * MILLIS;

/// A server counts a client as present for this long.
const PRESENCE: Time = 2_500 * MILLIS;

/// Presence lasts 2.5 s, and the client may have reported it a second before it sent a request. So the presence may
/// end before a request arrives that takes this long, with clocks that are 4 % off.
const LATE: Time = 1_300 * MILLIS;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::checks::invented::*;

    #[test]
    fn newcomer_does_not_pass_the_queue() {
        let passes = |asked_at| {
            let events = vec![
                event(0, What::Calm),
                asked(1_000, 1, 0),
                queue(1_001, 0, &[1]),
                queue(1_001, 1, &[1]),
                asked(asked_at, 2, 1),
                granted(2_000, 2, 3_000),
                event(2_100, What::Ended { wait: 2 }),
                granted(2_200, 1, 3_000),
                event(2_300, What::Ended { wait: 1 }),
            ];
            judge(turn_order, events)
        };
        assert_eq!((passes(1_200), passes(1_050)), (1, 0));
    }

    #[test]
    fn only_a_stranger_may_take_the_lock_in_a_gap() {
        let passes = |refused_at: u64, own: Vec<crate::history::Event>| {
            let events = vec![
                event(0, What::Calm),
                asked(1_000, 1, 0),
                queue(1_001, 0, &[1]),
                queue(1_001, 1, &[1]),
                ran(refused_at, 0, Kind::Acquire, 1, &[], &[]),
                asked(3_200, 2, 1),
                granted(3_210, 2, 4_000),
                event(3_220, What::Ended { wait: 2 }),
                granted(3_230, 1, 4_000),
                event(3_240, What::Ended { wait: 1 }),
            ];
            judge(turn_order, [events, own].concat())
        };
        let held = |ended| {
            let ended = event(ended, What::Ended { wait: 3 });
            [grant(3, 1, 900, 3_100), vec![ended]].concat()
        };
        assert_eq!((passes(3_190, vec![]), passes(3_100, vec![])), (0, 1));
        assert_eq!(passes(3_190, held(2_500)), 1);
        assert_eq!(passes(3_190, held(2_000)), 0);
    }

    #[test]
    fn refused_waiter_is_queued() {
        let refused = |waits: &[Wait]| {
            let events = vec![
                asked(1_000, 1, 0),
                ran(1_100, 0, Kind::Acquire, 1, &[(2, 9_000)], &[(2, 9_000)]),
                queue(1_100, 0, waits),
                event(1_200, What::Quiet),
            ];
            judge(kept_places, events)
        };
        assert_eq!((refused(&[1]), refused(&[2])), (0, 1));
    }

    #[test]
    fn late_request_needs_no_place() {
        let refused = |travel| {
            let mut late = ran(3_000, 0, Kind::Requeue, 1, &[(1, 9_000)], &[]);
            if let What::Executed(it) = &mut late.what {
                it.sent -= travel * MILLIS;
            }
            let events = vec![asked(1_000, 1, 0), late, event(3_100, What::Quiet)];
            judge(kept_places, events)
        };
        assert_eq!((refused(1_200), refused(1_400)), (1, 0));
    }

    #[test]
    fn client_whose_clocks_stopped_needs_no_place() {
        let refused = |stopped: u64| {
            let (client, frozen) = (0, true);
            let events = vec![
                asked(1_000, 1, 0),
                event(1_500, What::Paused { client, frozen }),
                event(1_500 + stopped, What::Woke { client }),
                ran(3_000, 0, Kind::Requeue, 1, &[(1, 9_000)], &[]),
                event(3_100, What::Quiet),
            ];
            judge(kept_places, events)
        };
        assert_eq!((refused(1_200), refused(1_400)), (1, 0));
    }

    #[test]
    fn dead_client_needs_no_place() {
        let died = |millis| {
            let crash = What::Crashed {
                client: 0,
                killed: false,
            };
            let events = vec![
                asked(1_000, 1, 0),
                event(millis, crash),
                ran(1_100, 0, Kind::Requeue, 1, &[(1, 9_000)], &[]),
                event(1_200, What::Quiet),
            ];
            judge(kept_places, events)
        };
        assert_eq!((died(1_050), died(1_150)), (0, 1));
    }
}
