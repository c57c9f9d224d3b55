//! A job that only one of many machines does at a time. The others wait for their turn.
#![expect(clippy::print_stdout, reason = "it shows what happens")]

use std::time::Duration;

use leasehold::{Client, Error, memory::MemoryStore};

#[tokio::main]
pub(crate) async fn main() -> Result<(), Error> {
    let locks = Client::new(MemoryStore::new()); // in a program, the store of all machines
    let (first, second) = tokio::join!(rebuild(&locks, "web-1"), rebuild(&locks, "web-2"));
    assert_ne!(first?, second?, "each grant has a fence of its own");
    Ok(())
}

/// Rebuilds the index, and returns the fence of the lock.
async fn rebuild(locks: &Client, machine: &str) -> Result<u64, Error> {
    let guard = locks.lock("rebuild-index").acquire().await?;
    // The body is cancelled if the lock is lost. The lock is released after the body.
    guard
        .run(async |guard| {
            for part in 1..=3 {
                // Before each step that must not happen without the lock.
                guard.ensure(Duration::from_secs(1))?;
                println!("{machine} writes part {part} with fence {}", guard.fence());
            }
            Ok(guard.fence().get())
        })
        .await?
}
