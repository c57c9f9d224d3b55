use leasehold::store::Report;
use leasehold::telemetry::{LockEvent, LockEvents};

/// Resolves once a call of the client says that it waits for the holder of a lock. From then on, the client watches whether the call
/// is polled.
///
/// # Panics
///
/// If the client ends before.
pub async fn until_waiting(events: &mut LockEvents) {
    loop {
        let event = events.next().await.expect("a client that has not ended");
        if let LockEvent::Waiting { reason, .. } = event
            && matches!(reason, Report::Busy(_))
        {
            return;
        }
    }
}
