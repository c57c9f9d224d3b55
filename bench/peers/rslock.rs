use std::time::Duration;

use rslock::{LockError, LockManager};

use crate::error::Fallible;
use crate::worker::{Handle, Task};

const TTL: Duration = Duration::from_secs(30);

/// A lock of rslock; all waiters share its manager, as its manual has it.
pub(super) struct Rslock {
    manager: LockManager,
    key: Vec<u8>,
    /// Whether an acquire repeats the attempts that the manager makes until one succeeds.
    is_patient: bool,
}

pub(super) fn locks(task: &Task, is_patient: bool) -> Vec<Rslock> {
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
