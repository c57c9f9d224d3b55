use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::env::clock::BootInstant;
use crate::lease::ClientContext;
use crate::store::{Listener, Report};

/// What the store has reported to one call of `acquire` so far.
pub(super) struct CallState<'a> {
    context: &'a ClientContext,
    ttl: Duration,
    was_refused: AtomicBool,
    /// Only the first answer extends the wait, so that a member that never recovers cannot extend it without end.
    outage_end: OnceLock<BootInstant>,
}

impl<'a> CallState<'a> {
    pub(super) fn new(context: &'a ClientContext, ttl: Duration) -> Self {
        Self {
            context,
            ttl,
            was_refused: AtomicBool::new(false),
            outage_end: OnceLock::new(),
        }
    }

    /// Returns whether the lock was busy.
    pub(super) fn was_refused(&self) -> bool {
        self.was_refused.load(Ordering::Relaxed)
    }

    /// Returns how long to ask a store that has never answered, if its members said when they will have a vote: one
    /// TTL from then on.
    pub(super) fn outage_end(&self) -> Option<BootInstant> {
        self.outage_end.get().copied()
    }
}

impl Listener for CallState<'_> {
    fn heard(&self, report: &Report) {
        match report {
            Report::Busy(_) => {
                if !self.was_refused.swap(true, Ordering::Relaxed) {
                    self.context.metrics.contended();
                }
                self.context.answered();
            }
            Report::Unavailable(error) => {
                if error.is_not_ready() {
                    self.context.answered();
                }
                if let Some(after) = error.eligible_after() {
                    let end = self.context.now() + self.ttl + after;
                    self.outage_end.get_or_init(|| end);
                }
            }
        }
    }
}
