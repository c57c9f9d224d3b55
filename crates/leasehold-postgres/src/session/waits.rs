use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use leasehold::Fence;
use leasehold::clock::BootInstant;
use leasehold::store::{Owner, locked};
use tokio::sync::Notify;

/// The waits of a session that the server notifies, or that get the lock from another guard of the session.
#[derive(Debug, Default)]
pub(crate) struct Waits(Mutex<HashMap<Owner, Arc<Waiting>>>);

#[derive(Debug, Default)]
struct Waiting {
    notify: Notify,
    granted: Mutex<Option<HandOver>>,
}

/// A grant in the answer to a release of the same client.
#[derive(Clone, Copy, Debug)]
pub(crate) struct HandOver {
    pub(crate) fence: Fence,
    /// Before the release was sent, so the lease cannot have begun earlier.
    pub(crate) since: BootInstant,
}

/// One of the waits. It ends when dropped.
pub(crate) struct Wait<'a> {
    waits: &'a Waits,
    owner: Owner,
    waiting: Arc<Waiting>,
}

impl Waits {
    /// Begins the wait of `owner`.
    pub(crate) fn enter(&self, owner: Owner) -> Wait<'_> {
        let waiting = Arc::<Waiting>::default();
        locked(&self.0).insert(owner, Arc::clone(&waiting));
        Wait {
            waits: self,
            owner,
            waiting,
        }
    }

    /// Wakes the wait that the payload of a notification names. A wait that has ended hears nothing.
    pub(crate) fn wake(&self, payload: &str) {
        let owner = payload.parse::<Owner>().ok();
        if let Some(waiting) = owner.and_then(|owner| self.find(owner)) {
            waiting.notify.notify_one();
        }
    }

    /// Passes a grant to the wait of `owner`. If that has ended, the client releases the owner.
    pub(crate) fn hand_over(&self, owner: Owner, grant: HandOver) {
        if let Some(waiting) = self.find(owner) {
            *locked(&waiting.granted) = Some(grant);
            waiting.notify.notify_one();
        }
    }

    /// Wakes all waits: notifications may have been lost.
    pub(crate) fn wake_all(&self) {
        let all = locked(&self.0);
        all.values().for_each(|waiting| waiting.notify.notify_one());
    }

    fn find(&self, owner: Owner) -> Option<Arc<Waiting>> {
        locked(&self.0).get(&owner).cloned()
    }
}

impl Wait<'_> {
    /// Resolves when the server may have news, or at once if it had some since the last call. Returns the grant, if a
    /// release of the same client passed the lock on.
    pub(crate) async fn news(&self) -> Option<HandOver> {
        self.waiting.notify.notified().await;
        locked(&self.waiting.granted).take()
    }
}

impl Drop for Wait<'_> {
    fn drop(&mut self) {
        locked(&self.waits.0).remove(&self.owner);
    }
}
