use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use leasehold::Owner;

use super::Violation;
use super::majorities::Majorities;
use crate::sim::execution::{Execution, Kind, Stand};
use crate::sim::history::{Event, Freed, Hold, Named, What};

/// I7: what was reported to be without effect has none: the attempt that was refused last is not held
/// by a majority from then on, and a release is reported as what a majority of the servers did. They need
/// not hear of one by which the lease goes over to the next of its client.
pub(super) fn check(events: &[Event]) -> Vec<Violation> {
    let mut watch = Watch {
        majorities: Majorities::default(),
        clients: BTreeMap::new(),
        latest: BTreeMap::new(),
        owners: BTreeMap::new(),
        granted: BTreeMap::new(),
        of_sets: BTreeSet::new(),
        refused: BTreeSet::new(),
        stands: BTreeMap::new(),
        freed: BTreeMap::new(),
        told: BTreeSet::new(),
        left: BTreeMap::new(),
        violations: Vec::new(),
    };
    for event in events {
        watch.see(event);
    }
    for (at, hold) in std::mem::take(&mut watch.left).into_values() {
        watch.released(at, hold, Freed::Released);
    }
    watch.violations
}

struct Watch {
    majorities: Majorities,
    /// Who asked, by hold.
    clients: BTreeMap<Hold, usize>,
    /// The latest hold that a program asked for, by client, key and TTL.
    latest: BTreeMap<(usize, usize, Duration), Hold>,
    /// The latest owner that was drawn for a hold.
    owners: BTreeMap<Hold, Owner>,
    granted: BTreeMap<Hold, Owner>,
    /// Those of a set: what was had of it is freed behind its caller's back.
    of_sets: BTreeSet<Hold>,
    /// Holds that were refused for certain.
    refused: BTreeSet<Hold>,
    stands: BTreeMap<(usize, usize), Vec<(Stand, Placed)>>,
    /// The servers that freed a lease when they were told to.
    freed: BTreeMap<Owner, BTreeSet<usize>>,
    /// Of whose release any server was told.
    told: BTreeSet<Owner>,
    /// Releases of which none was told: somebody must have the lease from then on.
    left: BTreeMap<Owner, (Duration, Hold)>,
    violations: Vec<Violation>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Placed {
    Plainly,
    /// By a repeated request: nobody can know of it.
    Astray,
}

impl Watch {
    fn see(&mut self, event: &Event) {
        let at = event.at;
        self.majorities.see(event);
        match &event.what {
            What::Asked {
                hold,
                client,
                key,
                ttl,
                set,
                ..
            } => {
                self.of_sets.extend(set.map(|_| *hold));
                self.latest.insert((*client, *key, *ttl), *hold);
                self.clients.insert(*hold, *client);
            }
            What::Sent {
                client,
                key,
                ttl,
                owner,
                ..
            } => {
                if let Some(hold) = self.latest.get(&(*client, *key, *ttl)) {
                    self.owners.insert(*hold, *owner);
                }
            }
            What::Granted { hold, owner, .. } => {
                self.granted.insert(*hold, *owner);
                self.left.remove(owner);
            }
            What::Denied {
                hold,
                named: Named::NoEffect(_),
            } if !self.of_sets.contains(hold) => {
                self.refused.insert(*hold);
                if let Some(owner) = self.owners.get(hold) {
                    self.must_not_hold(at, *owner);
                }
            }
            What::Crashed { client, .. } => {
                let clients = &self.clients;
                self.left.retain(|_, (_, hold)| clients[hold] != *client);
            }
            // Who asks from then on is no program.
            What::Quiet => self.latest.clear(),
            What::Released { hold, outcome } => match self.granted.get(hold) {
                Some(owner) if *outcome == Freed::Released && !self.told.contains(owner) => {
                    self.left.insert(*owner, (at, *hold));
                }
                _ => self.released(at, *hold, *outcome),
            },
            What::Executed(execution) => self.executed(at, execution),
            What::Holds {
                server,
                key,
                stands,
            } => {
                let astray = stands.iter().map(|stand| (*stand, Placed::Astray));
                self.stands.insert((*server, *key), astray.collect());
            }
            _ => {}
        }
    }

    fn executed(&mut self, at: Duration, execution: &Execution) {
        let (place, owner) = ((execution.server, execution.key), execution.owner);
        let freed = execution.own_before().is_some() && execution.own_after().is_none();
        // Who has it renews it, or frees it.
        self.left.remove(&owner);
        if execution.kind == Kind::Release {
            self.told.insert(owner);
        }
        if execution.kind == Kind::Release && freed {
            self.freed
                .entry(owner)
                .or_default()
                .insert(execution.server);
        }
        let stands = self.stands.entry(place).or_default();
        let now = execution.after.iter().map(|stand| {
            let known = stands.iter().find(|(known, _)| known.owner == stand.owner);
            let placed = match known {
                Some((_, placed)) => *placed,
                None if execution.stray => Placed::Astray,
                None => Placed::Plainly,
            };
            (*stand, placed)
        });
        *stands = now.collect();
        if execution.kind == Kind::Acquire && execution.own_after().is_some() {
            self.must_not_hold(at, owner);
        }
    }

    /// Rejects an attempt that was refused, and is held by a majority.
    fn must_not_hold(&mut self, at: Duration, owner: Owner) {
        let refused =
            |(hold, last): &(&Hold, &Owner)| **last == owner && self.refused.contains(hold);
        let Some((hold, _)) = self.owners.iter().rfind(refused) else {
            return;
        };
        let held = self.stands.values().flatten().filter(|(stand, placed)| {
            stand.owner == owner && *placed == Placed::Plainly && stand.until > at
        });
        if held.count() >= self.needed(*hold) {
            let text = format!("h{hold} was refused, but {owner} holds a majority");
            self.violations.push(Violation {
                invariant: "I7",
                at,
                text,
            });
        }
    }

    fn needed(&self, hold: Hold) -> usize {
        self.majorities.of(self.clients[&hold])
    }

    fn released(&mut self, at: Duration, hold: Hold, outcome: Freed) {
        let owner = self.granted.get(&hold);
        let freed = owner.and_then(|owner| self.freed.get(owner));
        let freed = freed.map_or(0, BTreeSet::len);
        let wrong = match outcome {
            Freed::Released => freed < self.needed(hold),
            Freed::WasLost => freed >= self.needed(hold),
            Freed::Unknown => false,
        };
        if wrong {
            let text = format!("the release of h{hold} says {outcome:?}; {freed} servers freed it");
            self.violations.push(Violation {
                invariant: "I7",
                at,
                text,
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sim::checks::invented::*;

    fn refused(named: Named) -> Vec<Event> {
        vec![
            joined(0, 3),
            asked(1_000, 1, 0, 0),
            sent(1_000, 0, 1),
            event(1_500, What::Denied { hold: 1, named }),
        ]
    }

    fn placed(millis: u64, server: usize, stray: bool) -> Event {
        let mut event = executed(millis, server, Kind::Acquire, 1, None, Some((1, 9_000)));
        if let What::Executed(execution) = &mut event.what {
            execution.stray = stray;
        }
        event
    }

    #[test]
    fn a_refusal_that_holds_a_majority_is_rejected() {
        let later = |named, stray| {
            let placed = vec![placed(2_000, 0, stray), placed(2_000, 1, stray)];
            check(&[refused(named), placed].concat()).len()
        };
        assert_eq!(
            later(Named::Busy, false),
            0,
            "busy does not say that nobody was unsure"
        );
        assert_eq!(
            later(Named::NoEffect(leasehold::ErrorKind::NoQuorum), false),
            1
        );
        assert_eq!(
            later(Named::Unknown(leasehold::ErrorKind::NoQuorum), false),
            0
        );
        assert_eq!(
            later(Named::NoEffect(leasehold::ErrorKind::NoQuorum), true),
            0,
            "nobody can know of a repeated request"
        );
    }

    #[test]
    fn a_refused_reader_that_holds_among_others_is_rejected() {
        let none = Named::NoEffect(leasehold::ErrorKind::NoQuorum);
        let beside = (0..2).map(|server| {
            let mut event = placed(2_000, server, false);
            if let What::Executed(execution) = &mut event.what {
                execution.before = shared(&[(2, 9_000)]);
                execution.after = shared(&[(2, 9_000), (1, 9_000)]);
            }
            event
        });
        let events = [refused(none), beside.collect()];
        assert_eq!(check(&events.concat()).len(), 1);
    }

    #[test]
    fn a_release_of_which_nobody_hears_leaves_the_lease_to_somebody() {
        let released = |after: Vec<Event>| {
            let outcome = Freed::Released;
            let events = [
                vec![joined(0, 3)],
                grant(1, 0, 0, 1_000, 5_000),
                vec![event(2_500, What::Released { hold: 1, outcome })],
                after,
            ];
            check(&events.concat()).len()
        };
        assert_eq!(released(vec![]), 1);
        let lease = Some((1, 9_000));
        let renewed = executed(3_000, 0, Kind::Renew, 1, lease, lease);
        assert_eq!(released(vec![renewed]), 0);
        let another = executed(3_000, 0, Kind::Renew, 2, lease, lease);
        assert_eq!(released(vec![another]), 1);
        let crashed = |client| {
            let killed = true;
            vec![event(3_000, What::Crashed { client, killed })]
        };
        assert_eq!((released(crashed(0)), released(crashed(1))), (0, 1));
        let next = vec![asked(2_000, 2, 0, 0), granted(3_000, 2, 5_000)];
        assert_eq!(released(next), 1, "it has a lease of its own");
        let heir = vec![asked(2_000, 2, 0, 0), inherits(3_000, 2, 1)];
        assert_eq!(released(heir), 0);
    }

    #[test]
    fn a_release_that_says_what_did_not_happen_is_rejected() {
        let releases = |outcome, servers: usize| {
            let mut events = vec![joined(0, 3)];
            events.extend(grant(1, 0, 0, 1_000, 5_000));
            for server in 0..servers {
                let freed = executed(2_000, server, Kind::Release, 1, Some((1, 9_000)), None);
                events.push(freed);
            }
            events.push(event(2_500, What::Released { hold: 1, outcome }));
            check(&events).len()
        };
        assert_eq!(
            (releases(Freed::Released, 2), releases(Freed::Released, 1)),
            (0, 1)
        );
        assert_eq!(
            (releases(Freed::WasLost, 1), releases(Freed::WasLost, 2)),
            (0, 1)
        );
        assert_eq!(releases(Freed::Unknown, 2), 0);
    }
}
