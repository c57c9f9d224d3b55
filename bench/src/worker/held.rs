//! Takes many locks and then only holds them.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use leasehold::clock::{Clock as _, SystemClock};
use leasehold::store::locked;
use leasehold::{Client, Error, Guard};

use super::{Task, orders, say_json};
use crate::error::Fallible;
use crate::measure::machine::resident;
use crate::measure::record::{Renewals, Taken};

/// How many of the locks have their renewals watched: few, so that watching costs little.
const WATCHED: usize = 200;

/// The number of acquires in progress at a time.
const SIDE_BY_SIDE: usize = 64;

/// Obeys `hold`, and then `report`.
pub(super) async fn obey(client: &Client, task: &Task) -> Fallible {
    let mut orders = orders();
    orders.recv().await.ok_or("no order to hold")?;
    let own = std::process::id();
    let first = client.lock("first").acquire().await?;
    let resident_before = resident(own)?;
    let guards = take(client, task.waiters, task.hold).await?;
    say_json(&Taken {
        resident_before,
        resident: resident(own)?,
    })?;
    let seen = Arc::new(Mutex::new(Renewals {
        longest: 0.0,
        least_left: task.hold.as_secs_f64(),
        lost: 0,
    }));
    for guard in guards.iter().step_by((task.waiters / WATCHED).max(1)) {
        tokio::spawn(watch(guard.reenter(), Arc::clone(&seen)));
    }
    orders.recv().await.ok_or("no order to report")?;
    let mut renewals = locked(&seen).clone();
    renewals.lost = guards.iter().filter(|guard| !guard.is_valid()).count();
    say_json(&renewals)?;
    drop(first);
    // Releasing all locks would take as long as acquiring them.
    std::process::exit(0);
}

/// Obeys the same orders as a library that does not tell of its renewals. `taking` takes the locks.
pub(crate) async fn obey_as_peer<T>(taking: impl Future<Output = Fallible<T>>) -> Fallible {
    let mut orders = orders();
    orders.recv().await.ok_or("no order to hold")?;
    let own = std::process::id();
    let resident_before = resident(own)?;
    let held = taking.await?;
    say_json(&Taken {
        resident_before,
        resident: resident(own)?,
    })?;
    orders.recv().await.ok_or("no order to report")?;
    say_json(&Renewals::default())?;
    drop(held);
    std::process::exit(0);
}

async fn take(client: &Client, locks: usize, ttl: Duration) -> Fallible<Vec<Guard>> {
    let mut taking = Vec::new();
    for part in 0..SIDE_BY_SIDE {
        let client = client.clone();
        taking.push(tokio::spawn(async move {
            let mut guards = Vec::with_capacity(locks / SIDE_BY_SIDE + 1);
            for at in (part..locks).step_by(SIDE_BY_SIDE) {
                guards.push(client.lock(format!("held/{at}")).ttl(ttl).acquire().await?);
            }
            Ok::<Vec<Guard>, Error>(guards)
        }));
    }
    let mut guards = Vec::with_capacity(locks);
    for part in taking {
        guards.extend(part.await??);
    }
    Ok(guards)
}

/// Watches the renewals of one lock. Its deadline moves by the time between two requests.
async fn watch(guard: Guard, seen: Arc<Mutex<Renewals>>) {
    let Some(mut before) = guard.deadline() else {
        return;
    };
    while let Some(now) = guard.deadline_moved(Some(before)).await {
        if now == before {
            return;
        }
        let left = before.since(SystemClock.now()).as_secs_f64();
        let mut seen = locked(&seen);
        seen.longest = seen.longest.max(now.since(before).as_secs_f64());
        seen.least_left = seen.least_left.min(left);
        before = now;
    }
}
