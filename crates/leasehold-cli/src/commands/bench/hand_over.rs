use std::time::Duration;

use leasehold::clock::{Clock as _, SystemClock};
use leasehold::store::FairnessOrder;

use super::cycles::{lock, release};
use super::plan::{Part, Plan};
use super::statistics::Spread;
use crate::output::failure::Failure;
use crate::output::waiter_text;
use crate::store::client::OwnClient;

/// Hands one lock back and forth between two clients. Measures the time from the call that releases it
/// until the other client has it, if that client was waiting by then; `None` if it never was. `acquire` is
/// the time that an attempt takes.
pub(super) async fn hand_over(
    clients: &[OwnClient; 2],
    plan: &Plan,
    acquire: Spread,
) -> Result<Option<Spread>, Failure> {
    let name = plan.handed();
    let locks = [0, 1].map(|client: usize| lock(&clients[client], &name, plan));
    let end = plan.end(Part::HandOver);
    let pause = (acquire.p99 * 4).clamp(PAUSE_MIN, PAUSE_MAX);
    let mut samples = Vec::new();
    let mut holder = 0;
    let mut guard = locks[holder].acquire().await?;
    loop {
        let next = 1 - holder;
        let giving = async {
            SystemClock.sleep_until(SystemClock.now() + pause).await;
            let is_waited_for = is_waiting(&clients[next], &name).await?;
            let released = SystemClock.now();
            release(guard).await?;
            Ok::<_, Failure>((is_waited_for, released))
        };
        let taking = async {
            let guard = locks[next].acquire().await?;
            Ok((guard, SystemClock.now()))
        };
        // In this order, the client asks after the holder has begun to wait for that.
        let ((is_waited_for, released), (taken, held)) = tokio::try_join!(giving, taking)?;
        if is_waited_for {
            samples.push(held.since(released));
        }
        (guard, holder) = (taken, next);
        if held >= end {
            break;
        }
    }
    release(guard).await?;
    Ok(Spread::of(samples))
}

/// Waits until `client` is in the queue for `name`, and returns whether it is. A store without a queue
/// cannot tell; the pause before has to be enough.
async fn is_waiting(client: &OwnClient, name: &str) -> Result<bool, Failure> {
    if client.guarantees().order == FairnessOrder::Unordered {
        return Ok(true);
    }
    let end = SystemClock.now() + QUEUED_MAX;
    loop {
        let waiters = client.waiters(name).await?;
        if waiter_text::place_of(client.id(), &waiters).is_some() {
            return Ok(true);
        }
        let now = SystemClock.now();
        if now >= end {
            return Ok(false);
        }
        SystemClock.sleep_until(now + PAUSE_MIN).await;
    }
}

/// The minimum hold time, so that the other client is queued at all members by then.
const PAUSE_MIN: Duration = Duration::from_millis(4);
const PAUSE_MAX: Duration = Duration::from_millis(100);
const QUEUED_MAX: Duration = Duration::from_millis(500);
