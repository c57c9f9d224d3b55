use std::sync::{Arc, Mutex};

use leasehold::store::locked;
use leasehold_testkit::servers::ZookeeperConnection;

use crate::error::Fallible;
use crate::worker::{Handle, Task};

/// What the bare client writes with each lock, as others draw a fence.
const COUNTER: &str = "/bare-counter";

/// An ephemeral node that is there while the lock is held, and a write of a counter: one round trip more than Leasehold
/// makes, which does both at once. The connection blocks its thread, which does nothing else.
pub(super) struct Bare {
    connection: Arc<Mutex<ZookeeperConnection>>,
    path: String,
}

pub(super) fn bare(task: &Task) -> Fallible<Vec<Bare>> {
    let mut connection = ZookeeperConnection::open(task.port()?, None);
    connection.create(COUNTER, "");
    let connection = Arc::new(Mutex::new(connection));
    let handle = |key| Bare {
        connection: Arc::clone(&connection),
        path: format!("/{key}"),
    };
    Ok(task.keys().map(handle).collect())
}

impl Handle for Bare {
    type Held = ();

    async fn try_acquire(&self) -> Fallible<Option<()>> {
        let mut connection = locked(&self.connection);
        if !connection.try_create(&self.path, "x", true) {
            return Ok(None);
        }
        connection.set_data(COUNTER, "1700000000000000");
        Ok(Some(()))
    }

    async fn release(&self, (): ()) -> Fallible {
        let is_deleted = locked(&self.connection).delete(&self.path);
        Ok(is_deleted.then_some(()).ok_or("lost")?)
    }
}
