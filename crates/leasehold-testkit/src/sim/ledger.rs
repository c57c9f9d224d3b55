use std::sync::Mutex;

use futures_util::FutureExt;
use leasehold::clock::Clock;
use leasehold::{Hint, Holder, Inspection as _, Key, MemoryStore, Owner, Word};

use super::execution::{Execution, Stand};
use super::history::{History, Told, What};
use super::machine::Machine;
use super::parcel::Parcel;
use super::request::Request;
use crate::virtual_time::lock;

/// What a server writes down of its leases and queues.
#[derive(Debug)]
pub(crate) struct Ledger {
    server: usize,
    store: MemoryStore,
    machine: Machine,
    history: History,
    keys: Vec<Key>,
    /// Who waited for each key when it was last written down.
    queues: Mutex<Vec<Vec<Owner>>>,
}

impl Ledger {
    pub(crate) fn new(
        server: usize,
        store: MemoryStore,
        machine: Machine,
        history: History,
        keys: Vec<Key>,
    ) -> Self {
        Self {
            queues: Mutex::new(vec![Vec::new(); keys.len()]),
            server,
            store,
            machine,
            history,
            keys,
        }
    }

    /// Notes that a client is about to send an attempt.
    pub(crate) fn expect(&self, client: usize, request: &Request) {
        let Some(claim) = request.attempt() else {
            return;
        };
        if let Some(key) = self.number_of(&claim.key) {
            self.history.add(What::Sent {
                client,
                key,
                ttl: claim.ttl,
                owner: claim.owner,
                waiter: request.ticket().map(|ticket| ticket.waiter),
            });
        }
    }

    /// What is to be told of a request, before it is carried out.
    pub(crate) fn before(&self, parcel: &Parcel) -> Vec<Execution> {
        let Some((kind, claims)) = parcel.request.claims() else {
            return Vec::new();
        };
        let ticket = parcel.request.ticket();
        let execution = |(key, owner): (&Key, Owner)| {
            Some(Execution {
                server: self.server,
                client: parcel.from.client,
                kind,
                key: self.number_of(key)?,
                owner,
                waiter: ticket.map(|ticket| ticket.waiter),
                stray: parcel.is_stray(),
                before: self.stands_of(key),
                after: Vec::new(),
            })
        };
        claims.into_iter().filter_map(execution).collect()
    }

    /// Tells what came of it.
    pub(crate) fn after(&self, request: &Request, executions: Vec<Execution>) {
        if let Request::LeaveQueue(key, waiter) = request
            && let Some(key) = self.number_of(key)
        {
            let (server, waiter) = (self.server, *waiter);
            self.history.add(What::LeftQueue {
                server,
                key,
                waiter,
            });
        }
        let left_free = request.leaves_free().and_then(|key| self.number_of(key));
        if let Some(key) = left_free {
            let server = self.server;
            self.history.add(What::LeftFree { server, key });
        }
        for mut execution in executions {
            execution.after = self.stands_of(&self.keys[execution.key]);
            self.history.add(What::Executed(execution));
        }
        self.tell_queues();
    }

    /// Tells all anew, after something else than a request changed it.
    pub(crate) fn tell_all(&self) {
        for (key, stands) in self.stands().into_iter().enumerate() {
            let server = self.server;
            self.history.add(What::Holds {
                server,
                key,
                stands,
            });
        }
        self.tell_queues();
    }

    pub(crate) fn told(&self, hint: &Hint, heard: bool) {
        if let Some(key) = self.number_of(&hint.key) {
            self.history.add(What::Told {
                server: self.server,
                key,
                waiter: hint.waiter,
                word: match hint.word {
                    Word::YourTurn => Told::YourTurn,
                    Word::Soon { remaining } => Told::Soon(remaining),
                },
                heard,
            });
        }
    }

    /// What stands under each key.
    pub(crate) fn stands(&self) -> Vec<Vec<Stand>> {
        self.keys.iter().map(|key| self.stands_of(key)).collect()
    }

    /// Who waits for each key; the one that it is reserved for is first.
    pub(crate) fn queues(&self) -> Vec<Vec<Owner>> {
        self.keys.iter().map(|key| self.queue(key)).collect()
    }

    fn tell_queues(&self) {
        let now = self.queues();
        let before = std::mem::replace(&mut *lock(&self.queues), now.clone());
        let changed = |(key, waiters): &(usize, Vec<Owner>)| *waiters != before[*key];
        for (key, waiters) in now.into_iter().enumerate().filter(changed) {
            let server = self.server;
            self.history.add(What::Queue {
                server,
                key,
                waiters,
            });
        }
    }

    fn stands_of(&self, key: &Key) -> Vec<Stand> {
        let holders = self.store.holders(key).now_or_never();
        let holders = holders.and_then(Result::ok).unwrap_or_default();
        let stand = |holder: &Holder| {
            let end = self.machine.now() + holder.remaining?;
            Some(Stand {
                owner: holder.owner?,
                mode: holder.mode,
                until: self.machine.on_timeline(end),
            })
        };
        holders.iter().filter_map(stand).collect()
    }

    fn queue(&self, key: &Key) -> Vec<Owner> {
        let waiters = self.store.waiters(key).now_or_never();
        let waiters = waiters.and_then(Result::ok).unwrap_or_default();
        waiters.iter().map(|waiter| waiter.ticket.waiter).collect()
    }

    fn number_of(&self, key: &Key) -> Option<usize> {
        self.keys.iter().position(|known| known == key)
    }
}
