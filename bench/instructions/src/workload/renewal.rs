use std::time::Duration;

use leasehold::clock::{BootInstant, Clock, SystemClock};
use leasehold::{Client, Guard};

use crate::exit::Fallible;

const HELD: usize = 1000;

/// Past a third of the TTL of 30 s, when all are due, and far before the deadline.
const STEP: Duration = Duration::from_secs(12);

/// Holds 1,000 locks, and lets time pass until `cycles` renewals are through.
pub(super) async fn run(client: &Client, cycles: usize) -> Fallible {
    let mut guards = Vec::new();
    for at in 0..HELD {
        let lock = client.lock(format!("held/{at}"));
        guards.push(lock.acquire().await?);
    }
    for _ in 0..cycles / HELD {
        let renewed_after = SystemClock.now();
        // The process takes the machine to have slept.
        SystemClock.was_paused(STEP);
        while !guards.iter().all(|guard| is_renewed(guard, renewed_after)) {
            if let Some(lost) = guards.iter().find(|guard| !guard.is_valid()) {
                return Err(format!("{lost:?}").into());
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }
    Ok(())
}

/// By a request that was sent later: it moved the deadline by more than half a step.
fn is_renewed(guard: &Guard, after: BootInstant) -> bool {
    let deadline = guard.deadline();
    deadline.is_some_and(|deadline| deadline.since(after) > STEP / 2 + Duration::from_secs(27))
}
