//! How long an acquisition goes on, and what ends it.

use std::convert::Infallible;
use std::future::Future;
use std::time::Duration;

use tokio::sync::oneshot;
use tokio::sync::oneshot::error::TryRecvError;

use crate::client_context::ClientContext;
use crate::clock::BootInstant;
use crate::error::Error;
use crate::guard::Guard;
use crate::owner::Owner;

/// How long an acquisition goes on.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Patience {
    /// Busy is the answer.
    OneAttempt,
    /// Until granted, or for so long.
    Wait(Option<Duration>),
}

/// What a caller is told: `None` if somebody else holds the lock.
pub(crate) type Answer = Result<Option<Guard>, Error>;

/// What holds for all attempts of an acquisition.
pub(crate) struct Limits {
    /// The owner of the next attempt: the same for all, but after one whose effect is unknown.
    pub(crate) owner: Owner,
    /// Resolves when the caller has dropped its future.
    pub(crate) gone: oneshot::Receiver<Infallible>,
    pub(crate) began: BootInstant,
    /// The end of the caller's wait.
    pub(crate) end: Option<BootInstant>,
    /// When the last attempt was granted, where that was looked at.
    pub(crate) granted: Option<BootInstant>,
}

/// How long a store is worth asking that has never answered this client, and whose address may be wrong: one
/// TTL, and one TTL from when its members say that they will count. Only the first such answer extends the wait, so
/// that a member that never recovers cannot extend it without end.
pub(crate) struct Hope {
    pub(crate) end: BootInstant,
    was_told: bool,
}

impl Hope {
    pub(crate) fn new(end: BootInstant) -> Self {
        Self {
            end,
            was_told: false,
        }
    }

    pub(crate) fn learn(&mut self, error: &Error, one_ttl_from_now: BootInstant) {
        if let Some(after) = error.counts_again().filter(|_| !self.was_told) {
            self.was_told = true;
            self.end = self.end.max(one_ttl_from_now + after);
        }
    }
}

impl Limits {
    /// Returns whether the caller has dropped its future.
    pub(crate) fn is_caller_gone(&mut self) -> bool {
        matches!(self.gone.try_recv(), Err(TryRecvError::Closed))
    }

    /// Runs `work` until it ends, the caller's wait is over, or the caller is gone. A wait of zero lets one
    /// attempt take its time.
    pub(crate) async fn bound<F: Future>(
        &mut self,
        context: &ClientContext,
        work: F,
    ) -> Option<F::Output> {
        let end = async {
            match self.end.filter(|end| *end > self.began) {
                Some(end) => context.ambient.clock.sleep_until(end).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            output = work => Some(output),
            _ = &mut self.gone => None,
            () = end => None,
        }
    }
}
