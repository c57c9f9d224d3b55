use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use leasehold::{ErrorKind, Mode, Owner};

use super::Violation;
use super::company::permits_differ;
use super::majorities::Majorities;
use crate::sim::execution::{Execution, Kind};
use crate::sim::history::{Event, Hold, Named, What};

/// I7: who is told that the lock has another number of permits asked when so many servers held such
/// permits that no majority was left.
pub(super) fn check(events: &[Event]) -> Vec<Violation> {
    let mut watch = Watch::default();
    events.iter().filter_map(|event| watch.see(event)).collect()
}

#[derive(Default)]
struct Watch {
    majorities: Majorities,
    /// The latest hold that a program asked for, by client, key and TTL.
    latest: BTreeMap<(usize, usize, Duration), Hold>,
    askings: BTreeMap<Hold, Asking>,
    attempts: BTreeMap<Owner, Hold>,
}

struct Asking {
    client: usize,
    members: usize,
    mode: Mode,
    /// Those that held permits of another number when they carried an attempt out.
    refused_by: BTreeSet<usize>,
}

impl Watch {
    fn see(&mut self, event: &Event) -> Option<Violation> {
        self.majorities.see(event);
        match &event.what {
            What::Asked {
                hold,
                client,
                key,
                mode,
                ttl,
                ..
            } => {
                self.latest.insert((*client, *key, *ttl), *hold);
                let asking = Asking {
                    client: *client,
                    members: self.majorities.members(*client),
                    mode: *mode,
                    refused_by: BTreeSet::new(),
                };
                self.askings.insert(*hold, asking);
            }
            What::Sent {
                client,
                key,
                ttl,
                owner,
                ..
            } => {
                if let Some(hold) = self.latest.get(&(*client, *key, *ttl)) {
                    self.attempts.insert(*owner, *hold);
                }
            }
            What::Executed(it) if it.kind == Kind::Acquire => self.carried_out(it),
            What::Denied { hold, named } => return self.denied(*hold, *named, event.at),
            What::Quiet => self.latest.clear(),
            _ => {}
        }
        None
    }

    fn carried_out(&mut self, it: &Execution) {
        let hold = self.attempts.get(&it.owner);
        if let Some(asking) = hold.and_then(|hold| self.askings.get_mut(hold))
            && permits_differ(asking.mode, &it.before)
        {
            asking.refused_by.insert(it.server);
        }
    }

    fn denied(&self, hold: Hold, named: Named, at: Duration) -> Option<Violation> {
        let differ = ErrorKind::PermitsDiffer;
        if named != Named::NoEffect(differ) && named != Named::Unknown(differ) {
            return None;
        }
        let asking = self.askings.get(&hold)?;
        let left = asking.members - asking.refused_by.len().min(asking.members);
        (left >= self.majorities.of(asking.client)).then(|| Violation {
            invariant: "I7",
            at,
            text: format!(
                "h{hold} was told of another number of permits, which {} servers held",
                asking.refused_by.len()
            ),
        })
    }
}

#[cfg(test)]
mod tests {
    use leasehold::Permits;

    use super::*;
    use crate::sim::checks::invented::*;
    use crate::sim::history::Manner;

    #[test]
    fn another_number_that_no_majority_holds_is_no_reason() {
        let permit = |count| Mode::Permit(Permits::new(count).unwrap());
        let refused_by = |servers: usize, held| {
            let lease = Some((7, 9_000));
            let mut refusals: Vec<Event> = (0..servers)
                .map(|server| executed(1_100, server, Kind::Acquire, 1, lease, lease))
                .collect();
            for event in &mut refusals {
                if let What::Executed(execution) = &mut event.what {
                    execution.before[0].mode = held;
                }
            }
            let named = Named::NoEffect(ErrorKind::PermitsDiffer);
            let events = [
                in_mode(permit(2), waits(1_000, 1, 0, Manner::Patient)),
                refusals,
                vec![event(1_200, What::Denied { hold: 1, named })],
            ];
            check(&events.concat()).len()
        };
        assert_eq!((refused_by(2, permit(3)), refused_by(1, permit(3))), (0, 1));
        assert_eq!(refused_by(3, permit(2)), 1);
        assert_eq!(refused_by(3, Mode::Shared), 1);
    }
}
