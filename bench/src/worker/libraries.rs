use std::time::Duration;

use leasehold::{Client, Guard, Lock};
use leasehold_redis::RedisStore;
use rslock::{LockError, LockManager};

use super::Handle;
use super::task::Task;
use crate::error::Fallible;

const TTL: Duration = Duration::from_secs(30);

/// A lock of a client, by its public interface.
pub(super) struct Leasehold(Lock);

/// All waiters are tasks of one program: one client.
pub(super) async fn shared(task: &Task) -> Fallible<Vec<Leasehold>> {
    Ok(of_one(&client(task).await?, task))
}

/// The locks of one client.
pub(super) fn of_one(client: &Client, task: &Task) -> Vec<Leasehold> {
    let waiter = |key| Leasehold(client.lock(key).ttl(TTL));
    task.keys().map(waiter).collect()
}

/// Each waiter is a client of its own, with its own connections, as if it were another program.
pub(super) async fn each(task: &Task) -> Fallible<Vec<Leasehold>> {
    init(task).await?;
    of_each(|| Ok(Client::new(store(task)?)), task)
}

/// The locks of as many clients.
pub(super) fn of_each(
    client: impl Fn() -> Fallible<Client>,
    task: &Task,
) -> Fallible<Vec<Leasehold>> {
    let waiter = |key| Ok(Leasehold(client()?.lock(key).ttl(TTL)));
    task.keys().map(waiter).collect()
}

pub(super) async fn client(task: &Task) -> Fallible<Client> {
    init(task).await?;
    Ok(Client::new(store(task)?))
}

/// Initializes the quorum of several servers. They are new, so no lock was ever held on them.
async fn init(task: &Task) -> Fallible {
    if task.ports.len() > 1 {
        store(task)?.init().await?;
    }
    Ok(())
}

fn store(task: &Task) -> Fallible<RedisStore> {
    Ok(RedisStore::new(task.urls())?)
}

impl Handle for Leasehold {
    type Held = Guard;

    async fn acquire(&self) -> Fallible<Guard> {
        Ok(self.0.acquire().await?)
    }

    async fn try_acquire(&self) -> Fallible<Option<Guard>> {
        Ok(self.0.try_acquire().await?)
    }

    async fn release(&self, held: Guard) -> Fallible {
        held.release().await?;
        Ok(())
    }
}

/// A lock of rslock; all waiters share its manager, as its manual has it.
pub(super) struct Rslock {
    manager: LockManager,
    key: Vec<u8>,
    /// Whether an acquire repeats the attempts that the manager makes until one succeeds.
    is_patient: bool,
}

pub(super) fn rslock(task: &Task, is_patient: bool) -> Vec<Rslock> {
    let mut manager = LockManager::new(task.urls());
    if let Some(delay) = task.delay {
        manager.set_retry(u32::MAX, delay);
    }
    let waiter = |key: String| Rslock {
        manager: manager.clone(),
        key: key.into_bytes(),
        is_patient,
    };
    task.keys().map(waiter).collect()
}

impl Handle for Rslock {
    type Held = rslock::Lock;

    async fn acquire(&self) -> Fallible<rslock::Lock> {
        let acquired = if self.is_patient {
            self.manager.acquire_no_guard(&self.key, TTL).await
        } else {
            self.manager.lock(&self.key, TTL).await
        };
        Ok(acquired?)
    }

    async fn try_acquire(&self) -> Fallible<Option<rslock::Lock>> {
        let mut once = self.manager.clone();
        once.set_retry(1, Duration::from_millis(1));
        match once.lock(&self.key, TTL).await {
            Err(LockError::Unavailable) => Ok(None),
            tried => Ok(Some(tried?)),
        }
    }

    async fn release(&self, held: rslock::Lock) -> Fallible {
        self.manager.unlock(&held).await;
        Ok(())
    }
}
