use std::collections::BTreeMap;
use std::time::Duration;

use super::Violation;
use super::spans::spans;
use crate::sim::history::{Event, Execution, Hold, Kind, What};

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
            What::Executed(execution) if revived(execution) => {
                reject(format!("a lease came back: {execution}"));
            }
            _ => {}
        }
    }
    violations
}

/// Whether a request put a lease in place that may only confirm one, or fill an empty place.
fn revived(execution: &Execution) -> bool {
    let owned = |stand: &Option<_>| {
        stand.is_some_and(|stand: crate::sim::history::Stand| stand.owner == execution.owner)
    };
    let placed = owned(&execution.after) && !owned(&execution.before);
    match execution.kind {
        Kind::Renew | Kind::Seal | Kind::Release => placed,
        Kind::Acquire | Kind::Heal => placed && execution.before.is_some(),
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
}
