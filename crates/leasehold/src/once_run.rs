use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use crate::error::{Error, ErrorKind};
use crate::fence::Fence;
use crate::guard::Guard;
use crate::once::{Once, OnceResult};
use crate::once_state::{OnceState, PayloadHash};
use crate::once_steps::give_back;
use crate::records::RECORD_MEMORY;

/// The right to run a request, and to commit its result.
///
/// Dropped, it gives the lock back and leaves the request begun: the next caller runs it.
#[must_use = "if unused the request is left to the next caller"]
#[clippy::has_significant_drop]
pub struct OnceRun {
    payload: PayloadHash,
    retention: Duration,
    guard: Guard,
}

impl OnceRun {
    pub(crate) fn new(once: &Once, guard: Guard) -> Self {
        Self {
            payload: once.payload,
            retention: once.retention,
            guard,
        }
    }

    /// The lock under which the request is to be run: for its fence, and for making sure before each step
    /// that it is held.
    pub fn guard(&self) -> &Guard {
        &self.guard
    }

    /// Commits the result, and gives the lock back. Also where the guard is lost: unless somebody else has
    /// begun meanwhile, the result stands. A store that does not decide is asked again until the guard's
    /// deadline.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Fenced`] if somebody else has begun: unless the error has
    /// [`Effect::Unknown`](crate::Effect::Unknown) nothing was committed, and nothing will be.
    /// [`ErrorKind::InvalidInput`] for a result longer than [`Once::RESULT_MAX`]; nothing was committed.
    /// With [`Effect::Unknown`](crate::Effect::Unknown) if the store did not decide: the result may stand,
    /// and the next caller finds that out.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future changes nothing but that the answer is not heard, once it was polled.
    pub async fn commit(self, result: impl AsRef<[u8]>) -> Result<OnceResult, Error> {
        let result = result.as_ref();
        if result.len() > Once::RESULT_MAX {
            let text = format!(
                "the result has {} bytes; the maximum is {}",
                result.len(),
                Once::RESULT_MAX
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
        give_back(self.guard).await;
        Ok(OnceResult::new(result, fence, self.retention))
    }

    /// Gives the request back as if it had never been made, also to callers with another payload, and the
    /// lock with it.
    ///
    /// # Errors
    ///
    /// As [`commit`](Self::commit); the next caller then finds the request begun, and runs it.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future changes nothing but that the answer is not heard, once it was polled.
    pub async fn give_up(self) -> Result<(), Error> {
        let record = self.guard.record().lasting(self.retention);
        // As long as whatever it covers at a member: a result that few members heard of, perhaps.
        let kept_for = self.retention.max(RECORD_MEMORY);
        record.write(OnceState::Vacant.encode(), kept_for).await?;
        give_back(self.guard).await;
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
