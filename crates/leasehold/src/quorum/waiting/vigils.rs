use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use crate::clock::BootInstant;
use crate::key::Key;
use crate::owner::{ClientId, Owner};
use crate::queue::Ticket;
use crate::quorum::waiting::vigil::Vigil;

/// The waits that go on, by who waits and by what is waited for.
#[derive(Debug, Default)]
pub(super) struct Vigils {
    /// In order, so that simulated worlds repeat.
    of_waiter: BTreeMap<Owner, Arc<Vigil>>,
    lines: HashMap<Key, Line>,
}

/// Who waits for one lock.
#[derive(Debug, Default)]
struct Line {
    tickets: BTreeSet<Ticket>,
    /// How many of each client were granted it since somebody waits.
    grants: HashMap<ClientId, u64>,
}

impl Line {
    fn grants(&self, client: ClientId) -> u64 {
        self.grants.get(&client).copied().unwrap_or_default()
    }
}

impl Vigils {
    pub(super) fn insert(&mut self, vigil: &Arc<Vigil>) {
        let line = self.lines.entry(vigil.key.clone()).or_default();
        line.tickets.insert(vigil.ticket);
        vigil.note_grants(line.grants(vigil.ticket.waiter.client()));
        self.of_waiter
            .insert(vigil.ticket.waiter, Arc::clone(vigil));
    }

    /// `false` if it was not there.
    pub(super) fn remove(&mut self, vigil: &Vigil) -> bool {
        if let Some(line) = self.lines.get_mut(&vigil.key) {
            line.tickets.remove(&vigil.ticket);
            if line.tickets.is_empty() {
                self.lines.remove(&vigil.key);
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

    /// The wait was granted the lock.
    pub(super) fn granted(&mut self, vigil: &Vigil) {
        if let Some(line) = self.lines.get_mut(&vigil.key) {
            *line.grants.entry(vigil.ticket.waiter.client()).or_default() += 1;
        }
    }

    /// The wait was refused, and told its place.
    pub(super) fn refused(&self, vigil: &Vigil) {
        if let Some(line) = self.lines.get(&vigil.key) {
            vigil.note_grants(line.grants(vigil.ticket.waiter.client()));
        }
    }

    /// Has the first of those of `client` who wait for `key` ask at once, if nobody is before it.
    pub(super) fn call_next(&self, key: &Key, client: ClientId, now: BootInstant) {
        let Some(line) = self.lines.get(key) else {
            return;
        };
        let ours = |ticket: &&Ticket| ticket.waiter.client() == client;
        for ticket in line.tickets.iter().filter(ours) {
            let vigil = self.of_waiter.get(&ticket.waiter);
            if vigil.is_some_and(|vigil| vigil.call(line.grants(client), now)) {
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ambient::SystemEntropy;
    use crate::clock::WallTime;

    #[test]
    fn nothing_is_left_of_a_lock_that_nobody_waits_for() {
        let (mut vigils, key) = (Vigils::default(), Key::new("lock").unwrap());
        let client = ClientId::random(&SystemEntropy);
        let waits = [1, 2].map(|micros| {
            let since = WallTime::from_micros(micros);
            let waiter = Owner::random(client, &SystemEntropy);
            Arc::new(Vigil::new(key.clone(), Ticket { since, waiter }, 3))
        });
        for vigil in &waits {
            vigils.insert(vigil);
            vigils.granted(vigil);
        }
        for vigil in &waits {
            assert_eq!(vigils.lines[&key].grants(client), 2);
            assert!(vigils.remove(vigil));
            assert!(!vigils.remove(vigil), "once is enough");
        }
        assert!(vigils.lines.is_empty() && vigils.of_waiter.is_empty());
    }
}
