use std::collections::BTreeMap;
use std::time::Duration;

use leasehold::Mode;

use super::Violation;
use super::company::may_stand_together;
use super::spans::spans;
use crate::sim::execution::{Execution, Kind, Stand};
use crate::sim::history::{Event, Hold, What};

/// I6: neither a guard nor a lease comes back by being renewed.
pub(super) fn check(events: &[Event]) -> Vec<Violation> {
    let excused = spans(events).into_iter().filter(|span| span.excused);
    let excused: Vec<Hold> = excused.map(|span| span.hold).collect();
    let mut until = BTreeMap::<Hold, Duration>::new();
    let mut violations = Vec::new();
    for Event { at, what } in events {
        let mut reject = |text| {
            violations.push(Violation {
                invariant: "I6",
                at: *at,
                text,
            });
        };
        match what {
            What::Granted {
                hold, until: new, ..
            } => {
                until.insert(*hold, *new);
            }
            What::Moved { hold, until: new } => {
                let old = until.insert(*hold, *new).unwrap_or_default();
                if old <= *at && *new > old && !excused.contains(hold) {
                    reject(format!(
                        "h{hold} has a new deadline after the old one had passed"
                    ));
                }
            }
            What::Lost { hold } => {
                until.insert(*hold, Duration::ZERO);
            }
            What::Executed(execution) if upgraded(execution) => {
                reject(format!("a shared lease is exclusive again: {execution}"));
            }
            What::Executed(execution) if revived(execution) => {
                reject(format!("a lease came back: {execution}"));
            }
            _ => {}
        }
    }
    violations
}

/// Whether a request made a lease exclusive that was shared.
fn upgraded(execution: &Execution) -> bool {
    let mode = |stand: Option<&Stand>| stand.map(|stand| stand.mode);
    mode(execution.own_before()) == Some(Mode::Shared)
        && mode(execution.own_after()) == Some(Mode::Exclusive)
}

/// Whether a request put a lease in place that may only confirm one, fill an empty place, or join
/// those that may be joined.
fn revived(execution: &Execution) -> bool {
    if execution.own_after().is_none() || execution.own_before().is_some() {
        return false;
    }
    match execution.kind {
        Kind::Renew | Kind::Seal | Kind::Release => true,
        Kind::Heal => !execution.before.is_empty(),
        Kind::Acquire => {
            let modes: Vec<_> = execution.after.iter().map(|stand| stand.mode).collect();
            !may_stand_together(&modes)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sim::checks::invented::*;

    #[test]
    fn a_deadline_that_moves_after_it_passed_is_rejected() {
        let renewed =
            |millis| [grant(1, 0, 0, 1_000, 3_000), vec![moved(millis, 1, 6_000)]].concat();
        assert!(check(&renewed(2_999)).is_empty());
        assert_eq!(check(&renewed(3_000)).len(), 1);
        let mut after_lost = renewed(2_500);
        after_lost.insert(2, lost(2_000, 1));
        assert_eq!(check(&after_lost).len(), 1);
    }

    #[test]
    fn a_lease_that_a_renewal_puts_in_place_is_rejected() {
        let execution = |kind, before| executed(2_000, 0, kind, 1, before, Some((1, 9_000)));
        assert!(check(&[execution(Kind::Heal, None)]).is_empty());
        assert!(check(&[execution(Kind::Renew, Some((1, 5_000)))]).is_empty());
        assert_eq!(check(&[execution(Kind::Renew, None)]).len(), 1);
        assert_eq!(check(&[execution(Kind::Heal, Some((2, 5_000)))]).len(), 1);
    }

    #[test]
    fn a_shared_lease_that_becomes_exclusive_is_rejected() {
        let changes = |before: Mode, after: Mode| {
            let lease = Some((1, 9_000));
            let mut event = executed(2_000, 0, Kind::Renew, 1, lease, lease);
            if let What::Executed(execution) = &mut event.what {
                execution.before[0].mode = before;
                execution.after[0].mode = after;
            }
            check(&[event]).len()
        };
        assert_eq!(changes(Mode::Exclusive, Mode::Shared), 0);
        assert_eq!(changes(Mode::Shared, Mode::Exclusive), 1);
    }

    #[test]
    fn a_lease_that_joins_those_of_another_mode_is_rejected() {
        let joins = |mode| {
            let mut event = executed(2_000, 0, Kind::Acquire, 2, None, None);
            if let What::Executed(execution) = &mut event.what {
                execution.before = shared(&[(1, 9_000)]);
                execution.after = shared(&[(1, 9_000), (2, 9_000)]);
                execution.after[1].mode = mode;
            }
            check(&[event]).len()
        };
        assert_eq!((joins(Mode::Shared), joins(Mode::Exclusive)), (0, 1));
    }
}
