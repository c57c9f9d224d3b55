use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::held_lease::HeldLease;
use crate::env::clock::BootInstant;

/// New leases that the renewer need not know yet. Most are released before anything is due for them, and
/// then cost the renewer nothing.
#[derive(Debug, Default)]
pub(crate) struct NewLeases(Mutex<Entries>);

#[derive(Debug, Default)]
struct Entries {
    held_leases: BTreeMap<u64, Arc<HeldLease>>,
    /// Nothing is due for any of them before this.
    due: Option<BootInstant>,
}

impl NewLeases {
    /// Adds a lease that was just granted. Returns `true` if the renewer must be notified, because
    /// something is due earlier than it knows.
    pub(crate) fn add(&self, held_lease: Arc<HeldLease>) -> bool {
        let first = held_lease.next_event();
        let mut young = self.young();
        young.held_leases.insert(held_lease.id, held_lease);
        let is_sooner = first.is_some_and(|first| young.due.is_none_or(|due| first < due));
        if is_sooner {
            young.due = first;
        }
        is_sooner
    }

    /// Removes the lease and returns it; `None` if it is not here, or no longer here.
    pub(crate) fn remove(&self, id: u64) -> Option<Arc<HeldLease>> {
        self.young().held_leases.remove(&id)
    }

    /// Returns when the renewer must [take over](Self::take_all) the remaining leases at the latest.
    pub(crate) fn due(&self) -> Option<BootInstant> {
        self.young().due
    }

    /// Removes and returns all leases.
    pub(crate) fn take_all(&self) -> Vec<Arc<HeldLease>> {
        let young = std::mem::take(&mut *self.young());
        young.held_leases.into_values().collect()
    }

    fn young(&self) -> MutexGuard<'_, Entries> {
        // Every change under the mutex is a single step; a panic elsewhere leaves it whole.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
