use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use super::result::OnceResult;
use super::state::{OnceState, PayloadHash};
use crate::guard::Guard;
use crate::store::RECORD_MEMORY;
use crate::types::{Error, ErrorKind, Fence};

/// The right to run a request, and to commit its result.
///
/// If dropped, it releases the lock and leaves the request begun: the next caller runs it.
#[must_use = "if unused the request is left to the next caller"]
#[clippy::has_significant_drop]
pub struct OnceRun {
    payload: PayloadHash,
    retention: Duration,
    guard: Guard,
}

impl OnceRun {
    pub(crate) fn new(payload: PayloadHash, retention: Duration, guard: Guard) -> Self {
        Self {
            payload,
            retention,
            guard,
        }
    }

    /// Returns the guard of the lock under which the request runs: for its fence, and to check before each
    /// step that the lock is held.
    pub fn guard(&self) -> &Guard {
        &self.guard
    }

    /// Commits the result, and releases the lock. Commits even if the guard is lost: the result counts
    /// unless another attempt has begun in the meantime. While the store does not decide, it retries until
    /// the guard's deadline.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Fenced`] if another attempt has begun. Unless the error has
    /// [`Effect::Unknown`](crate::Effect::Unknown), nothing was committed, and nothing will be.
    /// [`ErrorKind::InvalidInput`] for a result longer than [`Once::RESULT_MAX`](crate::once::Once::RESULT_MAX); nothing was committed.
    /// The error has [`Effect::Unknown`](crate::Effect::Unknown) if the store did not decide: the result
    /// may have been committed, and the next caller finds out.
    ///
    /// # Cancel safety
    ///
    /// Once polled, dropping the future only discards the answer.
    pub async fn commit(self, result: impl AsRef<[u8]>) -> Result<OnceResult, Error> {
        let result = result.as_ref();
        if result.len() > OnceState::RESULT_MAX {
            let text = format!(
                "the result has {} bytes; the maximum is {}",
                result.len(),
                OnceState::RESULT_MAX
            );
            let error = Error::new(ErrorKind::InvalidInput, text).with_key(self.guard.key());
            return Err(error);
        }
        let (result, fence): (Arc<[u8]>, Fence) = (result.into(), self.guard.fence());
        let done = OnceState::Done {
            payload: self.payload,
            fence,
            result: Arc::clone(&result),
        };
        let record = self.guard.record().lasting(self.retention);
        record.write(done.encode(), self.retention).await?;
        self.guard.release_quietly().await;
        Ok(OnceResult::new(result, fence, self.retention))
    }

    /// Withdraws the request, as if it had never been made, also for callers with another payload, and
    /// releases the lock.
    ///
    /// # Errors
    ///
    /// As [`commit`](Self::commit); the next caller then finds that the request has begun, and runs it.
    ///
    /// # Cancel safety
    ///
    /// Once polled, dropping the future only discards the answer.
    pub async fn give_up(self) -> Result<(), Error> {
        let record = self.guard.record().lasting(self.retention);
        // Renewed as long as any value that it may cover at a member, such as a result that few members
        // received.
        let kept_for = self.retention.max(RECORD_MEMORY);
        record.write(OnceState::Vacant.encode(), kept_for).await?;
        self.guard.release_quietly().await;
        Ok(())
    }
}

impl fmt::Debug for OnceRun {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OnceRun")
            .field("guard", &self.guard)
            .finish_non_exhaustive()
    }
}
