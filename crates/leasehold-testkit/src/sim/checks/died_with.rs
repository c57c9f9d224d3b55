use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use leasehold::{Mode, Owner};

use super::majorities::Majorities;
use crate::sim::execution::Kind;
use crate::sim::history::{Event, What};

/// A lock that a majority of the servers granted to a client that died before it heard of it: it is held
/// until its lease runs out, though there never is a guard.
#[derive(Clone, Copy, Debug)]
pub(super) struct DiedWith {
    pub(super) key: usize,
    pub(super) mode: Mode,
    pub(super) from: Duration,
}

pub(super) fn died_with(events: &[Event]) -> Vec<DiedWith> {
    let mut majorities = Majorities::default();
    let mut granted = BTreeSet::new();
    let mut crashed = BTreeMap::new();
    let mut servers: BTreeMap<Owner, BTreeSet<usize>> = BTreeMap::new();
    let mut held = Vec::new();
    for event in events {
        majorities.see(event);
        match &event.what {
            What::Granted { owner, .. } => {
                granted.insert(*owner);
            }
            What::Crashed { client, .. } => {
                crashed.insert(*client, event.at);
            }
            What::Executed(it) if it.kind == Kind::Acquire => {
                let Some(stand) = it.own_after() else {
                    continue;
                };
                let servers = servers.entry(it.owner).or_default();
                if servers.insert(it.server) && servers.len() == majorities.of(it.client) {
                    let lock = DiedWith {
                        key: it.key,
                        mode: stand.mode,
                        from: event.at,
                    };
                    held.push((it.client, it.owner, lock));
                }
            }
            _ => {}
        }
    }
    let unheard = |(client, owner, lock): &(usize, Owner, DiedWith)| {
        let died = crashed.get(client);
        died.is_some_and(|died| *died <= lock.from + HEARD) && !granted.contains(owner)
    };
    let died = held.into_iter().filter(unheard);
    died.map(|(.., lock)| lock).collect()
}

/// By then a client that lives has heard of its grant, or given it back.
const HEARD: Duration = Duration::from_millis(500);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sim::checks::invented::*;

    fn found(then: Vec<Event>) -> Vec<u128> {
        let place =
            |millis, server| executed(millis, server, Kind::Acquire, 1, None, Some((1, 9_000)));
        let events = [
            vec![joined(0, 3)],
            vec![asked(1_000, 1, 0, 0), sent(1_000, 0, 1)],
            vec![place(1_100, 0), place(1_200, 1), place(1_300, 2)],
            then,
        ];
        let all = died_with(&events.concat());
        all.iter().map(|it| it.from.as_millis()).collect()
    }

    #[test]
    fn a_lock_dies_with_a_client_that_has_not_heard_of_it() {
        assert_eq!(found(vec![crashed(1_400, 0, false)]), [1_200]);
        assert!(found(vec![]).is_empty(), "it lives");
        assert!(found(vec![crashed(1_400, 1, false)]).is_empty(), "another");
        assert!(found(vec![crashed(1_701, 0, false)]).is_empty(), "later");
        let heard = vec![granted(1_350, 1, 9_000), crashed(1_400, 0, false)];
        assert!(found(heard).is_empty());
    }
}
