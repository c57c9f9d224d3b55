use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use leasehold::Key;
use leasehold::store::{Claim, Owner};
use tokio::sync::{Mutex as AsyncMutex, OwnedMutexGuard};

use crate::locking::held_lock::HeldLock;

/// One claim, or one wait. All attempts of a wait use the same owner.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct ClaimId {
    owner: Owner,
    key: Key,
}

impl ClaimId {
    pub(crate) fn of(claim: &Claim) -> Self {
        Self {
            owner: claim.owner,
            key: claim.key.clone(),
        }
    }
}

/// The locks that this process holds through one store, and the turns of their claims.
#[derive(Debug, Default)]
pub(crate) struct Table {
    held: Mutex<HashMap<ClaimId, HeldLock>>,
    turns: Mutex<HashMap<ClaimId, Arc<AsyncMutex<()>>>>,
}

/// The only right to change what a claim holds or keeps. It goes along with the
/// blocking work, so that a release waits for an attempt whose future was dropped.
#[derive(Debug)]
pub(crate) struct ClaimGuard {
    // Dropped in this order: the last visitor forgets a turn that is no longer in use.
    _running: OwnedMutexGuard<()>,
    _visitor: Visitor,
}

impl Table {
    /// Waits until no other work changes the claim, and returns the guard.
    pub(crate) async fn turn(self: &Arc<Self>, id: &ClaimId) -> ClaimGuard {
        let turn = locked(&self.turns).entry(id.clone()).or_default().clone();
        let visitor = Visitor {
            table: self.clone(),
            id: id.clone(),
        };
        ClaimGuard {
            _running: turn.lock_owned().await,
            _visitor: visitor,
        }
    }

    pub(crate) fn held(&self, id: &ClaimId) -> Option<HeldLock> {
        locked(&self.held).get(id).cloned()
    }

    /// Returns the lock that `owner` holds.
    pub(crate) fn held_by(&self, owner: Owner) -> Option<HeldLock> {
        let held = locked(&self.held);
        let (_, lock) = held.iter().find(|(id, _)| id.owner == owner)?;
        Some(lock.clone())
    }

    pub(crate) fn keep(&self, id: ClaimId, lock: HeldLock) {
        locked(&self.held).insert(id, lock);
    }

    pub(crate) fn remove(&self, id: &ClaimId) -> Option<HeldLock> {
        locked(&self.held).remove(id)
    }
}

/// A task that has the turn of a claim, or waits for it.
#[derive(Debug)]
struct Visitor {
    table: Arc<Table>,
    id: ClaimId,
}

impl Drop for Visitor {
    fn drop(&mut self) {
        let mut turns = locked(&self.table.turns);
        // Clones are made under the same lock, so a count of one means that there is no other
        // visitor.
        if turns
            .get(&self.id)
            .is_some_and(|turn| Arc::strong_count(turn) == 1)
        {
            turns.remove(&self.id);
        }
    }
}

/// The maps are whole at every moment, so a panic elsewhere cannot have broken them.
fn locked<T>(map: &Mutex<T>) -> MutexGuard<'_, T> {
    map.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use leasehold::clock::{WallTime, within};
    use leasehold::env::{Env, SystemEntropy};
    use leasehold::store::{ClientId, ClientInfo};

    use super::*;

    fn id() -> ClaimId {
        let id = ClientId::random(&SystemEntropy);
        let client = ClientInfo::of_this_process(&Env::default(), None);
        ClaimId::of(&Claim::new(
            Key::new("deploy").unwrap(),
            Owner::random(id, &SystemEntropy),
            Duration::from_secs(1),
            WallTime::from_micros(1),
            Arc::new(client),
        ))
    }

    #[tokio::test]
    async fn turns_are_exclusive_and_forgotten_at_the_end() {
        let (table, id) = (Arc::new(Table::default()), id());
        let turn = table.turn(&id).await;
        let clock = Env::default().clock;
        let soon = clock.now() + Duration::from_millis(20);
        assert!(within(&*clock, soon, table.turn(&id)).await.is_none());
        drop(turn);
        assert!(locked(&table.turns).is_empty());
        drop(table.turn(&id).await);
        assert!(locked(&table.turns).is_empty());
    }

    #[tokio::test]
    async fn a_waiter_that_gave_up_leaves_nothing() {
        let (table, id) = (Arc::new(Table::default()), id());
        let turn = table.turn(&id).await;
        {
            let mut waiting = Box::pin(table.turn(&id));
            assert!(futures_poll_once(&mut waiting).await);
            drop(turn);
        }
        assert!(locked(&table.turns).is_empty());
    }

    /// Polls once; whether it was pending.
    async fn futures_poll_once<T>(future: &mut (impl Future<Output = T> + Unpin)) -> bool {
        std::future::poll_fn(|context| {
            std::task::Poll::Ready(std::pin::Pin::new(&mut *future).poll(context).is_pending())
        })
        .await
    }
}
