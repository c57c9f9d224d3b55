use std::time::Duration;

use leasehold::{Client, ClientBuilder, Error, Guard, Lock};
use leasehold_redis::RedisStore;

use super::Handle;
use super::task::Task;

const TTL: Duration = Duration::from_secs(30);

/// A lock of a client, by its public interface.
pub(super) struct Waiter(Lock);

/// All waiters are tasks of one program: one client.
pub(super) async fn shared(task: &Task) -> Result<Vec<Waiter>, String> {
    init(task).await?;
    Ok(waiters(&builder(task)?.build(), task))
}

fn waiters(client: &Client, task: &Task) -> Vec<Waiter> {
    let waiter = |key| Waiter(client.lock(key).ttl(TTL));
    task.keys().map(waiter).collect()
}

/// Each waiter is a client of its own, with its own connections, as if it were another program.
pub(super) async fn each(task: &Task) -> Result<Vec<Waiter>, String> {
    init(task).await?;
    let waiter = |key| Ok(Waiter(builder(task)?.build().lock(key).ttl(TTL)));
    task.keys().map(waiter).collect()
}

/// Initializes the quorum of several servers. They are new, so no lock was ever held on them.
async fn init(task: &Task) -> Result<(), String> {
    match task.urls().len() {
        1 => Ok(()),
        _ => store(task)?.init().await.map_err(text),
    }
}

fn builder(task: &Task) -> Result<ClientBuilder, String> {
    Ok(Client::builder(store(task)?))
}

fn store(task: &Task) -> Result<RedisStore, String> {
    RedisStore::new(task.urls()).map_err(text)
}

fn text(error: Error) -> String {
    error.to_string()
}

impl Handle for Waiter {
    type Held = Guard;

    async fn acquire(&self) -> Result<Guard, String> {
        self.0.acquire().await.map_err(text)
    }

    async fn try_acquire(&self) -> Result<Option<Guard>, String> {
        self.0.try_acquire().await.map_err(text)
    }

    async fn release(&self, held: Guard) -> Result<(), String> {
        let ended = held.release().await;
        ended.map(|_| ()).map_err(text)
    }
}
