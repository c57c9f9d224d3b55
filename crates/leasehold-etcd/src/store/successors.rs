use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use leasehold::Fence;
use leasehold::look::Owner;
use leasehold::store::{LockRequest, locked};
use tokio::sync::oneshot;

/// The exclusive waiters of this client, by the owner of the entry that is directly before theirs. If that owner is the client's too,
/// its release passes the lock on. An owner holds one lock once, but its lease may hold other locks later.
#[derive(Debug, Default)]
pub(super) struct Successors(Mutex<HashMap<Owner, Successor>>);

/// A waiter that can get the lock from the holder before it.
#[derive(Debug)]
pub(super) struct Successor {
    pub(super) request: Arc<LockRequest>,
    /// The lease of its entry.
    pub(super) lease: i64,
    /// The number of its key.
    pub(super) number: i64,
    /// The lease of the fence.
    pub(super) fence_lease: i64,
    /// The revision at which its entry was created.
    pub(super) created: i64,
    pub(super) granted: oneshot::Sender<HandOver>,
}

/// A grant that a release of the same client made.
#[derive(Clone, Copy, Debug)]
pub(super) struct HandOver {
    pub(super) fence: Fence,
    /// When the entry was written.
    pub(super) revision: i64,
}

/// The wait of a successor. It ends when dropped.
#[derive(Debug)]
pub(super) struct Succession<'a> {
    successors: &'a Successors,
    owner: Owner,
    granted: oneshot::Receiver<HandOver>,
}

impl Successors {
    /// Begins to wait for the release of this owner.
    pub(super) fn enter(
        &self,
        owner: Owner,
        successor: impl FnOnce(oneshot::Sender<HandOver>) -> Successor,
    ) -> Succession<'_> {
        let (grant, granted) = oneshot::channel();
        locked(&self.0).insert(owner, successor(grant));
        Succession {
            successors: self,
            owner,
            granted,
        }
    }

    /// Returns the waiter directly behind this owner. The caller tries to pass the lock on to it.
    pub(super) fn take(&self, owner: Owner) -> Option<Successor> {
        locked(&self.0).remove(&owner)
    }
}

impl Succession<'_> {
    /// Resolves when a release has passed the lock on; `None` if it could not.
    pub(super) async fn granted(&mut self) -> Option<HandOver> {
        (&mut self.granted).await.ok()
    }

    /// Returns whether a release tries to pass the lock on. If not, none will.
    pub(super) fn is_under_way(&self) -> bool {
        self.successors.take(self.owner).is_none()
    }
}

impl Drop for Succession<'_> {
    fn drop(&mut self) {
        drop(self.successors.take(self.owner));
    }
}
