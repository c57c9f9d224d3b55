use std::collections::BTreeMap;
use std::rc::Rc;

use crate::history::{Event, Lease, Wait, What};
use crate::time::Time;

/// The state of the servers at the point that the check has reached in the history.
#[derive(Debug, Default)]
pub(super) struct Servers {
    leases: BTreeMap<(usize, usize), Rc<[Lease]>>,
    queues: BTreeMap<(usize, usize), Vec<Wait>>,
    down: Vec<usize>,
}

impl Servers {
    pub(super) fn see(&mut self, event: &Event) {
        match &event.what {
            What::Executed(it) => {
                self.leases
                    .insert((it.server, it.lock), Rc::clone(&it.after));
            }
            What::Holds {
                server,
                lock,
                leases,
            } => {
                self.leases.insert((*server, *lock), Rc::clone(leases));
            }
            What::Queue {
                server,
                lock,
                waits,
            } => {
                self.queues.insert((*server, *lock), waits.clone());
            }
            What::Available { server, is_up } => {
                self.down.retain(|other| other != server);
                if !is_up {
                    self.down.push(*server);
                }
            }
            _ => {}
        }
    }

    pub(super) fn is_up(&self, server: usize) -> bool {
        !self.down.contains(&server)
    }

    /// Returns the leases that last beyond `at`, with their servers and locks.
    pub(super) fn leases(&self, at: Time) -> impl Iterator<Item = (usize, usize, &Lease)> {
        let all = self.leases.iter();
        let all = all.flat_map(|((server, lock), leases)| {
            leases.iter().map(|lease| (*server, *lock, lease))
        });
        all.filter(move |(.., lease)| lease.until > at)
    }

    /// How many servers hold a lease of `wait` at `at`.
    pub(super) fn holding(&self, wait: Wait, at: Time) -> usize {
        self.leases(at)
            .filter(|(.., lease)| lease.wait == wait)
            .count()
    }

    pub(super) fn queues(&self) -> impl Iterator<Item = (usize, usize, &[Wait])> {
        let all = self.queues.iter();
        all.map(|((server, lock), waits)| (*server, *lock, &waits[..]))
    }

    /// Returns the positions of a wait at the servers where it is queued. Position 1 is next.
    pub(super) fn positions(&self, wait: Wait) -> impl Iterator<Item = usize> {
        let positions = move |queue: &Vec<Wait>| queue.iter().position(|it| *it == wait);
        self.queues
            .values()
            .filter_map(positions)
            .map(|position| position + 1)
    }
}
