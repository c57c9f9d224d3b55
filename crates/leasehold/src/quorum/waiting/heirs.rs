//! How a lease goes over to the next who waits at the same client, without a word to the members.

use std::sync::Arc;

use crate::attempt::Grant;
use crate::claim::{Claim, Mode};
use crate::inheritance::Inheritance;
use crate::key::Key;
use crate::owner::{ClientId, Owner};
use crate::queue::Departure;
use crate::quorum::waiting::Waits;
use crate::quorum::waiting::reserve::Reserve;
use crate::quorum::waiting::vigil::Vigil;

impl Waits {
    /// A reserve for the heirs of what `claim` was granted, to be asked for; `None` where nobody of its
    /// client waits.
    pub(crate) fn begin_reserve(&self, claim: &Claim) -> Option<Arc<Reserve>> {
        let mut state = self.state();
        let wanted = claim.mode == Mode::Exclusive
            && state.vigils.others_wait(&claim.key, claim.owner.client());
        wanted.then(|| Arc::clone(state.reserves.entry(claim.owner).or_default()))
    }

    pub(crate) fn reserve(&self, owner: Owner) -> Option<Arc<Reserve>> {
        self.state().reserves.get(&owner).cloned()
    }

    /// The lease is given back, or up.
    pub(crate) fn end_reserve(&self, owner: Owner) {
        self.state().reserves.remove(&owner);
    }

    /// How many of the client got the lock from one another, of those that wait for it.
    pub(crate) fn heirs(&self, key: &Key, client: ClientId) -> u64 {
        self.state().vigils.heirs(key, client)
    }

    /// Whether somebody of its client is to have the lease next, and can take it.
    pub(crate) fn has_heir(&self, lease: &Inheritance) -> bool {
        let now = self.ambient.clock.now();
        self.departure(&lease.claim) == Departure::HandOver
            && self.state().vigils.heir(lease, now).is_some()
    }

    /// Leaves the lease to its heir; `false` if it has none, or no fence for one.
    pub(crate) fn bequeath(&self, lease: &Inheritance) -> bool {
        if !self.has_heir(lease) {
            return false;
        }
        let now = self.ambient.clock.now();
        let state = self.state();
        let reserve = state.reserves.get(&lease.claim.owner);
        let heir = state.vigils.heir(lease, now);
        let fence = reserve.and_then(|reserve| reserve.draw());
        match (heir, fence) {
            (Some(heir), Some(fence)) => heir.leave_to_it(lease, fence, now),
            _ => false,
        }
    }

    /// What was left to the waiter whose attempt `heir` is. The members still have it in their queues.
    pub(crate) fn inherit(&self, vigil: &Vigil, heir: &Claim) -> Option<Grant> {
        let (lease, fence) = vigil.inherit(heir, &self.ambient)?;
        self.state().vigils.inherited(vigil);
        Some(Grant::inherited(fence, lease))
    }
}
