use std::collections::BTreeMap;
use std::time::Duration;

use leasehold::Owner;

use super::Violation;
use crate::sim::history::{Event, Hold, What};

/// I5: what was refused or given up while nothing was in the way is held by no server soon after: not
/// one lock of a set that could not be had as a whole.
pub(super) fn check(events: &[Event]) -> Vec<Violation> {
    let mut watch = Watch::default();
    for event in events {
        watch.see(event);
    }
    watch.violations
}

#[derive(Default)]
struct Watch {
    calm: bool,
    /// The latest hold that a program asked for, by client, key and TTL.
    latest: BTreeMap<(usize, usize, Duration), Hold>,
    attempts: BTreeMap<Owner, Hold>,
    /// When a hold was refused or given up.
    let_go: BTreeMap<Hold, Duration>,
    stands: BTreeMap<(usize, usize), Vec<Owner>>,
    violations: Vec<Violation>,
}

impl Watch {
    fn see(&mut self, event: &Event) {
        let at = event.at;
        self.judge(at);
        match &event.what {
            What::Calm => self.calm = true,
            What::Quiet => {
                self.calm = false;
                self.let_go.clear();
                self.latest.clear();
            }
            What::Asked {
                hold,
                client,
                key,
                ttl,
                ..
            } => {
                self.latest.insert((*client, *key, *ttl), *hold);
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
            // Also a lease that another left.
            What::Granted { hold, owner, .. } => {
                self.attempts.insert(*owner, *hold);
            }
            What::Denied { hold, .. } | What::Cancelled { hold } if self.calm => {
                self.let_go.insert(*hold, at);
            }
            What::Executed(it) => {
                let owners = it.after.iter().map(|stand| stand.owner);
                self.stands.insert((it.server, it.key), owners.collect());
            }
            What::Holds {
                server,
                key,
                stands,
            } => {
                let owners = stands.iter().map(|stand| stand.owner);
                self.stands.insert((*server, *key), owners.collect());
            }
            // It can free nothing any more.
            What::Crashed { .. } => self.let_go.clear(),
            _ => {}
        }
    }

    fn judge(&mut self, now: Duration) {
        let due = |when: &Duration| *when + SOON < now;
        if !self.let_go.values().any(due) {
            return;
        }
        for ((server, key), owners) in &self.stands {
            let held = owners.iter().filter_map(|owner| self.attempts.get(owner));
            for hold in held.filter(|hold| self.let_go.get(hold).is_some_and(due)) {
                let text = format!("server {server} holds key {key} for h{hold}, which was let go");
                self.violations.push(Violation {
                    invariant: "I5",
                    at: now,
                    text,
                });
            }
        }
        self.let_go.retain(|_, when| !due(when));
    }
}

/// An attempt that is under way is seen through, and freed.
const SOON: Duration = Duration::from_millis(500);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sim::checks::invented::*;
    use crate::sim::execution::Kind;
    use crate::sim::history::Manner;

    #[test]
    fn what_is_let_go_and_held_on_to_is_rejected() {
        let given_up = |freed| {
            let (lease, end) = (Some((1, 9_000)), What::Cancelled { hold: 1 });
            let events = [
                vec![event(500, What::Calm)],
                of_a_set(waits(1_000, 1, 0, Manner::Patient)),
                vec![
                    executed(1_100, 0, Kind::Acquire, 1, None, lease),
                    event(2_000, end),
                    executed(freed, 0, Kind::Release, 1, lease, None),
                    event(4_000, What::Quiet),
                ],
            ];
            check(&events.concat()).len()
        };
        assert_eq!((given_up(2_500), given_up(2_501)), (0, 1));
    }
}
