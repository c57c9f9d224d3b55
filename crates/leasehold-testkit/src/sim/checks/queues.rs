use std::collections::BTreeMap;

use leasehold::Owner;

use super::majorities::Majorities;
use super::waits::Asking;
use crate::sim::history::{Event, What};

/// Who waits where, as far as a history has been read.
#[derive(Debug, Default)]
pub(super) struct Queues {
    now: BTreeMap<(usize, usize), Vec<Owner>>,
    majorities: Majorities,
    calm: bool,
}

impl Queues {
    pub(super) fn see(&mut self, event: &Event) {
        self.majorities.see(event);
        match &event.what {
            What::Queue {
                server,
                key,
                waiters,
            } => {
                self.now.insert((*server, *key), waiters.clone());
            }
            What::Calm => self.calm = true,
            What::Quiet => self.calm = false,
            _ => {}
        }
    }

    /// Whether nothing is in the way of any lock.
    pub(super) fn is_calm(&self) -> bool {
        self.calm
    }

    /// The places of a waiter, 1 being next, at the servers where it is queued.
    pub(super) fn places(&self, waiter: Owner) -> impl Iterator<Item = usize> {
        let queues = self.now.values();
        queues.filter_map(move |queue| queue.iter().position(|it| *it == waiter).map(|n| n + 1))
    }

    pub(super) fn is_queued(&self, server: usize, key: usize, waiter: Owner) -> bool {
        let queue = self.now.get(&(server, key));
        queue.is_some_and(|queue| queue.contains(&waiter))
    }

    /// Whether a majority of the servers would hand the lock over to it in its turn.
    pub(super) fn on_majority(&self, asking: &Asking) -> bool {
        let places = |waiter| self.places(waiter).count();
        let needed = self.majorities.of(asking.client);
        asking.waiter.is_some_and(|waiter| places(waiter) >= needed)
    }
}
