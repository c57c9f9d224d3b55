use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, OnceLock};
use std::time::Duration;

use crate::env::clock::BootInstant;
use crate::env::locked;
use crate::lease::ClientContext;
use crate::store::{Listener, Report};
use crate::telemetry::LockEvent;
use crate::types::Key;

/// What the store has reported to one call of `acquire` so far.
pub(super) struct CallState<'a> {
    context: &'a ClientContext,
    key: &'a Key,
    ttl: Duration,
    /// Whether the call waits: then the streams of events hear why.
    waits: bool,
    /// Why it waits, as the streams have heard it last.
    reason: Mutex<Option<WaitReason>>,
    was_refused: AtomicBool,
    /// Only the first answer extends the wait, so that a member that never recovers cannot extend it without end.
    outage_end: OnceLock<BootInstant>,
}

/// What must change of a report before it is heard again.
#[derive(PartialEq, Eq)]
enum WaitReason {
    Busy,
    Failed(String),
}

impl<'a> CallState<'a> {
    pub(super) fn new(
        context: &'a ClientContext,
        key: &'a Key,
        ttl: Duration,
        waits: bool,
    ) -> Self {
        Self {
            context,
            key,
            ttl,
            waits,
            reason: Mutex::default(),
            was_refused: AtomicBool::new(false),
            outage_end: OnceLock::new(),
        }
    }

    /// Returns whether the lock was busy.
    pub(super) fn was_refused(&self) -> bool {
        self.was_refused.load(Ordering::Relaxed)
    }

    /// Tells the streams of events why the call waits, if that has changed.
    fn tell(&self, report: &Report) {
        let events = &self.context.metrics.events;
        let reason = match report {
            _ if !self.waits || !events.is_read() => return,
            Report::Busy(_) => WaitReason::Busy,
            Report::Unavailable(error) if !error.is_retryable() => return,
            Report::Unavailable(error) => WaitReason::Failed(error.reason().to_owned()),
        };
        let mut last = locked(&self.reason);
        if last.as_ref() != Some(&reason) {
            *last = Some(reason);
            events.send(|| LockEvent::Waiting {
                key: self.key.clone(),
                reason: match report.clone() {
                    Report::Unavailable(error) => Report::Unavailable(self.context.named(error)),
                    busy @ Report::Busy(_) => busy,
                },
            });
        }
    }

    /// Returns how long to ask a store that has never answered, if its members said when they will have a vote: one
    /// TTL from then on.
    pub(super) fn outage_end(&self) -> Option<BootInstant> {
        self.outage_end.get().copied()
    }
}

impl Listener for CallState<'_> {
    fn heard(&self, report: &Report) {
        self.tell(report);
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
