use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::BoxFuture;
use crate::ambient::Ambient;
use crate::attempt::{Attempt, Busy, Grant, LostReason, Release, Renewal};
use crate::claim::{Claim, Held, Mode};
use crate::clock::BootInstant;
use crate::error::{Error, ErrorKind};
use crate::fence::Fence;
use crate::guarantees::{
    Exclusion, Expiry, Fencing, Guarantees, LeaseTerms, Order, Sharing, Waiting,
};
use crate::holder::Holder;
use crate::key::Key;
use crate::member::{Health, Member, MemberId, Seal};
use crate::store::Store;

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
    slots: Arc<Mutex<BTreeMap<Key, Slot>>>,
}

/// All that is known of one key.
#[derive(Debug, Default)]
struct Slot {
    /// The greatest fence ever granted or sealed. Outlives every lease.
    counter: u64,
    leases: Vec<Lease>,
}

#[derive(Debug)]
struct Lease {
    claim: Claim,
    fence: Fence,
    end: BootInstant,
}

impl MemoryStore {
    /// An empty store on the system's clock.
    pub fn new() -> Self {
        Self::member("memory", Ambient::default())
    }

    /// An empty store called `id`, which takes time and chance from `ambient`.
    pub fn member(id: impl Into<String>, ambient: Ambient) -> Self {
        Self {
            id: MemberId::new(id),
            ambient,
            slots: Arc::default(),
        }
    }

    /// Forgets everything, counters too: what a server without persistence does when it restarts.
    pub fn forget_everything(&self) {
        self.slots().clear();
    }

    /// Forgets one key, its counter too.
    pub fn forget(&self, key: &Key) {
        self.slots().remove(key);
    }

    fn slots(&self) -> MutexGuard<'_, BTreeMap<Key, Slot>> {
        // Every change under the mutex is a single step; a panic elsewhere leaves it whole.
        self.slots.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs `change` on the slot of `key`, from which expired leases are gone.
    fn with_slot<T>(&self, key: &Key, change: impl FnOnce(&mut Slot, BootInstant) -> T) -> T {
        let now = self.ambient.clock.now();
        let mut slots = self.slots();
        let slot = slots.entry(key.clone()).or_default();
        slot.leases.retain(|lease| now < lease.end);
        change(slot, now)
    }

    fn attempt(&self, claim: &Claim) -> Result<Attempt, Error> {
        let clock = self.ambient.clock.wall();
        self.with_slot(&claim.key, |slot, now| {
            if let Some(own) = slot
                .leases
                .iter()
                .find(|lease| lease.claim.owner == claim.owner)
            {
                return Ok(Attempt::Granted(Grant::new(own.fence).at(clock)));
            }
            let blocking = slot
                .leases
                .iter()
                .find(|lease| claim.mode == Mode::Exclusive || lease.claim.mode == Mode::Exclusive);
            if let Some(lease) = blocking {
                let mut busy = Busy::by(Some(lease.claim.owner)).at(clock);
                busy.remaining = Some(lease.end.since(now));
                return Ok(Attempt::Busy(busy));
            }
            let fence = slot.next_fence(claim)?;
            slot.leases.push(Lease {
                claim: claim.clone(),
                fence,
                end: now + claim.ttl,
            });
            Ok(Attempt::Granted(Grant::new(fence).at(clock)))
        })
    }

    fn renewal(&self, held: &Held) -> Renewal {
        self.with_slot(&held.claim.key, |slot, now| {
            if let Some(lease) = slot.lease_of(&held.claim) {
                lease.end = lease.end.max(now + held.claim.ttl);
                Renewal::Renewed
            } else if slot.leases.is_empty() {
                Renewal::Lost(LostReason::Gone)
            } else {
                Renewal::Lost(LostReason::Taken)
            }
        })
    }
}

impl Slot {
    fn lease_of(&mut self, claim: &Claim) -> Option<&mut Lease> {
        self.leases
            .iter_mut()
            .find(|lease| lease.claim.owner == claim.owner)
    }

    fn next_fence(&mut self, claim: &Claim) -> Result<Fence, Error> {
        let next = self
            .counter
            .max(claim.proposal.as_micros())
            .saturating_add(1);
        let fence = Fence::new(next)
            .filter(|fence| *fence <= Fence::MAX)
            .ok_or_else(|| {
                let text = format!("fence {next} is out of bounds: at most {}", Fence::MAX);
                Error::new(ErrorKind::Corrupt, text).with_key(&claim.key)
            })?;
        self.counter = next;
        Ok(fence)
    }
}

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
        Box::pin(async move { leases.iter().map(|held| self.renewal(held)).collect() })
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
            let slots = self.slots();
            let keys = slots
                .iter()
                .filter(|(key, slot)| key.as_str().starts_with(prefix) && held(slot));
            Ok(keys.map(|(key, _)| key.clone()).take(limit).collect())
        })
    }
}

impl Lease {
    fn holder(&self, now: BootInstant) -> Holder {
        let mut holder = Holder::unknown(self.claim.mode);
        holder.owner = Some(self.claim.owner);
        holder.client = Some((*self.claim.client).clone());
        holder.fence = Some(self.fence);
        holder.remaining = Some(self.end.since(now));
        holder
    }
}

impl Member for MemoryStore {
    fn id(&self) -> &MemberId {
        &self.id
    }

    fn seal<'a>(&'a self, claim: &'a Claim, fence: Fence) -> BoxFuture<'a, Result<Seal, Error>> {
        Box::pin(async move {
            Ok(self.with_slot(&claim.key, |slot, _| {
                if slot.lease_of(claim).is_none() {
                    return Seal::NotHeld;
                }
                slot.counter = slot.counter.max(fence.get());
                Seal::Sealed
            }))
        })
    }

    fn health(&self) -> BoxFuture<'_, Result<Health, Error>> {
        Box::pin(async move { Ok(Health::at(self.ambient.clock.wall())) })
    }
}
