use std::collections::HashMap;
use std::ffi::OsStr;
use std::sync::{Arc, Mutex};

use leasehold::Key;
use leasehold::look::Owner;
use leasehold::store::{LockRequest, locked};
use tokio::sync::{Mutex as AsyncMutex, OwnedMutexGuard};

use crate::locking::held_lock::HeldLock;

/// One request, or one wait. All attempts of a wait in the queue use the same owner.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct RequestId {
    owner: Owner,
    key: Key,
}

impl RequestId {
    pub(crate) fn of(request: &LockRequest) -> Self {
        Self {
            owner: request.owner,
            key: request.key.clone(),
        }
    }
}

/// The locks that this process holds through one store, and the mutexes of their requests.
#[derive(Debug, Default)]
pub(crate) struct Table {
    held: Mutex<HashMap<RequestId, HeldLock>>,
    request_mutexes: Mutex<HashMap<RequestId, Arc<AsyncMutex<()>>>>,
}

/// The only right to change what a request holds or keeps. It goes along with the
/// blocking work, so that a release waits for an attempt whose future was dropped.
#[derive(Debug)]
pub(crate) struct RequestGuard {
    // Dropped in this order: the last user forgets a mutex that is no longer in use.
    _running: OwnedMutexGuard<()>,
    _user: MutexUser,
}

impl Table {
    /// Waits until no other work changes the request, and returns the guard.
    pub(crate) async fn serialize(self: &Arc<Self>, id: &RequestId) -> RequestGuard {
        let mutex = locked(&self.request_mutexes)
            .entry(id.clone())
            .or_default()
            .clone();
        let user = MutexUser {
            table: self.clone(),
            id: id.clone(),
        };
        RequestGuard {
            _running: mutex.lock_owned().await,
            _user: user,
        }
    }

    pub(crate) fn held(&self, id: &RequestId) -> Option<HeldLock> {
        locked(&self.held).get(id).cloned()
    }

    /// Returns the lock that `owner` holds.
    pub(crate) fn held_by(&self, owner: Owner) -> Option<HeldLock> {
        let held = locked(&self.held);
        let (_, lock) = held.iter().find(|(id, _)| id.owner == owner)?;
        Some(lock.clone())
    }

    /// Returns whether a lock is held whose file has this name; without a name, whether any is.
    pub(crate) fn has_file(&self, name: Option<&OsStr>) -> bool {
        let held = locked(&self.held);
        let mut files = held.values().map(|lock| lock.lock.path().file_name());
        files.any(|file| name.is_none() || file == name)
    }

    /// Returns whether a held lock no longer excludes others, or cannot be looked up.
    pub(crate) fn has_lost_one(&self) -> bool {
        let held: Vec<HeldLock> = locked(&self.held).values().cloned().collect();
        held.iter()
            .any(|lock| !matches!(lock.still_excludes(), Ok(true)))
    }

    pub(crate) fn keep(&self, id: RequestId, lock: HeldLock) {
        locked(&self.held).insert(id, lock);
    }

    pub(crate) fn remove(&self, id: &RequestId) -> Option<HeldLock> {
        locked(&self.held).remove(id)
    }
}

/// A task that holds the mutex of a request, or waits for it.
#[derive(Debug)]
struct MutexUser {
    table: Arc<Table>,
    id: RequestId,
}

impl Drop for MutexUser {
    fn drop(&mut self) {
        let mut mutexes = locked(&self.table.request_mutexes);
        // Clones are made under the same lock, so a count of one means that there is no other
        // user.
        if mutexes
            .get(&self.id)
            .is_some_and(|mutex| Arc::strong_count(mutex) == 1)
        {
            mutexes.remove(&self.id);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use leasehold::clock::{WallTime, within};
    use leasehold::env::{Env, SystemEntropy};
    use leasehold::look::ClientId;

    use super::*;

    fn id() -> RequestId {
        let id = ClientId::random(&SystemEntropy);
        let client = Env::default().this_process(None);
        RequestId::of(&LockRequest::new(
            Key::new("deploy").unwrap(),
            Owner::random(id, &SystemEntropy),
            Duration::from_secs(1),
            WallTime::from_micros(1),
            Arc::new(client),
        ))
    }

    #[tokio::test]
    async fn claim_mutex_is_forgotten_when_unused() {
        let (table, id) = (Arc::new(Table::default()), id());
        let guard = table.serialize(&id).await;
        let clock = Env::default().clock;
        let soon = clock.now() + Duration::from_millis(20);
        assert!(within(&*clock, soon, table.serialize(&id)).await.is_none());
        drop(guard);
        assert!(locked(&table.request_mutexes).is_empty());
        drop(table.serialize(&id).await);
        assert!(locked(&table.request_mutexes).is_empty());
    }

    #[tokio::test]
    async fn a_waiter_that_gave_up_leaves_nothing() {
        let (table, id) = (Arc::new(Table::default()), id());
        let guard = table.serialize(&id).await;
        {
            let mut waiting = Box::pin(table.serialize(&id));
            assert!(futures_poll_once(&mut waiting).await);
            drop(guard);
        }
        assert!(locked(&table.request_mutexes).is_empty());
    }

    /// Polls once; whether it was pending.
    async fn futures_poll_once<T>(future: &mut (impl Future<Output = T> + Unpin)) -> bool {
        std::future::poll_fn(|context| {
            std::task::Poll::Ready(std::pin::Pin::new(&mut *future).poll(context).is_pending())
        })
        .await
    }
}
