use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::queue::{Ear, Heard, Hint};

/// Who listens at a store, in the order in which they came.
///
/// An ear is kept as long as the store, since nothing shows that its owner is gone but that it hears
/// nothing any more.
#[derive(Clone, Default)]
pub(super) struct Ears(Arc<Mutex<Vec<Arc<Ear>>>>);

impl Ears {
    pub(super) fn add(&self, ear: Ear) {
        self.list().push(Arc::new(ear));
    }

    /// Whether the hint concerns one of them; none behind that one is asked.
    pub(super) fn tell(&self, hint: Hint) -> bool {
        let heard = Heard::Hint(hint);
        // Outside of the mutex: an ear is the code of others.
        let ears = self.list().clone();
        ears.iter().any(|ear| ear(heard.clone()))
    }

    /// Tells all of them that they may have missed something.
    pub(super) fn deafen(&self) {
        let ears = self.list().clone();
        for ear in ears {
            ear(Heard::Deaf);
        }
    }

    fn list(&self) -> MutexGuard<'_, Vec<Arc<Ear>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
