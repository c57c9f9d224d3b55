use std::collections::BTreeMap;
use std::time::Duration;

use super::Violation;
use crate::sim::execution::{Execution, Kind, Stand, of};
use crate::sim::history::{Event, What};

/// I4: a server's lease ends by its owner's release or by the server's clock, and by nothing that a
/// client can send.
pub(super) fn check(events: &[Event]) -> Vec<Violation> {
    let mut violations = Vec::new();
    let mut stands = BTreeMap::<(usize, usize), Vec<Stand>>::new();
    for Event { at, what } in events {
        match what {
            What::Executed(execution) => {
                let place = (execution.server, execution.key);
                let known = stands.entry(place).or_default();
                let stood = known.iter().filter(|stand| stand.until > *at + ROUNDING);
                for lost in stood.filter(|it| of(&execution.before, it.owner).is_none()) {
                    violations.push(reject(*at, execution, lost, "had vanished before"));
                }
                let ended = execution.before.iter();
                for lost in ended.filter(|it| of(&execution.after, it.owner).is_none()) {
                    if execution.kind != Kind::Release || execution.owner != lost.owner {
                        violations.push(reject(*at, execution, lost, "was ended by"));
                    }
                }
                known.clone_from(&execution.after);
            }
            What::Holds {
                server,
                key,
                stands: now,
            } => {
                stands.insert((*server, *key), now.clone());
            }
            _ => {}
        }
    }
    violations
}

fn reject(at: Duration, execution: &Execution, stand: &Stand, what: &str) -> Violation {
    Violation {
        invariant: "I4",
        at,
        text: format!("the lease of {} {what}: {execution}", stand.owner),
    }
}

/// Instants of the servers' clocks are whole microseconds.
const ROUNDING: Duration = Duration::from_millis(1);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sim::checks::invented::*;

    #[test]
    fn a_lease_that_somebody_else_ended_is_rejected() {
        for (kind, by, harmless) in [
            (Kind::Release, 1, true),
            (Kind::Release, 2, false),
            (Kind::Renew, 1, false),
            (Kind::Acquire, 2, false),
        ] {
            let ended = executed(2_000, 0, kind, by, Some((1, 9_000)), None);
            assert_eq!(check(&[ended]).is_empty(), harmless, "{kind:?}");
        }
    }

    #[test]
    fn a_reader_that_leaves_takes_nobody_else_with_it() {
        let leaves = |left: &[(usize, u64)]| {
            let mut event = executed(2_000, 0, Kind::Release, 1, None, None);
            if let What::Executed(execution) = &mut event.what {
                execution.before = shared(&[(1, 9_000), (2, 9_000)]);
                execution.after = shared(left);
            }
            check(&[event]).len()
        };
        assert_eq!((leaves(&[(2, 9_000)]), leaves(&[])), (0, 1));
    }

    #[test]
    fn a_lease_that_vanished_by_itself_is_rejected() {
        let found = |millis, before| {
            let placed = executed(1_000, 0, Kind::Acquire, 1, None, Some((1, 5_000)));
            let seen = executed(millis, 0, Kind::Seal, 2, before, before);
            check(&[placed, seen]).len()
        };
        assert_eq!(found(2_000, Some((1, 5_000))), 0);
        assert_eq!(found(2_000, None), 1);
        assert_eq!(found(5_100, None), 0, "it had expired");
    }
}
