mod data;

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::BoxFuture;
use crate::ambient::Ambient;
use crate::attempt::{Attempt, Busy, Grant, Release, Renewal};
use crate::card::{CardEdit, Life};
use crate::claim::{Claim, Held};
use crate::clock::{BootInstant, WallTime};
use crate::error::Error;
use crate::fence::Fence;
use crate::guarantees::{
    Exclusion, Expiry, Fencing, Guarantees, LeaseTerms, Order, Sharing, Waiting,
};
use crate::holder::Holder;
use crate::key::Key;
use crate::member::{Member, MemberId, Presence, Sampled, Seal};
use crate::owner::Owner;
use crate::queue::{Departure, Ear, Turn};
use crate::store::Store;
use data::{Data, Slot};

/// A store within one process: the reference of the contract, for tests, examples and quorums in
/// simulations.
///
/// Clones grant the same locks. Leases expire by the clock of its [`Ambient`].
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
        }
    }

    /// Forgets everything, counters and card too, as a server that is told FLUSHALL.
    pub fn forget_everything(&self) {
        let now = self.ambient.clock.now();
        self.data().forget(now);
    }

    /// Forgets one key, its counter too.
    pub fn forget(&self, key: &Key) {
        self.data().slots.remove(key);
    }

    /// Begins a new run, as a server that is restarted: with all its data, or with none.
    pub fn restart(&self, with_data: bool) {
        let now = self.ambient.clock.now();
        let mut data = self.data();
        data.restart(now, &*self.ambient.entropy);
        if !with_data {
            data.forget(now);
        }
    }

    /// All that it holds now.
    pub fn snapshot(&self) -> MemorySnapshot {
        MemorySnapshot(self.data().clone())
    }

    /// Begins a new run with what it held when `snapshot` was taken, as a server does whose last
    /// writes had not reached the disk.
    pub fn restart_from(&self, snapshot: &MemorySnapshot) {
        self.restart(true);
        self.data().roll_back(&snapshot.0);
    }

    /// Says from now on that it keeps, or does not keep, its data across restarts.
    pub fn claim_durable(&self, durable: bool) {
        self.data().durable = durable;
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

    fn attempt(&self, claim: &Claim) -> Result<Attempt, Error> {
        let (now, mut data) = (self.ambient.clock.now(), self.data());
        let sample = data.sample(self.wall());
        let slot = data.slot(&claim.key, now);
        if let Some(own) = slot.lease_of(claim) {
            return Ok(Attempt::Granted(Grant::new(own.fence).with_sample(sample)));
        }
        if let Some(lease) = slot.blocking(claim) {
            let mut busy = Busy::by(Some(lease.claim.owner)).with_sample(sample);
            busy.remaining = Some(lease.end.since(now));
            return Ok(Attempt::Busy(busy));
        }
        let fence = slot.grant(claim, now)?;
        Ok(Attempt::Granted(Grant::new(fence).with_sample(sample)))
    }

    fn renewals(&self, leases: &[Held]) -> Vec<Renewal> {
        let renewal =
            |held: &Held| self.with_slot(&held.claim.key, |slot, now| slot.renew(&held.claim, now));
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
    fn from(store: MemoryStore) -> Self {
        Arc::new(store)
    }
}

impl Store for MemoryStore {
    fn describe(&self) -> String {
        self.id.to_string()
    }

    fn guarantees(&self) -> Guarantees {
        Guarantees::new(
            Exclusion::Process,
            Fencing::CounterThenClock,
            Expiry::Lease,
            Waiting::Polling,
            Order::Unordered,
            Sharing::ReadersPreferred,
        )
    }

    fn terms(&self) -> LeaseTerms {
        LeaseTerms::single()
    }

    fn acquire<'a>(&'a self, claim: &'a Claim) -> BoxFuture<'a, Result<Attempt, Error>> {
        Box::pin(async move { self.attempt(claim) })
    }

    fn renew<'a>(&'a self, leases: &'a [Held]) -> BoxFuture<'a, Vec<Renewal>> {
        Box::pin(async move { self.renewals(leases) })
    }

    fn release<'a>(&'a self, claim: &'a Claim) -> BoxFuture<'a, Result<Release, Error>> {
        Box::pin(async move {
            Ok(self.with_slot(&claim.key, |slot, _| {
                let before = slot.leases.len();
                slot.leases.retain(|lease| lease.claim.owner != claim.owner);
                if slot.leases.len() < before {
                    Release::Released
                } else {
                    Release::WasLost
                }
            }))
        })
    }

    fn settle(&self) -> BoxFuture<'_, ()> {
        // A release is over when it is answered.
        Box::pin(std::future::ready(()))
    }

    fn wait<'a>(&'a self, _claim: &'a Claim) -> BoxFuture<'a, ()> {
        Box::pin(self.ambient.poll_pause())
    }

    fn holders<'a>(&'a self, key: &'a Key) -> BoxFuture<'a, Result<Vec<Holder>, Error>> {
        Box::pin(async move {
            Ok(self.with_slot(key, |slot, now| {
                slot.leases.iter().map(|lease| lease.holder(now)).collect()
            }))
        })
    }

    fn list<'a>(&'a self, prefix: &'a str, limit: usize) -> BoxFuture<'a, Result<Vec<Key>, Error>> {
        Box::pin(async move {
            let now = self.ambient.clock.now();
            let held = |slot: &Slot| slot.leases.iter().any(|lease| now < lease.end);
            let data = self.data();
            let keys = data
                .slots
                .iter()
                .filter(|(key, slot)| key.as_str().starts_with(prefix) && held(slot));
            Ok(keys.map(|(key, _)| key.clone()).take(limit).collect())
        })
    }
}

impl Member for MemoryStore {
    fn id(&self) -> &MemberId {
        &self.id
    }

    fn acquire_in_turn<'a>(
        &'a self,
        claim: &'a Claim,
        _turn: &'a Turn,
    ) -> BoxFuture<'a, Result<Attempt, Error>> {
        self.acquire(claim)
    }

    fn depart<'a>(
        &'a self,
        claim: &'a Claim,
        _departure: &'a Departure,
    ) -> BoxFuture<'a, Result<Release, Error>> {
        self.release(claim)
    }

    fn leave_queue<'a>(
        &'a self,
        _key: &'a Key,
        _waiter: Owner,
    ) -> BoxFuture<'a, Result<(), Error>> {
        Box::pin(std::future::ready(Ok(())))
    }

    fn listen(&self, _ear: Ear) {}

    fn seal<'a>(
        &'a self,
        claim: &'a Claim,
        fence: Fence,
    ) -> BoxFuture<'a, Result<Sampled<Seal>, Error>> {
        Box::pin(async move {
            let answer = self.with_slot(&claim.key, |slot, _| {
                if slot.lease_of(claim).is_none() {
                    return Seal::NotHeld;
                }
                slot.counter = slot.counter.max(fence.get());
                Seal::Sealed
            });
            Ok(self.sampled(answer))
        })
    }

    fn renew_sampled<'a>(
        &'a self,
        leases: &'a [Held],
    ) -> BoxFuture<'a, Result<Sampled<Vec<Renewal>>, Error>> {
        Box::pin(async move { Ok(self.sampled(self.renewals(leases))) })
    }

    fn heal<'a>(&'a self, leases: &'a [Held]) -> BoxFuture<'a, Result<(), Error>> {
        Box::pin(async move {
            for held in leases {
                self.with_slot(&held.claim.key, |slot, now| slot.heal(held, now));
            }
            Ok(())
        })
    }

    fn presence(&self) -> BoxFuture<'_, Result<Presence, Error>> {
        Box::pin(async move {
            let (now, clock, data) = (self.ambient.clock.now(), self.wall(), self.data());
            let uptime = data
                .restarted
                .map_or(Duration::MAX, |start| now.since(start));
            let mut presence = Presence::new(data.run.clone(), clock, uptime);
            presence.durable = data.durable;
            presence.card = data.card.clone();
            Ok(presence)
        })
    }

    fn write_card<'a>(&'a self, edit: &'a CardEdit) -> BoxFuture<'a, Result<bool, Error>> {
        Box::pin(async move { Ok(self.data().write_card(edit, self.wall())) })
    }

    fn witness<'a>(&'a self, seen: &'a [(MemberId, Life)]) -> BoxFuture<'a, Result<(), Error>> {
        Box::pin(async move {
            self.data().witness(seen, self.wall());
            Ok(())
        })
    }
}
