use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::clock::BootInstant;
use crate::tenure::Tenure;

/// Leases that the keeper need not know yet: most are given back before anything is due for them, and
/// then cost it nothing.
#[derive(Debug, Default)]
pub(crate) struct Nursery(Mutex<Young>);

#[derive(Debug, Default)]
struct Young {
    tenures: BTreeMap<u64, Arc<Tenure>>,
    /// Nothing is due for any of them before.
    due: Option<BootInstant>,
}

impl Nursery {
    /// Takes in a lease that was just granted. `true` if the keeper must hear of it, for something
    /// is due earlier than it knows.
    pub(crate) fn add(&self, tenure: Arc<Tenure>) -> bool {
        let first = tenure.next_event();
        let mut young = self.young();
        young.tenures.insert(tenure.id, tenure);
        let is_sooner = first.is_some_and(|first| young.due.is_none_or(|due| first < due));
        if is_sooner {
            young.due = first;
        }
        is_sooner
    }

    /// Gives the lease up; `None` if it is not here, or not any more.
    pub(crate) fn remove(&self, id: u64) -> Option<Arc<Tenure>> {
        self.young().tenures.remove(&id)
    }

    /// When those that are left are to be [taken over](Self::take_all) at the latest.
    pub(crate) fn due(&self) -> Option<BootInstant> {
        self.young().due
    }

    /// Gives all of them up.
    pub(crate) fn take_all(&self) -> Vec<Arc<Tenure>> {
        let young = std::mem::take(&mut *self.young());
        young.tenures.into_values().collect()
    }

    fn young(&self) -> MutexGuard<'_, Young> {
        // Every change under the mutex is a single step; a panic elsewhere leaves it whole.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
