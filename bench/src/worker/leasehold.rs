//! Leasehold, by its public interface.

use std::time::Duration;

use leasehold::{Client, Error, Guard, Lock};
use leasehold_stores::AnyStore;
use leasehold_testkit::servers::PostgresServer;

use super::{Handle, Task, held, obey};
use crate::error::Fallible;

const TTL: Duration = Duration::from_secs(30);

/// Obeys the orders with locks on `store`, all of one client or each of a client of its own.
pub(super) async fn run(store: &str, part: &str, task: &Task) -> Fallible {
    let url = match store {
        "redis" => task.urls().join(","),
        "postgres" => PostgresServer::url_at(task.port()?),
        "etcd" => format!("etcd://127.0.0.1:{}", task.port()?),
        "zookeeper" => format!("zk://127.0.0.1:{}", task.port()?),
        _ => return Err(format!("there is no store {store:?}").into()),
    };
    // Its servers are new, so no lock was ever held on them.
    AnyStore::parse(&url)?.init().await?;
    let open = || Ok::<_, Error>(Client::new(leasehold_stores::open(&url)?));
    let first = open()?;
    let waiter = |client: &Client, key| Waiter(client.lock(key).ttl(TTL));
    match part {
        "leasehold" => {
            let waiters = task.keys().map(|key| waiter(&first, key));
            obey(waiters.collect(), task).await
        }
        // Each has its own connections, as if it were another program.
        "leasehold-each" => {
            let waiters = task.keys().map(|key| Ok(waiter(&open()?, key)));
            obey(waiters.collect::<Fallible<_>>()?, task).await
        }
        "leasehold-held" => held::obey(&first, task).await,
        _ => Err(format!("there is no part {part:?}").into()),
    }
}

/// A lock of a client.
struct Waiter(Lock);

impl Handle for Waiter {
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
