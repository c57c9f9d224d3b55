//! The leases of one lock, as the specification says.

use std::collections::BTreeMap;
use std::sync::Arc;

use leasehold::Mode;
use leasehold::look::Owner;
use leasehold::member::PermitSlot;
use leasehold::store::LockRequest;

#[derive(Clone, Debug)]
pub(super) struct Held {
    pub(super) mode: Mode,
    pub(super) slot: Option<PermitSlot>,
    /// The last millisecond of the lease.
    pub(super) ends: u64,
    /// Whether it only keeps others out.
    broken: bool,
}

#[derive(Debug, Default)]
pub(super) struct Model {
    leases: BTreeMap<Owner, Held>,
    /// The greatest fence that was drawn.
    fence: u64,
    /// The last millisecond of the last lease that ended by itself.
    ended: u64,
    now: u64,
}

impl Model {
    /// Advances the time, and ends leases.
    pub(super) fn at(&mut self, now: u64) -> &mut Self {
        self.now = now;
        let ended = self.leases.values().map(|held| held.ends);
        let ended = ended.filter(|ends| *ends < now);
        self.ended = ended.fold(self.ended, u64::max);
        self.leases.retain(|_, held| held.ends >= now);
        self
    }

    pub(super) fn holders(&self) -> Vec<Owner> {
        let held = self.leases.iter().filter(|(_, held)| !held.broken);
        held.map(|(owner, _)| *owner).collect()
    }

    pub(super) fn lease(&mut self, lock_request: &LockRequest) -> Option<&mut Held> {
        let held = self.leases.get_mut(&lock_request.owner);
        held.filter(|held| held.mode == lock_request.mode && !held.broken)
    }

    /// Returns whether the lock may be granted to a request that does not hold it.
    pub(super) fn admits(&self, mode: Mode) -> bool {
        let room = match mode {
            Mode::Exclusive => 0,
            Mode::Shared => usize::MAX,
            Mode::Permit(permits) => permits.get() as usize - 1,
        };
        self.leases.len() <= room && self.leases.values().all(|held| held.mode == mode)
    }

    /// Returns whether the lock must be granted to a request if no request waits. The keys of leases that are
    /// shared end a millisecond late.
    pub(super) fn must_admit(&self, mode: Mode) -> bool {
        self.admits(mode) && self.now > self.ended + 1
    }

    /// Returns whether a valid lease of another owner has the permit.
    pub(super) fn is_taken(&self, slot: PermitSlot, by_other_than: Owner) -> bool {
        let mut others = self.leases.iter().filter(|(of, _)| **of != by_other_than);
        others.any(|(_, held)| held.slot == Some(slot))
    }

    /// Notes a grant. Returns which rule it violates.
    pub(super) fn grant(
        &mut self,
        lock_request: &Arc<LockRequest>,
        fence: u64,
        slot: Option<PermitSlot>,
    ) -> Result<(), &'static str> {
        let (ends, former) = (
            self.now + lock_request.ttl.as_millis() as u64,
            self.lease(lock_request),
        );
        let ends = match (&former, lock_request.mode) {
            (Some(held), Mode::Shared | Mode::Permit(_)) => ends.max(held.ends),
            _ => ends,
        };
        let keeps_slot = former.as_ref().is_none_or(|held| held.slot == slot);
        if former.is_none() && !self.admits(lock_request.mode) {
            return Err("there are too many holders");
        }
        if !keeps_slot || slot.is_some_and(|slot| self.is_taken(slot, lock_request.owner)) {
            return Err("another lease has the permit");
        }
        if fence <= self.fence {
            return Err("the fence is not greater than the last one");
        }
        self.fence = fence;
        let mode = lock_request.mode;
        let broken = false;
        let held = Held {
            mode,
            slot,
            ends,
            broken,
        };
        self.leases.insert(lock_request.owner, held);
        Ok(())
    }

    /// Ends the lease of a request. Returns whether there was one that was not broken.
    pub(super) fn release(&mut self, lock_request: &LockRequest) -> bool {
        let held = self.lease(lock_request).is_some();
        let ends = |held: &Held| {
            held.mode == lock_request.mode || held.broken && held.mode == Mode::Exclusive
        };
        if self.leases.get(&lock_request.owner).is_some_and(ends) {
            self.leases.remove(&lock_request.owner);
        }
        held
    }

    /// Breaks the lease of an owner. It keeps others out for the rest of it, unless it is over at once. Returns whether it
    /// existed.
    pub(super) fn force_release(&mut self, owner: Owner, at_once: bool) -> bool {
        let Some(held) = self.leases.get_mut(&owner) else {
            return false;
        };
        held.broken = true;
        if at_once {
            self.leases.remove(&owner);
        }
        true
    }
}
