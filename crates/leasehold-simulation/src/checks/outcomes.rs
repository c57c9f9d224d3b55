use std::collections::{BTreeMap, BTreeSet};

use leasehold::ErrorKind;

use super::Violation;
use super::facts::Facts;
use super::servers::Servers;
use crate::history::{Denial, Event, Freed, Kind, Lease, Wait, What};
use crate::time::{MILLIS, Time};

/// I7: an operation that is reported to have no effect has none. The reported result of a release is what a
/// majority of the servers did.
pub(super) fn reported(facts: &Facts<'_>) -> Vec<Violation> {
    let mut servers = Servers::default();
    let mut refused = BTreeSet::new();
    let mut freed = BTreeMap::<Wait, BTreeMap<usize, bool>>::new();
    let mut violations = Vec::new();
    let majority = facts.plan.majority();
    for event in facts.events {
        servers.see(event);
        match &event.what {
            What::Denied {
                wait,
                reason:
                    Denial::Failed {
                        without_effect: true,
                        ..
                    },
            } => {
                refused.insert(*wait);
                if servers.holding(*wait, event.at) >= majority {
                    violations.push(reject(event.at, *wait, "was refused and holds a majority"));
                }
            }
            What::Executed(it) => {
                if matches!(it.kind, Kind::Acquire | Kind::Try)
                    && refused.contains(&it.wait)
                    && servers.holding(it.wait, event.at) >= majority
                {
                    violations.push(reject(
                        event.at,
                        it.wait,
                        "was refused and holds a majority",
                    ));
                }
                // A late attempt of an earlier round may have taken another permit.
                let own = |leases: &[Lease], least: Time| {
                    let own = |it: &&Lease, wait| it.wait == wait && it.until >= least;
                    leases.iter().filter(|lease| own(lease, it.wait)).count()
                };
                let left = own(&it.after, 0);
                if it.kind == Kind::Release && left < own(&it.before, 0) {
                    // Servers count in milliseconds. So the lease may have ended just before.
                    let was_valid = left < own(&it.before, event.at + 2 * MILLIS);
                    let freed = freed.entry(it.wait).or_default();
                    *freed.entry(it.server).or_default() |= was_valid;
                }
            }
            // What was freed before that were attempts that failed.
            What::Ended { wait } => drop(freed.remove(wait)),
            What::Released { wait, outcome } => {
                let freed = freed.get(wait).into_iter().flat_map(BTreeMap::values);
                let (count, valid) = (freed.clone().count(), freed.filter(|it| **it).count());
                let is_wrong = match outcome {
                    Freed::Released => count < majority,
                    Freed::WasLost => valid >= majority,
                    Freed::Unknown => false,
                };
                if is_wrong && facts.waits[wait].detached.is_none() {
                    let text = format!("is reported as {outcome:?}, and {count} servers freed it");
                    violations.push(reject(event.at, *wait, &text));
                }
            }
            _ => {}
        }
    }
    violations
}

/// I7: a request is refused for its number of permits only if no majority of the servers is free of other
/// permits.
pub(super) fn differing(facts: &Facts<'_>) -> Vec<Violation> {
    let mut refused_by = BTreeMap::<Wait, BTreeSet<usize>>::new();
    let mut violations = Vec::new();
    for event in facts.events {
        match &event.what {
            What::Executed(it) if matches!(it.kind, Kind::Acquire | Kind::Try) => {
                let wanted = facts.waits[&it.wait].asked.mode.permits();
                let held = it.before.iter().filter_map(|lease| lease.mode.permits());
                if wanted.is_some_and(|wanted| held.into_iter().any(|it| it != wanted)) {
                    refused_by.entry(it.wait).or_default().insert(it.server);
                }
            }
            What::Denied {
                wait,
                reason:
                    Denial::Failed {
                        kind: ErrorKind::PermitsDiffer,
                        ..
                    },
            } => {
                let count = refused_by.get(wait).map_or(0, BTreeSet::len);
                if facts.plan.servers - count >= facts.plan.majority() {
                    let text = format!("learned of other permits, which {count} servers held");
                    violations.push(reject(event.at, *wait, &text));
                }
            }
            _ => {}
        }
    }
    violations
}

/// I8: every wait and every release ends. A wait in the queue ends without the lock only for a reason that
/// asking again cannot change.
pub(super) fn stuck(facts: &Facts<'_>) -> Vec<Violation> {
    let broken = |event: &Event| match event.what {
        What::Stuck { wait } => Some(reject_as("I8", "stuck", event.at, wait, "does not end")),
        What::Denied { wait, reason } if super::facts::is_queued(&facts.waits[&wait]) => {
            let final_reason = Denial::Failed {
                kind: ErrorKind::PermitsDiffer,
                without_effect: true,
            };
            let text = format!("waits, and ended with {reason:?}");
            (reason != final_reason).then(|| reject_as("I8", "stuck", event.at, wait, &text))
        }
        _ => None,
    };
    facts.events.iter().filter_map(broken).collect()
}

fn reject(at: Time, wait: Wait, text: &str) -> Violation {
    reject_as("I7", "reported", at, wait, text)
}

fn reject_as(
    invariant: &'static str,
    check: &'static str,
    at: Time,
    wait: Wait,
    text: &str,
) -> Violation {
    Violation {
        invariant,
        check,
        at,
        text: format!("w{wait} {text}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::checks::invented::*;

    #[test]
    fn release_is_reported_as_the_majority_did() {
        let released = |servers: usize, outcome| {
            let freed = (0..servers).map(|it| ran(2_000, it, Kind::Release, 1, &[(1, 9_000)], &[]));
            let released = event(3_000, What::Released { wait: 1, outcome });
            let events = [grant(1, 0, 1_000, 9_000), freed.collect(), vec![released]];
            judge(reported, events.concat())
        };
        assert_eq!(
            (released(1, Freed::Released), released(2, Freed::Released)),
            (1, 0)
        );
        assert_eq!(
            (released(1, Freed::WasLost), released(2, Freed::WasLost)),
            (0, 1)
        );
        assert_eq!(released(0, Freed::Unknown), 0);
    }

    #[test]
    fn expired_lease_may_be_reported_as_lost() {
        let released = |until| {
            let freed = (0..2).map(|it| ran(2_000, it, Kind::Release, 1, &[(1, until)], &[]));
            let outcome = Freed::WasLost;
            let released = event(3_000, What::Released { wait: 1, outcome });
            let events = [grant(1, 0, 1_000, 1_900), freed.collect(), vec![released]];
            judge(reported, events.concat())
        };
        assert_eq!((released(1_999), released(2_001)), (0, 0));
        assert_eq!(released(2_002), 1);
    }

    #[test]
    fn failed_round_is_no_release() {
        let gave_back = (0..2).map(|it| ran(500, it, Kind::Release, 1, &[(1, 9_000)], &[]));
        let ends = |freed: usize| {
            let freed = (0..freed).map(|it| ran(2_500, it, Kind::Release, 1, &[(1, 9_000)], &[]));
            let outcome = Freed::WasLost;
            let events = [
                gave_back.clone().collect(),
                grant(1, 0, 1_000, 9_000),
                vec![event(2_000, What::Ended { wait: 1 })],
                freed.collect(),
                vec![event(3_000, What::Released { wait: 1, outcome })],
            ];
            judge(reported, events.concat())
        };
        assert_eq!((ends(0), ends(2)), (0, 1));
    }

    #[test]
    fn refused_wait_holds_no_majority() {
        let reason = Denial::Failed {
            kind: ErrorKind::NoQuorum,
            without_effect: true,
        };
        let late = |servers: usize| {
            let late = (0..servers).map(|it| ran(2_000, it, Kind::Acquire, 1, &[], &[(1, 9_000)]));
            let denied = event(1_500, What::Denied { wait: 1, reason });
            judge(
                reported,
                [vec![asked(1_000, 1, 0), denied], late.collect()].concat(),
            )
        };
        assert_eq!((late(1), late(2)), (0, 1));
    }

    #[test]
    fn queued_wait_does_not_end_by_itself() {
        let denied = |kind| {
            let reason = Denial::Failed {
                kind,
                without_effect: true,
            };
            judge(
                stuck,
                vec![
                    asked(1_000, 1, 0),
                    event(1_500, What::Denied { wait: 1, reason }),
                ],
            )
        };
        assert_eq!(
            (
                denied(ErrorKind::NoQuorum),
                denied(ErrorKind::PermitsDiffer)
            ),
            (1, 0)
        );
        assert_eq!(judge(stuck, vec![event(1_000, What::Stuck { wait: 1 })]), 1);
    }
}
