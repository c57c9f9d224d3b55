use std::time::Duration;

use rslock::{Lock, LockError, LockManager};

use super::Handle;
use super::task::Task;

const TTL: Duration = Duration::from_secs(30);

/// A lock of rslock; all waiters share its manager, as its manual has it.
pub(super) struct Waiter {
    manager: LockManager,
    key: Vec<u8>,
}

pub(super) fn handles(task: &Task) -> Result<Vec<Waiter>, String> {
    let mut manager = LockManager::new(task.urls());
    if let Some(delay) = task.delay {
        manager.set_retry(u32::MAX, delay);
    }
    let waiter = |key: String| Waiter {
        manager: manager.clone(),
        key: key.into_bytes(),
    };
    Ok(task.keys().map(waiter).collect())
}

impl Handle for Waiter {
    type Held = Lock;

    async fn acquire(&self) -> Result<Lock, String> {
        let acquired = self.manager.acquire_no_guard(&self.key, TTL).await;
        acquired.map_err(|error| error.to_string())
    }

    async fn try_acquire(&self) -> Result<Option<Lock>, String> {
        let mut once = self.manager.clone();
        once.set_retry(1, Duration::from_millis(1));
        match once.lock(&self.key, TTL).await {
            Ok(lock) => Ok(Some(lock)),
            Err(LockError::Unavailable) => Ok(None),
            Err(error) => Err(error.to_string()),
        }
    }

    async fn release(&self, held: Lock) -> Result<(), String> {
        self.manager.unlock(&held).await;
        Ok(())
    }
}
