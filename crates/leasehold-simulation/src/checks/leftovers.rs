use std::collections::{BTreeMap, BTreeSet};

use super::Violation;
use super::facts::{End, Facts, Span, WaitFacts};
use super::servers::Servers;
use crate::history::{Wait, What};
use crate::time::{MILLIS, SECOND, Time};

/// I5: when all programs have ended, no server holds one of their leases or waiters.
pub(super) fn left(facts: &Facts<'_>) -> Vec<Violation> {
    let mut servers = Servers::default();
    // What a request took whose client had given up the connection: it stays until its TTL ends. A release may
    // take it for the successor that it names.
    let mut taken_late = BTreeSet::<(usize, usize, Wait)>::new();
    let mut violations = Vec::new();
    let goes_on = |wait: &WaitFacts, at| {
        let is_held = |span: &Span| span.gone.is_none_or(|gone| gone > at);
        wait.over > at || wait.span.as_ref().is_some_and(is_held)
    };
    for (index, event) in facts.events.iter().enumerate() {
        servers.see(event);
        if let What::Executed(it) = &event.what {
            let was_held = |wait| it.before.iter().any(|lease| lease.wait == wait);
            for lease in it.after.iter().filter(|lease| !was_held(lease.wait)) {
                let lease = (it.server, it.lock, lease.wait);
                match it.stray {
                    true => taken_late.insert(lease),
                    false => taken_late.remove(&lease),
                };
            }
        }
        let phase = match event.what {
            What::Settled => Some(What::Rested),
            What::Rested => None,
            _ => continue,
        };
        if facts.waits.values().any(|wait| goes_on(wait, event.at)) {
            // Some programs could not end.
            continue;
        }
        // The final state of the servers is logged after this event.
        let rest = facts.events[index + 1..].iter();
        let notes = rest.take_while(|next| {
            next.at == event.at && matches!(next.what, What::Holds { .. } | What::Queue { .. })
        });
        notes.for_each(|note| servers.see(note));
        let is_rested = phase.is_none();
        for (server, lock, lease) in servers.leases(event.at) {
            let may_stay = facts.waits[&lease.wait].detached.is_some()
                || taken_late.contains(&(server, lock, lease.wait));
            if servers.is_up(server) && (is_rested || !may_stay) {
                violations.push(reject(
                    event.at,
                    server,
                    lock,
                    lease.wait,
                    "holds a lease of",
                ));
            }
        }
        for (server, lock, queue) in servers.queues() {
            for wait in queue
                .iter()
                .filter(|wait| is_rested || !may_be_queued(facts, **wait))
            {
                if servers.is_up(server) {
                    violations.push(reject(event.at, server, lock, *wait, "still queues"));
                }
            }
        }
    }
    violations
}

fn reject(at: Time, server: usize, lock: usize, wait: Wait, what: &str) -> Violation {
    Violation {
        invariant: "I5",
        check: "left",
        at,
        text: format!("server {server} {what} w{wait} for lock {lock}"),
    }
}

/// Whether a fault may have kept the servers from learning that the wait ended.
fn may_be_queued(facts: &Facts<'_>, wait: Wait) -> bool {
    let wait = &facts.waits[&wait];
    wait.died.is_some() || wait.over <= facts.cleared.saturating_add(2 * SECOND)
}

/// I5: if no fault is in the way, no server keeps a refused or cancelled request for long.
pub(super) fn let_go(facts: &Facts<'_>) -> Vec<Violation> {
    let mut servers = Servers::default();
    let mut due = BTreeMap::<(Time, Wait), ()>::new();
    let mut violations = Vec::new();
    let soon = SOON + 20 * facts.plan.delay.1 + 300 * MILLIS * facts.plan.spikes.min(3);
    for event in facts.events {
        while let Some(entry) = due.first_entry()
            && entry.key().0 < event.at
        {
            let ((at, wait), ()) = entry.remove_entry();
            let holding = servers.leases(at);
            let mut holding =
                holding.filter(|(server, _, lease)| lease.wait == wait && servers.is_up(*server));
            if let Some((server, lock, _)) = holding.next()
                && facts.waits[&wait].died.is_none()
            {
                let text =
                    format!("server {server} holds lock {lock} for w{wait}, which ended before");
                violations.push(Violation {
                    invariant: "I5",
                    check: "let go",
                    at,
                    text,
                });
            }
        }
        servers.see(event);
        let wait = match event.what {
            What::Denied { wait, .. } | What::Cancelled { wait } => wait,
            _ => continue,
        };
        let is_ours = facts.waits[&wait].end != Some(End::Granted);
        if is_ours && facts.is_calm(event.at) && facts.is_calm(event.at + soon) {
            due.insert((event.at + soon, wait), ());
        }
    }
    violations
}

/// By then the server has answered a request in flight, and the client has released what it took.
const SOON: Time = 500 * MILLIS;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::checks::invented::*;
    use crate::history::Kind;

    #[test]
    fn leftovers_are_rejected() {
        let with = |until| {
            let taken = ran(1_000, 0, Kind::Acquire, 1, &[], &[(1, until)]);
            judge(
                left,
                vec![
                    asked(500, 1, 0),
                    taken,
                    event(2_000, What::Cancelled { wait: 1 }),
                    event(4_000, What::Settled),
                ],
            )
        };
        assert_eq!((with(4_500), with(3_900)), (1, 0));
        let queued = |phase| {
            let events = vec![
                event(0, What::Cleared),
                asked(3_000, 1, 0),
                queue(3_500, 0, &[1]),
                event(4_000, What::Cancelled { wait: 1 }),
                event(8_000, phase),
            ];
            judge(left, events)
        };
        assert_eq!((queued(What::Settled), queued(What::Rested)), (1, 1));
    }

    #[test]
    fn late_release_may_take_the_lock_for_its_successor() {
        let taken = |stray| {
            let mut release = ran(3_000, 0, Kind::Release, 1, &[(1, 9_000)], &[(2, 9_000)]);
            if let What::Executed(it) = &mut release.what {
                it.stray = stray;
            }
            let events = vec![
                asked(500, 1, 0),
                asked(600, 2, 0),
                event(2_000, What::Cancelled { wait: 1 }),
                event(2_000, What::Cancelled { wait: 2 }),
                release,
                event(4_000, What::Settled),
            ];
            judge(left, events)
        };
        assert_eq!((taken(true), taken(false)), (0, 1));
    }

    #[test]
    fn program_that_goes_on_leaves_nothing() {
        let ends = |millis| {
            let events = vec![
                event(0, What::Cleared),
                asked(3_000, 1, 0),
                queue(3_500, 0, &[1]),
                event(millis, What::Cancelled { wait: 1 }),
                event(8_000, What::Settled),
            ];
            judge(left, events)
        };
        assert_eq!((ends(9_000), ends(7_000)), (0, 1));
    }

    #[test]
    fn cancelled_wait_is_soon_held_nowhere() {
        let freed = |millis| {
            let events = vec![
                event(0, What::Calm),
                asked(500, 1, 0),
                ran(1_000, 0, Kind::Acquire, 1, &[], &[(1, 9_000)]),
                event(1_100, What::Cancelled { wait: 1 }),
                ran(millis, 0, Kind::Release, 1, &[(1, 9_000)], &[]),
                event(9_000, What::Quiet),
            ];
            judge(let_go, events)
        };
        assert_eq!((freed(1_200), freed(2_500)), (0, 1));
    }
}
