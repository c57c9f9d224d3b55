use std::collections::BTreeSet;
use std::time::Duration;

use foldhash::HashMap;
use leasehold_types::{BootInstant, Key};

use crate::operation::OperationId;

/// The waiters of this client, and the locks that were busy recently.
#[derive(Debug, Default)]
pub(crate) struct Waiters {
    /// The waiters of each lock, by their tickets.
    waiting: HashMap<Key, BTreeSet<(u64, OperationId)>>,
    busy: HashMap<Key, BootInstant>,
}

/// When the next heartbeats are due.
#[derive(Debug, Default)]
pub(crate) struct Heartbeat {
    next: Option<BootInstant>,
}

/// How often a client with waiters reports that it is alive.
pub(crate) const HEARTBEAT_EVERY: Duration = Duration::from_secs(1);

/// How many locks are remembered as busy. Beyond that the oldest half is forgotten.
const BUSY_MAX: usize = 4096;

impl Waiters {
    pub(crate) fn add(&mut self, key: &Key, ticket: u64, id: OperationId) {
        let waiting = self.waiting.entry(key.clone()).or_default();
        waiting.insert((ticket, id));
    }

    /// Removes a waiter, if it ever drew a ticket.
    pub(crate) fn remove(&mut self, key: &Key, ticket: Option<u64>, id: OperationId) {
        let Some(ticket) = ticket else {
            return;
        };
        if let Some(waiting) = self.waiting.get_mut(key) {
            waiting.remove(&(ticket, id));
            if waiting.is_empty() {
                self.waiting.remove(key);
            }
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// The waiters of a lock, the oldest first.
    pub(crate) fn of(&self, key: &Key) -> impl Iterator<Item = OperationId> {
        let waiting = self.waiting.get(key).into_iter().flatten();
        waiting.map(|(_, id)| *id)
    }

    /// The waiters of each lock, the oldest first.
    pub(crate) fn by_lock(&self) -> impl Iterator<Item = impl Iterator<Item = OperationId>> {
        let locks = self.waiting.values();
        locks.map(|waiting| waiting.iter().map(|(_, id)| *id))
    }

    pub(crate) fn note_busy(&mut self, key: &Key, now: BootInstant) {
        if self.busy.len() >= BUSY_MAX {
            let mut instants: Vec<BootInstant> = self.busy.values().copied().collect();
            instants.sort_unstable();
            let middle = instants[instants.len() / 2];
            self.busy.retain(|_, at| *at > middle);
        }
        self.busy.insert(key.clone(), now);
    }

    /// Whether the lock was busy within the last `span`.
    pub(crate) fn was_busy(&self, key: &Key, now: BootInstant, span: Duration) -> bool {
        let at = self.busy.get(key);
        at.is_some_and(|at| now.since(*at) < span)
    }
}

impl Heartbeat {
    pub(crate) fn next(&self) -> Option<BootInstant> {
        self.next
    }

    pub(crate) fn is_due(&self, now: BootInstant) -> bool {
        self.next.is_some_and(|next| next <= now)
    }

    /// A wait begins.
    pub(crate) fn keep_up(&mut self, now: BootInstant) {
        self.next.get_or_insert(now + HEARTBEAT_EVERY);
    }

    /// Whether there are waiters at all.
    pub(crate) fn is_due_to_any(&self) -> bool {
        self.next.is_some()
    }

    /// Nothing is due until the next wait begins.
    pub(crate) fn stop(&mut self) {
        self.next = None;
    }
}
