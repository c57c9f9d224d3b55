use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use leasehold::{Mode, Owner};

use super::majorities::Majorities;
use crate::sim::execution::Stand;
use crate::sim::history::{Event, Hold, What};

/// One lock of a set, for as long as a majority of the servers held it for one attempt: also while
/// others of the set were still waited for, when its client has not heard of any guard.
#[derive(Clone, Debug)]
pub(super) struct Gathered {
    pub(super) hold: Hold,
    pub(super) key: usize,
    pub(super) mode: Mode,
    pub(super) from: Duration,
    pub(super) to: Duration,
}

/// All of them, in the order in which they began.
pub(super) fn gathered(events: &[Event]) -> Vec<Gathered> {
    let mut watch = Watch::default();
    for event in events {
        watch.see(event);
    }
    watch.all
}

#[derive(Default)]
struct Watch {
    majorities: Majorities,
    /// The latest hold of a set that a program asked for, by client, key and TTL.
    latest: BTreeMap<(usize, usize, Duration), (Hold, Mode)>,
    attempts: BTreeMap<Owner, Attempt>,
    all: Vec<Gathered>,
}

struct Attempt {
    hold: Hold,
    mode: Mode,
    client: usize,
    key: usize,
    servers: BTreeSet<usize>,
    /// Where among all it is told, while a majority holds it.
    index: Option<usize>,
}

impl Watch {
    fn see(&mut self, event: &Event) {
        self.majorities.see(event);
        match &event.what {
            What::Asked {
                hold,
                client,
                key,
                mode,
                ttl,
                set,
                ..
            } => {
                let place = (*client, *key, *ttl);
                match set {
                    Some(_) => self.latest.insert(place, (*hold, *mode)),
                    None => self.latest.remove(&place),
                };
            }
            What::Sent {
                client,
                key,
                ttl,
                owner,
                ..
            } => {
                if let Some((hold, mode)) = self.latest.get(&(*client, *key, *ttl)) {
                    self.attempts.entry(*owner).or_insert(Attempt {
                        hold: *hold,
                        mode: *mode,
                        client: *client,
                        key: *key,
                        servers: BTreeSet::new(),
                        index: None,
                    });
                }
            }
            What::Executed(it) => self.stand(event.at, it.server, it.key, &it.after),
            What::Holds {
                server,
                key,
                stands,
            } => self.stand(event.at, *server, *key, stands),
            What::Quiet => self.latest.clear(),
            _ => {}
        }
    }

    fn stand(&mut self, at: Duration, server: usize, key: usize, stands: &[Stand]) {
        let of_key = self.attempts.iter_mut().filter(|(_, it)| it.key == key);
        for (owner, attempt) in of_key {
            if stands.iter().any(|stand| stand.owner == *owner) {
                attempt.servers.insert(server);
            } else {
                attempt.servers.remove(&server);
            }
            let is_held = attempt.servers.len() >= self.majorities.of(attempt.client);
            match attempt.index {
                None if is_held => {
                    attempt.index = Some(self.all.len());
                    self.all.push(Gathered {
                        hold: attempt.hold,
                        key,
                        mode: attempt.mode,
                        from: at,
                        to: Duration::MAX,
                    });
                }
                Some(index) if !is_held => {
                    attempt.index = None;
                    self.all[index].to = at;
                }
                _ => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sim::checks::invented::*;
    use crate::sim::execution::Kind;
    use crate::sim::history::Manner;

    #[test]
    fn a_lock_is_gathered_while_a_majority_holds_it() {
        let place =
            |millis, server| executed(millis, server, Kind::Acquire, 1, None, Some((1, 9_000)));
        let free =
            |millis, server| executed(millis, server, Kind::Release, 1, Some((1, 9_000)), None);
        let events = [
            of_a_set(waits(1_000, 1, 0, Manner::Patient)),
            vec![place(1_100, 0), place(1_200, 1), place(1_300, 2)],
            vec![free(2_000, 1), free(2_100, 0), free(2_200, 2)],
        ];
        let all = gathered(&events.concat());
        let spans: Vec<_> = all
            .iter()
            .map(|it| (it.hold, it.from.as_millis(), it.to.as_millis()))
            .collect();
        assert_eq!(spans, [(1, 1_200, 2_100)]);
    }
}
