use std::collections::BTreeMap;
use std::time::Duration;

use super::Violation;
use crate::sim::history::{Event, Execution, Kind, Stand, What};

/// I4: a server's lease ends by its owner's release or by the server's clock, and by nothing that a
/// client can send.
pub(super) fn check(events: &[Event]) -> Vec<Violation> {
    let mut violations = Vec::new();
    let mut stands = BTreeMap::<(usize, usize), Stand>::new();
    for Event { at, what } in events {
        match what {
            What::Executed(execution) => {
                let place = (execution.server, execution.key);
                let known = stands
                    .get(&place)
                    .filter(|stand| stand.until > *at + ROUNDING);
                let vanished = known.filter(|known| !is_of(&execution.before, known));
                if let Some(known) = vanished {
                    violations.push(reject(*at, execution, known, "had vanished before"));
                }
                if let Some(before) = &execution.before
                    && !is_of(&execution.after, before)
                    && !(execution.kind == Kind::Release && execution.owner == before.owner)
                {
                    violations.push(reject(*at, execution, before, "was ended by"));
                }
                keep(&mut stands, place, execution.after);
            }
            What::Holds { server, key, stand } => keep(&mut stands, (*server, *key), *stand),
            _ => {}
        }
    }
    violations
}

fn keep(stands: &mut BTreeMap<(usize, usize), Stand>, place: (usize, usize), now: Option<Stand>) {
    match now {
        Some(stand) => stands.insert(place, stand),
        None => stands.remove(&place),
    };
}

fn is_of(stand: &Option<Stand>, other: &Stand) -> bool {
    stand.is_some_and(|stand| stand.owner == other.owner)
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
