use redlock::{Lock, RedLock};

use super::Handle;
use super::task::Task;

/// Milliseconds.
const TTL: usize = 30_000;

/// A lock of the crate `redlock`, which asks the servers one after the other and blocks meanwhile.
pub(super) struct Waiter {
    /// A held lock borrows its manager.
    manager: &'static RedLock,
    key: Vec<u8>,
}

pub(super) fn handles(task: &Task) -> Result<Vec<Waiter>, String> {
    // For as long as this process, which is one run.
    let manager: &'static RedLock = Box::leak(Box::new(RedLock::new(task.urls())));
    let waiter = |key: String| Waiter {
        manager,
        key: key.into_bytes(),
    };
    Ok(task.keys().map(waiter).collect())
}

impl Handle for Waiter {
    type Held = Lock<'static>;

    const BLOCKS: bool = true;

    async fn acquire(&self) -> Result<Lock<'static>, String> {
        self.try_acquire().await?.ok_or_else(|| "busy".into())
    }

    async fn try_acquire(&self) -> Result<Option<Lock<'static>>, String> {
        let locked = self.manager.lock(&self.key, TTL);
        locked.map_err(|error| error.to_string())
    }

    async fn release(&self, held: Lock<'static>) -> Result<(), String> {
        self.manager.unlock(&held);
        Ok(())
    }
}
