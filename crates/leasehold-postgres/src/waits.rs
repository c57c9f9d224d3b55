use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use leasehold::store::Owner;
use tokio::sync::Notify;

/// The waits of a session that the server notifies.
#[derive(Debug, Default)]
pub(crate) struct Waits(Mutex<HashMap<Owner, Arc<Notify>>>);

/// One of them. It ends when dropped.
pub(crate) struct Wait<'a> {
    waits: &'a Waits,
    owner: Owner,
    notify: Arc<Notify>,
}

impl Waits {
    /// Begins the wait of `owner`.
    pub(crate) fn enter(&self, owner: Owner) -> Wait<'_> {
        let notify = Arc::new(Notify::new());
        self.map().insert(owner, Arc::clone(&notify));
        Wait {
            waits: self,
            owner,
            notify,
        }
    }

    /// Wakes the wait that the payload of a notification names. A wait that has ended hears nothing.
    pub(crate) fn wake(&self, payload: &str) {
        let owner = payload.parse::<Owner>().ok();
        if let Some(notify) = owner.and_then(|owner| self.map().get(&owner).cloned()) {
            notify.notify_one();
        }
    }

    /// Wakes all waits: notifications may have been lost.
    pub(crate) fn wake_all(&self) {
        self.map().values().for_each(|notify| notify.notify_one());
    }

    fn map(&self) -> MutexGuard<'_, HashMap<Owner, Arc<Notify>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Wait<'_> {
    /// Resolves at the next notification, or at once if one came since the last call.
    pub(crate) async fn notified(&self) {
        self.notify.notified().await;
    }
}

impl Drop for Wait<'_> {
    fn drop(&mut self) {
        self.waits.map().remove(&self.owner);
    }
}
