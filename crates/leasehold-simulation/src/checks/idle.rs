use std::collections::{BTreeMap, BTreeSet};

use leasehold::Mode;

use super::Violation;
use super::facts::{Facts, WaitFacts, are_compatible, is_queued};
use crate::history::{Lease, Wait, What};
use crate::time::{MILLIS, SECOND, Time};

/// A span in which a lock was free, although a waiter could have had it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Idle {
    pub(super) lock: usize,
    pub(super) from: Time,
    pub(super) to: Time,
    pub(super) wait: Wait,
}

/// I8: a lock that is free, or that a waiter may join, is granted soon. No waiter sleeps through its turn.
pub(super) fn idle(facts: &Facts<'_>) -> Vec<Violation> {
    let mut violations = Vec::new();
    let Some((calm_from, calm_to)) = facts.calm else {
        return violations;
    };
    let expired = blocked(facts);
    for idle in spans(facts) {
        let (from, to) = (idle.from.max(calm_from), idle.to.min(calm_to));
        let mut allowed = allowed(facts, from, to);
        let has_expired =
            |it: &Blocked| it.lock == idle.lock && it.to.abs_diff(from) < 100 * MILLIS;
        if expired.iter().any(has_expired) {
            allowed += HEARTBEAT;
        }
        if to > from && to - from > allowed {
            violations.push(Violation {
                invariant: "I8",
                check: "idle",
                at: from,
                text: format!(
                    "lock {} is free for {} ms (allowed: {}), and w{} waits",
                    idle.lock,
                    (to - from) / MILLIS,
                    allowed / MILLIS,
                    idle.wait
                ),
            });
        }
    }
    violations
}

/// Returns how long a lock may be free within this span.
fn allowed(facts: &Facts<'_>, from: Time, to: Time) -> Time {
    let plan = facts.plan;
    let mut allowed = SPLIT_VOTE + GAP + 40 * plan.delay.1;
    if plan.spikes > 0 {
        allowed += SPIKES;
    }
    let mut gone = BTreeSet::new();
    for event in facts.events.iter().take_while(|event| event.at <= to) {
        match event.what {
            // A dead client counts as alive until its presence ends, and may be notified once.
            What::Crashed { client, .. } if event.at + PRESENCE >= from && gone.insert(client) => {
                allowed += PRESENCE + CALLED;
            }
            What::Available { is_up: false, .. } if event.at + SILENT >= from => allowed += SILENT,
            // The head of the queue left after it was notified.
            What::Cancelled { .. } if event.at + SECOND >= from && event.at <= to => {
                allowed = allowed.max(SECOND + 40 * plan.delay.1 + SPLIT_VOTE + GAP);
            }
            _ => {}
        }
    }
    allowed
}

/// Returns the spans in which locks were free although a waiter could have had them.
pub(super) fn spans(facts: &Facts<'_>) -> Vec<Idle> {
    let blocked = blocked(facts);
    let mut found = Vec::new();
    for lock in 0..facts.plan.locks.len() {
        let waits: Vec<&WaitFacts> = facts
            .waits
            .values()
            .filter(|it| it.asked.lock == lock)
            .collect();
        let blocked: Vec<_> = blocked.iter().filter(|it| it.lock == lock).collect();
        let mut changes = BTreeSet::new();
        for wait in &waits {
            changes.extend([wait.at, wait.over]);
            if let Some(span) = &wait.span {
                changes.extend([span.granted, span.end()]);
                changes.extend(span.downgraded);
            }
        }
        changes.extend(blocked.iter().flat_map(|it| [it.from, it.to]));
        changes.extend(facts.events.last().map(|event| event.at));
        let mut open: Option<Idle> = None;
        for at in changes {
            let still = open.map(|idle| idle.wait);
            let servers = blocked.iter().filter(|it| it.from <= at && at < it.to);
            let servers: BTreeSet<usize> = servers.map(|it| it.server).collect();
            let is_blocked = facts.plan.servers - servers.len() < facts.plan.majority();
            let waiter = if is_blocked {
                None
            } else {
                could_hold(&waits, at)
            };
            match (waiter, still) {
                (Some(wait), None) => {
                    open = Some(Idle {
                        lock,
                        from: at,
                        to: Time::MAX,
                        wait,
                    });
                }
                (None, Some(_)) => found.extend(open.take().map(|idle| Idle { to: at, ..idle })),
                _ => {}
            }
        }
        found.extend(open);
    }
    found
}

/// Returns a waiter that could hold the lock at `at`.
fn could_hold(waits: &[&WaitFacts], at: Time) -> Option<Wait> {
    let mut waiting = waits.iter().filter(|it| is_queued(it) && it.is_open(at));
    let first = waiting.next()?;
    let holders = waits.iter().filter_map(|it| {
        let span = it.span.as_ref()?;
        (span.granted <= at && at < span.end()).then(|| it.mode(at))
    });
    let mut modes: Vec<Mode> = holders.collect();
    if modes.is_empty() {
        return Some(first.asked.wait);
    }
    // Waiters of another mode may come first.
    let alike = waiting.all(|it| it.asked.mode == first.asked.mode);
    modes.push(first.asked.mode);
    (alike && are_compatible(&modes)).then_some(first.asked.wait)
}

/// A lease at a server that no living client knows.
struct Blocked {
    server: usize,
    lock: usize,
    from: Time,
    to: Time,
}

fn blocked(facts: &Facts<'_>) -> Vec<Blocked> {
    let since = |wait: Wait| {
        let wait = facts.waits.get(&wait)?;
        let excused = wait.span.as_ref().filter(|span| span.excused);
        [wait.died, wait.detached, excused.map(|span| span.granted)]
            .into_iter()
            .flatten()
            .min()
    };
    let mut standing = BTreeMap::<(usize, usize), Vec<(Time, Lease)>>::new();
    let mut blocked = Vec::new();
    for event in facts.events {
        let (server, lock, leases) = match &event.what {
            What::Executed(it) => (it.server, it.lock, &it.after),
            What::Holds {
                server,
                lock,
                leases,
            } => (*server, *lock, leases),
            _ => continue,
        };
        let known = standing.entry((server, lock)).or_default();
        let ended = |at: Time, (from, lease): &(Time, Lease)| Blocked {
            server,
            lock,
            from: (*from).max(since(lease.wait).unwrap_or(Time::MAX)),
            to: lease.until.min(at) + MILLIS,
        };
        let stays = |lease: &Lease| {
            leases
                .iter()
                .any(|it| it.wait == lease.wait && it.until == lease.until)
        };
        known.retain(|it| {
            let is_gone = !stays(&it.1);
            if is_gone && since(it.1.wait).is_some() {
                blocked.push(ended(event.at, it));
            }
            !is_gone
        });
        for lease in leases.iter() {
            if !known.iter().any(|(_, it)| it.wait == lease.wait) {
                known.push((event.at, *lease));
            }
        }
    }
    for ((server, lock), leases) in standing {
        for (from, lease) in leases {
            if let Some(since) = since(lease.wait) {
                let (from, to) = (from.max(since), lease.until + MILLIS);
                blocked.push(Blocked {
                    server,
                    lock,
                    from,
                    to,
                });
            }
        }
    }
    blocked.retain(|it| it.from < it.to);
    blocked
}

/// A round that fails is repeated within this time.
const SPLIT_VOTE: Time = 250 * MILLIS;
/// A gap for other libraries, and the pause between two attempts of the head of the queue in it.
const GAP: Time = 175 * MILLIS;
/// A message that takes long, followed by another one.
const SPIKES: Time = 1_200 * MILLIS;
/// A client counts as present for this long after its last heartbeat.
const PRESENCE: Time = 2_500 * MILLIS;
/// The server keeps the lock this long for a waiter that it notified.
const CALLED: Time = SECOND;
/// No server notifies a waiter when a lease expires. The head of the queue asks at that time if it knows of
/// it, and otherwise with its next heartbeat.
const HEARTBEAT: Time = SECOND;
/// After this long without an answer, a client does not rely on a server.
const SILENT: Time = 1_100 * MILLIS;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::checks::invented::*;
    use crate::history::Kind;

    fn free_until(millis: u64, more: Vec<crate::history::Event>) -> usize {
        let events = [
            vec![event(0, What::Calm)],
            grant(1, 0, 1_000, 4_000),
            vec![asked(1_500, 2, 1), event(2_000, What::Ended { wait: 1 })],
            more,
            vec![
                granted(millis, 2, 9_000),
                event(8_000, What::Ended { wait: 2 }),
            ],
        ];
        judge(idle, events.concat())
    }

    #[test]
    fn free_lock_is_soon_granted() {
        assert_eq!(
            (free_until(2_400, vec![]), free_until(2_600, vec![])),
            (0, 1)
        );
    }

    #[test]
    fn leases_of_dead_clients_block_the_lock() {
        let died = |servers: usize| {
            let taken = (0..servers).map(|it| ran(2_001, it, Kind::Acquire, 3, &[], &[(3, 7_000)]));
            let dead = event(
                2_002,
                What::Crashed {
                    client: 7,
                    killed: true,
                },
            );
            let more = [vec![asked(1_900, 3, 7)], taken.collect(), vec![dead]];
            free_until(7_500, more.concat())
        };
        assert_eq!((died(1), died(2)), (1, 0));
    }

    #[test]
    fn reader_that_may_join_is_soon_granted() {
        let joins = |millis| {
            let events = [
                vec![event(0, What::Calm)],
                grant(1, 0, 1_000, 9_000),
                grant(2, 1, 1_500, 9_000),
            ];
            let mut events = in_mode(Mode::Shared, events.concat());
            if let Some(last) = events.last_mut() {
                last.at = millis * MILLIS;
            }
            judge(idle, events)
        };
        assert_eq!((joins(1_600), joins(2_000)), (0, 1));
    }
}
