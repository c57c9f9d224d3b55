use std::sync::{Arc, Mutex};

use slab::Slab;

use super::held_lease::HeldLease;
use crate::env::clock::BootInstant;
use crate::env::locked;

/// New leases that the renewer need not know yet. Most are released before anything is due for them, and
/// then cost the renewer nothing.
#[derive(Debug, Default)]
pub(crate) struct NewLeases(Mutex<Entries>);

#[derive(Debug, Default)]
struct Entries {
    /// Each lease knows its position.
    held_leases: Slab<Arc<HeldLease>>,
    /// Nothing is due for any of them before this.
    due: Option<BootInstant>,
}

impl NewLeases {
    /// Adds a lease that was just granted. Returns `true` if the renewer must be notified, because
    /// something is due earlier than it knows.
    pub(crate) fn add(&self, held_lease: Arc<HeldLease>) -> bool {
        let first = held_lease.next_event();
        let mut entries = locked(&self.0);
        let entry = entries.held_leases.vacant_entry();
        held_lease.set_position(entry.key());
        entry.insert(held_lease);
        let is_sooner = first.is_some_and(|first| entries.due.is_none_or(|due| first < due));
        if is_sooner {
            entries.due = first;
        }
        is_sooner
    }

    /// Removes the lease. Returns `false` if it is not here, or no longer here.
    pub(crate) fn remove(&self, held_lease: &HeldLease) -> bool {
        let (position, mut entries) = (held_lease.position(), locked(&self.0));
        let at_position = entries.held_leases.get(position);
        // The renewer may have taken it over, and another lease may have its position.
        let is_here = at_position.is_some_and(|entry| entry.id == held_lease.id);
        if is_here {
            entries.held_leases.remove(position);
        }
        is_here
    }

    /// Returns when the renewer must [take over](Self::take_all) the remaining leases at the latest.
    pub(crate) fn due(&self) -> Option<BootInstant> {
        locked(&self.0).due
    }

    /// Removes and returns all leases.
    pub(crate) fn take_all(&self) -> impl Iterator<Item = Arc<HeldLease>> + use<> {
        let entries = std::mem::take(&mut *locked(&self.0));
        entries
            .held_leases
            .into_iter()
            .map(|(_, held_lease)| held_lease)
    }
}
