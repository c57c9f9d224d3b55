//! How long an acquisition continues, and what ends it.

use std::future::Future;
use std::time::Duration;

use crate::env::clock::BootInstant;
use crate::guard::Guard;
use crate::lease::ClientContext;
use crate::runtime::background;
use crate::types::{Error, Owner};

/// How long an acquisition continues.
#[derive(Clone, Copy, Debug)]
pub(crate) enum WaitPolicy {
    /// For one attempt; busy is an answer.
    OneAttempt,
    /// Until granted, or for at most this long.
    Wait(Option<Duration>),
}

/// The result for the caller: `None` if another owner holds the lock.
pub(crate) type Answer = Result<Option<Guard>, Error>;

/// The state that all attempts of an acquisition share.
pub(crate) struct Limits {
    /// The owner of the next attempt. It stays the same as long as the wait is in a queue of the store, except
    /// after an attempt whose effect is unknown.
    pub(crate) owner: Owner,
    pub(crate) began: BootInstant,
    /// The end of the caller's wait.
    pub(crate) end: Option<BootInstant>,
    /// When the last attempt was granted, if the clock was read then.
    pub(crate) granted: Option<BootInstant>,
}

/// How long to ask a store that has never answered this client, because its address may be wrong: one
/// TTL, and one TTL from when its members say that they will have a vote. Only the first such answer
/// extends the wait, so that a member that never recovers cannot extend it without end.
pub(crate) struct OutageDeadline {
    pub(crate) end: BootInstant,
    was_told: bool,
}

impl OutageDeadline {
    pub(crate) fn new(end: BootInstant) -> Self {
        Self {
            end,
            was_told: false,
        }
    }

    pub(crate) fn learn(&mut self, error: &Error, one_ttl_from_now: BootInstant) {
        if let Some(after) = error.eligible_after().filter(|_| !self.was_told) {
            self.was_told = true;
            self.end = self.end.max(one_ttl_from_now + after);
        }
    }
}

impl Limits {
    /// Runs `work` until it ends, the caller's wait ends, or the caller is gone. With a wait of zero, one
    /// attempt takes as long as it needs.
    pub(crate) async fn bound<F: Future>(
        &self,
        context: &ClientContext,
        work: F,
    ) -> Option<F::Output> {
        let end = async {
            match self.end.filter(|end| *end > self.began) {
                Some(end) => context.env.clock.sleep_until(end).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            output = work => Some(output),
            () = background::detached() => None,
            () = end => None,
        }
    }
}
