use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use crate::clock::BootInstant;
use crate::inheritance::Inheritance;
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
    /// How many of each client got it from one another since: members have them in their queues until
    /// they leave these.
    heirs: HashMap<ClientId, u64>,
}

/// How many of a client came before those that wait, since somebody does.
#[derive(Clone, Copy, Debug)]
pub(super) struct Passed {
    /// Granted the lock by the members.
    pub(super) grants: u64,
    /// Left the lock by one another.
    pub(super) heirs: u64,
}

impl Line {
    fn passed(&self, client: ClientId) -> Passed {
        Passed {
            grants: self.grants(client),
            heirs: self.heirs(client),
        }
    }

    fn heirs(&self, client: ClientId) -> u64 {
        self.heirs.get(&client).copied().unwrap_or_default()
    }

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

    /// The wait was left the lock by another of its client.
    pub(super) fn inherited(&mut self, vigil: &Vigil) {
        if let Some(line) = self.lines.get_mut(&vigil.key) {
            *line.heirs.entry(vigil.ticket.waiter.client()).or_default() += 1;
        }
    }

    pub(super) fn heirs(&self, key: &Key, client: ClientId) -> u64 {
        self.lines.get(key).map_or(0, |line| line.heirs(client))
    }

    /// Whether somebody of `client` waits for `key`, and holds nothing.
    pub(super) fn others_wait(&self, key: &Key, client: ClientId) -> bool {
        self.waiting(key, client).any(|vigil| vigil.waits())
    }

    /// Who is to have the lease next: the first of its client who waits, if that one can have it.
    pub(super) fn heir(&self, lease: &Inheritance, now: BootInstant) -> Option<&Arc<Vigil>> {
        let (key, client) = (&lease.claim.key, lease.claim.owner.client());
        let first = self.waiting(key, client).find(|vigil| vigil.waits())?;
        let passed = self.lines.get(key)?.passed(client);
        first.can_inherit(passed, lease, now).then_some(first)
    }

    /// Those of `client` who wait for `key`, or have it, in order.
    fn waiting(&self, key: &Key, client: ClientId) -> impl Iterator<Item = &Arc<Vigil>> {
        let tickets = self.lines.get(key).into_iter().flat_map(|it| &it.tickets);
        tickets
            .filter(move |ticket| ticket.waiter.client() == client)
            .filter_map(|ticket| self.of_waiter.get(&ticket.waiter))
    }

    /// The wait was refused, and told its place.
    pub(super) fn refused(&self, vigil: &Vigil) {
        if let Some(line) = self.lines.get(&vigil.key) {
            vigil.note_grants(line.grants(vigil.ticket.waiter.client()));
        }
    }

    /// Has the first of those of `client` who wait for `key` ask at once, if nobody is before it.
    pub(super) fn call_next(&self, key: &Key, client: ClientId, now: BootInstant) {
        if let Some(vigil) = self.waiting(key, client).find(|vigil| vigil.waits()) {
            vigil.call(self.lines[key].passed(client), now);
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
