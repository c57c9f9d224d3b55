use std::sync::Arc;

use leasehold_zookeeper::ZooKeeperStore;
use tokio::sync::Mutex;

use super::super::task::Task;
use super::super::{Handle, obey};
use super::leasehold;
use super::znodes::{Connection, NODE_EXISTS};
use crate::error::Fallible;

/// What the bare client writes with each lock, as others draw a fence.
const COUNTER: &str = "/bare-counter";

pub(super) async fn run(part: &str, task: &Task) -> Fallible {
    let port = task.port()?;
    match part {
        "bare" => obey(bare(port, task).await?, task).await,
        _ => {
            let url = format!("zk://127.0.0.1:{port}");
            leasehold(part, task, || ZooKeeperStore::new(&url)).await
        }
    }
}

/// An ephemeral node that is there while the lock is held, and a write of a counter: as many round trips as Leasehold
/// makes.
struct Bare {
    connection: Arc<Mutex<Connection>>,
    path: String,
}

async fn bare(port: u16, task: &Task) -> Fallible<Vec<Bare>> {
    let mut connection = Connection::open(port).await?;
    connection
        .create(COUNTER, false)
        .await?
        .map_err(|code| format!("{COUNTER}: {code}"))?;
    let connection = Arc::new(Mutex::new(connection));
    let handle = |key| Bare {
        connection: Arc::clone(&connection),
        path: format!("/{key}"),
    };
    Ok(task.keys().map(handle).collect())
}

impl Handle for Bare {
    type Held = ();

    async fn acquire(&self) -> Fallible {
        Ok(self.try_acquire().await?.ok_or("busy")?)
    }

    async fn try_acquire(&self) -> Fallible<Option<()>> {
        let mut connection = self.connection.lock().await;
        match connection.create(&self.path, true).await? {
            Err(NODE_EXISTS) => return Ok(None),
            created => created.map_err(|code| format!("{}: {code}", self.path))?,
        }
        let written = connection.set_data(COUNTER, b"1700000000000000").await?;
        written.map_err(|code| format!("{COUNTER}: {code}"))?;
        Ok(Some(()))
    }

    async fn release(&self, (): ()) -> Fallible {
        let deleted = self.connection.lock().await.delete(&self.path).await?;
        Ok(deleted.map_err(|code| format!("{}: {code}", self.path))?)
    }
}
