use std::collections::BTreeMap;

use leasehold::Mode;

use super::Violation;
use super::facts::{Facts, are_compatible};
use super::servers::Servers;
use crate::history::{Event, Execution, Kind, Lease, What};
use crate::time::{MILLIS, Time};

/// I3: the deadline of a guard lies before the end of its lease on a majority of the servers, by their own
/// clocks.
pub(super) fn lease_end(facts: &Facts<'_>) -> Vec<Violation> {
    let mut servers = Servers::default();
    // When a server last lost data, or its clock was stepped.
    let mut disturbed = BTreeMap::<usize, Time>::new();
    let mut violations = Vec::new();
    for event in facts.events {
        servers.see(event);
        match event.what {
            What::Forgot { server } | What::Stepped { server, .. } => {
                disturbed.insert(server, event.at);
            }
            What::Granted { wait, until, .. } | What::Extended { wait, until } => {
                let it = &facts.waits[&wait];
                let is_excused = it.span.as_ref().is_some_and(|span| span.excused);
                if it.asked.manner == crate::history::Manner::Foreign
                    || is_excused
                    || until <= event.at
                {
                    continue;
                }
                let lasting = (0..facts.plan.servers).filter(|server| {
                    let mut leases = servers.leases(event.at);
                    disturbed.get(server).is_some_and(|when| *when >= it.at)
                        || leases.any(|(at, _, lease)| {
                            at == *server && lease.wait == wait && lease.until + MILLIS >= until
                        })
                });
                let count = lasting.count();
                if count < facts.plan.majority() {
                    let text = format!(
                        "w{wait} is valid until {until}, its lease on {count} servers only"
                    );
                    violations.push(Violation {
                        invariant: "I3",
                        check: "lease end",
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

/// I4: a lease ends only by its owner's release or by the server's clock.
pub(super) fn foreign_release(facts: &Facts<'_>) -> Vec<Violation> {
    let mut violations = Vec::new();
    for event in facts.events {
        if let What::Executed(it) = &event.what {
            let find = |leases: &[Lease], lease: &Lease| {
                leases.iter().any(|other| other.wait == lease.wait)
            };
            let is_release = matches!(it.kind, Kind::Release | Kind::Requeue);
            // Servers count in milliseconds.
            let stood = it
                .before
                .iter()
                .filter(|lease| lease.until > event.at + 2 * MILLIS);
            for lease in stood.filter(|lease| !find(&it.after, lease)) {
                if !is_release || lease.wait != it.wait {
                    violations.push(reject(
                        "I4",
                        "foreign release",
                        event,
                        it,
                        lease,
                        "was ended by",
                    ));
                }
            }
        }
    }
    violations
}

/// I6: a request that may only confirm a lease restores none, and makes no shared lease exclusive.
pub(super) fn resurrection(facts: &Facts<'_>) -> Vec<Violation> {
    let mut violations = Vec::new();
    for event in facts.events {
        let What::Executed(it) = &event.what else {
            continue;
        };
        let Some(after) = it.own_after() else {
            continue;
        };
        let what = match it.own_before() {
            Some(before) if before.mode == Mode::Shared && after.mode == Mode::Exclusive => {
                "became exclusive again by"
            }
            None if is_revival(it) => "came back by",
            _ => continue,
        };
        violations.push(reject("I6", "resurrection", event, it, after, what));
    }
    violations
}

fn is_revival(it: &Execution) -> bool {
    let modes = || it.after.iter().map(|lease| lease.mode).collect::<Vec<_>>();
    match it.kind {
        // The late release of an earlier round grants the lock to the present round of the wait.
        Kind::Release if it.grants_own => !are_compatible(&modes()),
        Kind::Renew
        | Kind::ConfirmFence
        | Kind::DrawFence
        | Kind::Release
        | Kind::Requeue
        | Kind::Dequeue
        | Kind::Heartbeat => true,
        Kind::Repair => !it.before.is_empty(),
        Kind::Acquire | Kind::Try => !are_compatible(&modes()),
    }
}

fn reject(
    invariant: &'static str,
    check: &'static str,
    event: &Event,
    it: &Execution,
    lease: &Lease,
    what: &str,
) -> Violation {
    Violation {
        invariant,
        check,
        at: event.at,
        text: format!(
            "the lease of w{} {what} {:?} of c{} for w{} at server {}, lock {}",
            lease.wait, it.kind, it.client, it.wait, it.server, it.lock
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::checks::invented::*;
    use crate::history::Wait;

    #[test]
    fn lease_must_outlast_the_guard_on_a_majority() {
        let with = |servers: usize| {
            let leases =
                (0..servers).map(|server| ran(900, server, Kind::Acquire, 1, &[], &[(1, 3_000)]));
            let events = [
                vec![asked(500, 1, 0)],
                leases.collect(),
                vec![granted(1_000, 1, 3_000)],
            ];
            judge(lease_end, events.concat())
        };
        assert_eq!((with(1), with(2)), (1, 0));
    }

    #[test]
    fn only_the_owner_ends_a_lease() {
        for (kind, by, count) in [
            (Kind::Release, 1, 0),
            (Kind::Requeue, 1, 0),
            (Kind::Release, 2, 1),
            (Kind::Renew, 1, 1),
            (Kind::Acquire, 2, 1),
        ] {
            let ended = ran(2_000, 0, kind, by, &[(1, 9_000)], &[]);
            assert_eq!(judge(foreign_release, vec![ended]), count, "{kind:?}");
        }
        let expired = ran(2_000, 0, Kind::Acquire, 2, &[(1, 2_001)], &[]);
        assert_eq!(judge(foreign_release, vec![expired]), 0);
    }

    #[test]
    fn renewal_brings_no_lease_back() {
        for (kind, count) in [(Kind::Renew, 1), (Kind::Repair, 0), (Kind::Acquire, 0)] {
            let renewed = ran(2_000, 0, kind, 1, &[], &[(1, 9_000)]);
            assert_eq!(judge(resurrection, vec![renewed]), count, "{kind:?}");
        }
        let repaired = ran(2_000, 0, Kind::Repair, 1, &[(2, 3_000)], &[(1, 9_000)]);
        assert_eq!(judge(resurrection, vec![repaired]), 1);
    }

    #[test]
    fn late_release_may_grant_the_next_round() {
        let released = |grants_own, others: &[(Wait, u64)]| {
            let after = [others, &[(1, 9_000)]].concat();
            let mut late = ran(2_000, 0, Kind::Release, 1, others, &after);
            if let What::Executed(it) = &mut late.what {
                it.grants_own = grants_own;
            }
            judge(resurrection, vec![late])
        };
        assert_eq!((released(true, &[]), released(false, &[])), (0, 1));
        assert_eq!(released(true, &[(2, 9_000)]), 1);
    }
}
