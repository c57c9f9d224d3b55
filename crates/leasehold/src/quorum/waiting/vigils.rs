use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use crate::key::Key;
use crate::owner::{ClientId, Owner};
use crate::queue::Ticket;
use crate::quorum::waiting::vigil::Vigil;

/// The waits that go on, by who waits and by what is waited for.
#[derive(Debug, Default)]
pub(super) struct Vigils {
    /// In order, so that simulated worlds repeat.
    of_waiter: BTreeMap<Owner, Arc<Vigil>>,
    for_key: HashMap<Key, BTreeSet<Ticket>>,
}

impl Vigils {
    pub(super) fn insert(&mut self, vigil: &Arc<Vigil>) {
        let line = self.for_key.entry(vigil.key.clone()).or_default();
        line.insert(vigil.ticket);
        self.of_waiter
            .insert(vigil.ticket.waiter, Arc::clone(vigil));
    }

    /// `false` if it was not there.
    pub(super) fn remove(&mut self, vigil: &Vigil) -> bool {
        if let Some(line) = self.for_key.get_mut(&vigil.key) {
            line.remove(&vigil.ticket);
            if line.is_empty() {
                self.for_key.remove(&vigil.key);
            }
        }
        self.of_waiter.remove(&vigil.ticket.waiter).is_some()
    }

    pub(super) fn get(&self, waiter: Owner) -> Option<Arc<Vigil>> {
        self.of_waiter.get(&waiter).cloned()
    }

    pub(super) fn all(&self) -> Vec<Arc<Vigil>> {
        self.of_waiter.values().cloned().collect()
    }

    /// Of those of `client` who wait for `key` and have no grant the one with the smallest ticket.
    pub(super) fn first(&self, key: &Key, client: ClientId) -> Option<Arc<Vigil>> {
        let line = self.for_key.get(key)?.iter();
        let ours = line.filter(|ticket| ticket.waiter.client() == client);
        let mut vigils = ours.filter_map(|ticket| self.of_waiter.get(&ticket.waiter));
        vigils.find(|vigil| vigil.is_open()).cloned()
    }
}
