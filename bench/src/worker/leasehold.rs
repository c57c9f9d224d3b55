use std::time::Duration;

use leasehold::{Client, Guard, Lock, Quorum};
use leasehold_redis::RedisMember;

use super::{Handle, Task};

const TTL: Duration = Duration::from_secs(30);

/// A lock of a client, by its public interface.
pub(super) struct Waiter(Lock);

/// All waiters are tasks of one program: one client.
pub(super) fn shared(task: &Task) -> Result<Vec<Waiter>, String> {
    let client = client(task)?;
    let lock = client.lock(&task.key).ttl(TTL);
    Ok((0..task.waiters).map(|_| Waiter(lock.clone())).collect())
}

/// Each waiter is a client of its own, with its own connections, as if it were another program.
pub(super) fn each(task: &Task) -> Result<Vec<Waiter>, String> {
    let waiter = |_| Ok(Waiter(client(task)?.lock(&task.key).ttl(TTL)));
    (0..task.waiters).map(waiter).collect()
}

fn client(task: &Task) -> Result<Client, String> {
    let text = |error: leasehold::Error| error.to_string();
    let urls = task.urls();
    Ok(match urls.as_slice() {
        [url] => Client::new(RedisMember::new(url).map_err(text)?),
        urls => {
            let members = RedisMember::all(urls).map_err(text)?;
            Client::new(Quorum::new(members).map_err(text)?)
        }
    })
}

impl Handle for Waiter {
    type Held = Guard;

    async fn acquire(&self) -> Result<Guard, String> {
        self.0.acquire().await.map_err(|error| error.to_string())
    }

    async fn try_acquire(&self) -> Result<Option<Guard>, String> {
        self.0
            .try_acquire()
            .await
            .map_err(|error| error.to_string())
    }

    async fn release(&self, held: Guard) -> Result<(), String> {
        let ended = held.release().await;
        ended.map(|_| ()).map_err(|error| error.to_string())
    }
}
