use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::queue::{Ear, Heard};

/// Who listens at a member, in the order in which they came: for implementors of
/// [`Member::listen`](crate::Member::listen).
///
/// Several quorums may be built over one member. An ear is kept as long as the member, since nothing
/// shows that its owner is gone but that it hears nothing any more. Clones share what they hold.
#[derive(Clone, Default)]
pub struct Ears(Arc<Mutex<Vec<Arc<Ear>>>>);

impl Ears {
    /// From now on `ear` is told, too.
    pub fn add(&self, ear: Ear) {
        self.list().push(Arc::new(ear));
    }

    /// Whether it concerns one of them. A hint goes to none behind that one; that nothing is heard
    /// any more concerns all.
    pub fn tell(&self, heard: &Heard) -> bool {
        // Outside of the mutex: an ear is the code of others.
        let ears = self.list().clone();
        match heard {
            Heard::Hint(_) => ears.iter().any(|ear| ear(heard.clone())),
            Heard::Deaf => {
                let told = ears.iter().filter(|ear| ear(Heard::Deaf));
                told.count() > 0
            }
        }
    }

    fn list(&self) -> MutexGuard<'_, Vec<Arc<Ear>>> {
        // Every change under the mutex is a single step; a panic elsewhere leaves it whole.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Ears {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Ears({})", self.list().len())
    }
}
