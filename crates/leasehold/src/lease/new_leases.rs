use std::sync::{Arc, Mutex};

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
    held_leases: Vec<Option<Arc<HeldLease>>>,
    /// The positions without a lease.
    free: Vec<usize>,
    /// Nothing is due for any of them before this.
    due: Option<BootInstant>,
}

impl NewLeases {
    /// Adds a lease that was just granted. Returns `true` if the renewer must be notified, because
    /// something is due earlier than it knows.
    pub(crate) fn add(&self, held_lease: Arc<HeldLease>) -> bool {
        let first = held_lease.next_event();
        let mut entries = locked(&self.0);
        let position = entries.free.pop().unwrap_or(entries.held_leases.len());
        held_lease.set_position(position);
        match entries.held_leases.get_mut(position) {
            Some(free) => *free = Some(held_lease),
            None => entries.held_leases.push(Some(held_lease)),
        }
        let is_sooner = first.is_some_and(|first| entries.due.is_none_or(|due| first < due));
        if is_sooner {
            entries.due = first;
        }
        is_sooner
    }

    /// Removes the lease. Returns `false` if it is not here, or no longer here.
    pub(crate) fn remove(&self, held_lease: &HeldLease) -> bool {
        let position = held_lease.position();
        let mut entries = locked(&self.0);
        let Some(entry) = entries.held_leases.get_mut(position) else {
            return false;
        };
        // The renewer may have taken it over, and another lease may have its position.
        let removed = entry.take_if(|entry| entry.id == held_lease.id);
        if removed.is_some() {
            entries.free.push(position);
        }
        removed.is_some()
    }

    /// Returns when the renewer must [take over](Self::take_all) the remaining leases at the latest.
    pub(crate) fn due(&self) -> Option<BootInstant> {
        locked(&self.0).due
    }

    /// Removes and returns all leases.
    pub(crate) fn take_all(&self) -> impl Iterator<Item = Arc<HeldLease>> + use<> {
        let entries = std::mem::take(&mut *locked(&self.0));
        entries.held_leases.into_iter().flatten()
    }
}
