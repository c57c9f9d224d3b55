//! A service with several replicas: requests under a lock, one replica that plans, a job once a day, and a clean stop.
#![expect(clippy::print_stdout, reason = "it shows what happens")]

use std::convert::Infallible;
use std::time::Duration;

use axum::http::StatusCode;
use leasehold::{Client, Error, Guard, memory::MemoryStore};
use tokio_util::sync::CancellationToken;

#[tokio::main]
pub(crate) async fn main() -> Result<(), Error> {
    // A request never waits longer for its lock.
    let locks = Client::builder(MemoryStore::new())
        .wait(Duration::from_secs(3))
        .build();
    // A service cancels it at SIGTERM, and gives it to its HTTP server too:
    // axum::serve(listener, router).with_graceful_shutdown(stop.clone().cancelled_owned())
    let stop = CancellationToken::new();
    let requests = async {
        assert_eq!(pay(&locks, 7).await, StatusCode::OK);
        stop.cancel();
        Ok(())
    };
    tokio::try_join!(plan(&locks, &stop), requests)?;
    // Ends what still waits or holds, and waits until the store knows of all releases.
    locks.close(Duration::from_secs(5)).await
}

/// Handles a request. Two replicas never handle the same order at once.
async fn pay(locks: &Client, order: u64) -> StatusCode {
    let lock = locks.lock(format!("order/{order}"));
    let paid = async {
        let guard = lock.acquire().await?;
        guard.run(async |guard| charge(order, guard)).await
    };
    match paid.await {
        Ok(()) => StatusCode::OK,
        Err(error) if error.is_busy() => StatusCode::CONFLICT,
        Err(error) if error.is_unreachable() || error.is_lost() => StatusCode::SERVICE_UNAVAILABLE,
        Err(_) => StatusCode::INTERNAL_SERVER_ERROR,
    }
}

fn charge(order: u64, guard: &Guard) {
    println!("order {order} is charged with fence {}", guard.fence());
}

/// Plans on one replica, until the service stops. Another one takes over at once, or after the TTL if this one dies.
async fn plan(locks: &Client, stop: &CancellationToken) -> Result<(), Error> {
    let election = locks.election("planner");
    let led = election.lead(stop.cancelled(), async |_| {
        loop {
            // The next round tries again. A loss ends this loop by itself.
            if let Err(error) = nightly(locks).await {
                println!("not planned: {error}");
            }
            locks.pause(Duration::from_secs(60)).await?;
        }
    });
    led.await?.unwrap_or(Ok(()))
}

/// Does the job of this day, unless a replica has done it. The result is kept for 24 hours, so a replica whose clock is a
/// little late does not do it again.
async fn nightly(locks: &Client) -> Result<(), Error> {
    let day = locks.env().clock.wall().as_micros() / 86_400_000_000;
    let job = locks.once(format!("nightly/{day}"));
    let done = job
        .run(async |guard| Ok::<_, Infallible>(format!("with fence {}", guard.fence())))
        .await?;
    let Ok(result) = done;
    let result = String::from_utf8_lossy(&result.bytes);
    println!("the job of day {day} is done {result}");
    Ok(())
}
