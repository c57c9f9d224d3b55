//! The leases of one lock, as the specification says.

use std::collections::BTreeMap;
use std::sync::Arc;

use leasehold::Mode;
use leasehold::store::{Claim, Owner, PermitSlot};

#[derive(Clone, Debug)]
pub(super) struct Held {
    pub(super) mode: Mode,
    pub(super) slot: Option<PermitSlot>,
    /// The last millisecond of the lease.
    pub(super) ends: u64,
}

#[derive(Debug, Default)]
pub(super) struct Model {
    leases: BTreeMap<Owner, Held>,
    /// The greatest fence that was drawn.
    fence: u64,
    /// The last millisecond of the last lease that ended by itself.
    ended: u64,
    /// The owner of a broken lease that keeps the lock closed, and its last millisecond.
    broken: Option<(Owner, u64)>,
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
        self.leases.keys().copied().collect()
    }

    pub(super) fn lease(&mut self, claim: &Claim) -> Option<&mut Held> {
        let held = self.leases.get_mut(&claim.owner);
        held.filter(|held| held.mode == claim.mode)
    }

    /// Returns whether the lock may be granted to a claim that does not hold it.
    pub(super) fn admits(&self, mode: Mode) -> bool {
        let room = match mode {
            Mode::Exclusive => 0,
            Mode::Shared => usize::MAX,
            Mode::Permit(permits) => permits.get() as usize - 1,
        };
        let is_closed =
            self.broken.is_some_and(|(_, ends)| self.now <= ends) || self.leases.len() > room;
        !is_closed && self.leases.values().all(|held| held.mode == mode)
    }

    /// Returns whether the lock must be granted to a claim if no claim waits. The keys of leases that are
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
        claim: &Arc<Claim>,
        fence: u64,
        slot: Option<PermitSlot>,
    ) -> Result<(), &'static str> {
        let (ends, former) = (self.now + claim.ttl.as_millis() as u64, self.lease(claim));
        let ends = match (&former, claim.mode) {
            (Some(held), Mode::Shared | Mode::Permit(_)) => ends.max(held.ends),
            _ => ends,
        };
        let keeps_slot = former.as_ref().is_none_or(|held| held.slot == slot);
        if former.is_none() && !self.admits(claim.mode) {
            return Err("there are too many holders");
        }
        if !keeps_slot || slot.is_some_and(|slot| self.is_taken(slot, claim.owner)) {
            return Err("another lease has the permit");
        }
        if fence <= self.fence {
            return Err("the fence is not greater than the last one");
        }
        self.fence = fence;
        let mode = claim.mode;
        self.leases.insert(claim.owner, Held { mode, slot, ends });
        Ok(())
    }

    /// Ends the lease of a claim. Returns whether there was one.
    pub(super) fn release(&mut self, claim: &Claim) -> bool {
        let held = self.lease(claim).is_some();
        if held {
            self.leases.remove(&claim.owner);
        }
        held
    }

    /// Ends the lease of an owner. The lock stays closed for the rest of it, unless it is opened at once.
    pub(super) fn force_release(&mut self, owner: Owner, at_once: bool) -> bool {
        let held = self.leases.remove(&owner);
        if let Some(held) = &held {
            self.broken = Some((owner, held.ends));
        }
        self.broken = self.broken.filter(|(of, _)| *of != owner || !at_once);
        held.is_some()
    }
}
