//! `queue`, `slot` and `record_table` decide, and are pure; the store locks its data, lets them decide, and
//! calls the ears.

mod as_member;
mod as_records;
mod as_store;
mod breaking;
mod data;
mod inspection;
mod permits;
mod queue;
mod record_table;
mod slot;
#[cfg(test)]
mod tests;

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::ambient::Ambient;
use crate::attempt::{Attempt, Renewal};
use crate::claim::{Claim, Held};
use crate::clock::{BootInstant, WallTime};
use crate::ears::Ears;
use crate::error::Error;
use crate::key::Key;
use crate::member::{MemberId, Sampled};
use crate::queue::Heard;
use crate::quorum::Quorum;
use crate::store::Store;
use data::Data;
use queue::Step;
use slot::Slot;

/// A store within one process: the reference of the contract, for tests, examples and quorums in
/// simulations.
///
/// Clones grant the same locks, and whoever [listens](crate::Member::listen) at one hears of all. Leases
/// expire by the clock of its [`Ambient`]. A client of it waits in its queue.
///
/// # Examples
///
/// ```
/// use leasehold::{Client, MemoryStore};
///
/// let locks = Client::new(MemoryStore::new());
/// ```
#[derive(Clone)]
pub struct MemoryStore {
    id: MemberId,
    ambient: Ambient,
    data: Arc<Mutex<Data>>,
    ears: Ears,
}

impl MemoryStore {
    /// An empty store on the system's clock.
    pub fn new() -> Self {
        Self::member("memory", Ambient::default())
    }

    /// An empty store called `id`, which takes time and chance from `ambient`.
    pub fn member(id: impl Into<String>, ambient: Ambient) -> Self {
        let data = Data::new(&*ambient.entropy);
        Self {
            id: MemberId::new(id),
            ambient,
            data: Arc::new(Mutex::new(data)),
            ears: Ears::default(),
        }
    }

    /// Forgets everything, counters and card too, as a server that is told FLUSHALL.
    pub fn forget_everything(&self) {
        let now = self.ambient.clock.now();
        self.data().forget(now);
    }

    /// Forgets one key, its counter and its record too.
    pub fn forget(&self, key: &Key) {
        let mut data = self.data();
        data.slots.remove(key);
        data.records.forget(key);
    }

    /// Begins a new run, as a server that is restarted: with all its data, or with none. Who waits
    /// is part of the data; that they are told is not, and those who listen learn of it.
    pub fn restart(&self, with_data: bool) {
        let now = self.ambient.clock.now();
        self.begin_run(|data| {
            if !with_data {
                data.forget(now);
            }
        });
    }

    /// All that it holds now.
    pub fn snapshot(&self) -> MemorySnapshot {
        MemorySnapshot(self.data().clone())
    }

    /// Begins a new run with what it held when `snapshot` was taken, as a server does whose last
    /// writes had not reached the disk.
    pub fn restart_from(&self, snapshot: &MemorySnapshot) {
        self.begin_run(|data| data.roll_back(&snapshot.0));
    }

    /// Says from now on that it keeps, or does not keep, its data across restarts.
    pub fn claim_durable(&self, durable: bool) {
        self.data().durable = durable;
    }

    fn begin_run(&self, change: impl FnOnce(&mut Data)) {
        let now = self.ambient.clock.now();
        {
            let mut data = self.data();
            data.restart(now, &*self.ambient.entropy);
            change(&mut data);
        }
        self.ears.tell(&Heard::Deaf);
    }

    fn data(&self) -> MutexGuard<'_, Data> {
        // Every change under the mutex is a single step; a panic elsewhere leaves it whole.
        self.data.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs `change` on the slot of `key`.
    fn with_slot<T>(&self, key: &Key, change: impl FnOnce(&mut Slot, BootInstant) -> T) -> T {
        let now = self.ambient.clock.now();
        change(self.data().slot(key, now), now)
    }

    fn wall(&self) -> WallTime {
        self.ambient.clock.wall()
    }

    fn sampled<T>(&self, answer: T) -> Sampled<T> {
        let sample = self.data().sample(self.wall());
        Sampled { answer, sample }
    }

    /// Runs a step of the queue on the slot of `key`. The ears are called under the mutex of the data,
    /// since what becomes of the lock depends on who hears: an ear must not ask this store before it
    /// has answered.
    fn with_queue<T>(&self, key: &Key, change: impl FnOnce(&mut Slot, &mut Step<'_>) -> T) -> T {
        let tell = &mut |hint| self.ears.tell(&Heard::Hint(hint));
        self.with_slot(key, |slot, now| change(slot, &mut Step { key, now, tell }))
    }

    /// Runs `attempt` on the slot of the claim's key; with the answer, the data that gave it.
    fn attempt(
        &self,
        claim: &Claim,
        attempt: impl FnOnce(&mut Slot, &mut Step<'_>) -> Result<Attempt, Error>,
    ) -> Result<Attempt, Error> {
        let (now, mut data) = (self.ambient.clock.now(), self.data());
        let sample = data.sample(self.wall());
        let (key, tell) = (&claim.key, &mut |hint| self.ears.tell(&Heard::Hint(hint)));
        let answer = attempt(data.slot(key, now), &mut Step { key, now, tell })?;
        Ok(match answer {
            Attempt::Granted(grant) => Attempt::Granted(grant.with_sample(sample)),
            Attempt::Busy(busy) => Attempt::Busy(busy.with_sample(sample)),
        })
    }

    fn renewals(&self, leases: &[Held]) -> Vec<Renewal> {
        let renewal =
            |held: &Held| self.with_queue(&held.claim.key, |slot, step| slot.renew(held, step));
        leases.iter().map(renewal).collect()
    }
}

/// What a [`MemoryStore`] held at some moment.
#[derive(Clone, Debug)]
pub struct MemorySnapshot(Data);

impl Default for MemoryStore {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for MemoryStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MemoryStore")
            .field("id", &self.id)
            .finish_non_exhaustive()
    }
}

impl From<MemoryStore> for Arc<dyn Store> {
    /// A [`Quorum`] of the one store, on its clock.
    fn from(store: MemoryStore) -> Self {
        let ambient = store.ambient.clone();
        Quorum::of_one(Arc::new(store)).ambient(ambient).into()
    }
}
