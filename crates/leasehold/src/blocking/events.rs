use crate::runtime::background::block_on;
use crate::telemetry::LockEvent;

/// A blocking [`crate::telemetry::LockEvents`]: an iterator that waits for each event.
#[derive(Debug)]
pub struct LockEvents(pub(super) crate::telemetry::LockEvents);

impl Iterator for LockEvents {
    type Item = LockEvent;

    fn next(&mut self) -> Option<LockEvent> {
        block_on(self.0.next())
    }
}
