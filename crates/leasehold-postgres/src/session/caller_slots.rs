use std::sync::{Arc, Mutex, PoisonError};

use leasehold::store::SessionContext;
use tokio::runtime::{Handle, Id};

use crate::connection::connect::Place;
use crate::session::link::{Purpose, Slot};

/// A connection for each runtime that polls requests. The runtime of the callers drives it, so no thread has to wake
/// another one for an answer. Callers without a runtime share a connection on the client's thread.
#[derive(Debug)]
pub(crate) struct CallerSlots {
    place: Arc<Place>,
    context: SessionContext,
    purpose: Purpose,
    on_thread: Arc<Slot>,
    on_runtimes: Mutex<Vec<(Id, Arc<Slot>)>>,
}

/// The most runtimes with connections of their own.
const RUNTIMES_MAX: usize = 4;

impl CallerSlots {
    pub(crate) fn new(place: Arc<Place>, context: SessionContext, purpose: Purpose) -> Self {
        let slot = Slot::new(Arc::clone(&place), context.clone(), purpose.clone(), None);
        Self {
            place,
            context,
            purpose,
            on_thread: slot,
            on_runtimes: Mutex::default(),
        }
    }

    /// Returns the slot of the runtime that polls the caller.
    pub(crate) fn here(&self) -> Arc<Slot> {
        let Ok(runtime) = Handle::try_current() else {
            return Arc::clone(&self.on_thread);
        };
        let mut slots = self
            .on_runtimes
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let id = runtime.id();
        if let Some((_, slot)) = slots.iter().find(|(of, _)| *of == id) {
            return Arc::clone(slot);
        }
        if slots.len() >= RUNTIMES_MAX {
            // Those of runtimes that have ended are closed.
            slots.retain(|(_, slot)| slot.is_open());
        }
        if slots.len() >= RUNTIMES_MAX {
            return Arc::clone(&self.on_thread);
        }
        let slot = Slot::new(
            Arc::clone(&self.place),
            self.context.clone(),
            self.purpose.clone(),
            Some(runtime),
        );
        slots.push((id, Arc::clone(&slot)));
        slot
    }
}
