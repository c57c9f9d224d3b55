//! A service that works under a lock until it is asked to stop. The next one then starts at once.
#![expect(clippy::print_stdout, reason = "it shows what happens")]

use std::future::{Future, pending};
use std::time::Duration;

use leasehold::{Client, Error, Guard, memory::MemoryStore};

#[tokio::main]
pub(crate) async fn main() -> Result<(), Error> {
    let store = MemoryStore::new();
    let locks = Client::new(store.clone());
    // A service waits for a signal: tokio::signal::ctrl_c(), or SIGTERM.
    let stop = tokio::task::yield_now();
    serve(&locks, stop).await?;

    let next = Client::new(store);
    let free = next.lock("consumer").try_acquire().await?;
    assert!(
        free.is_some(),
        "the lock is released before the process ends"
    );
    Ok(())
}

async fn serve(locks: &Client, stop: impl Future<Output = ()>) -> Result<(), Error> {
    let guard = locks.lock("consumer").acquire().await?;
    tokio::select! {
        worked = guard.run(async |guard| consume(guard).await) => worked?,
        // Drops the work, and then releases the lock in the background.
        () = stop => println!("asked to stop"),
    }
    // Ends all that still waits or holds, and waits until the store knows. If it does not answer in time, the error says so,
    // and the lock is free after its TTL.
    locks.clone().close(Duration::from_secs(5)).await
}

async fn consume(guard: &Guard) {
    println!("consuming with fence {}", guard.fence());
    pending::<()>().await;
}
