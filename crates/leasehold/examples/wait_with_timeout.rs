//! A request that waits for a lock for a limited time, and then says who has it.
#![expect(clippy::print_stdout, reason = "it shows what happens")]

use std::time::Duration;

use leasehold::{Client, Error, memory::MemoryStore};

#[tokio::main]
pub(crate) async fn main() -> Result<(), Error> {
    let store = MemoryStore::new();
    let (ours, theirs) = (Client::new(store.clone()), Client::new(store));
    let guard = theirs.lock("account/17").acquire().await?;

    let lock = ours.lock("account/17").wait(Duration::from_millis(100));
    let error = lock.acquire().await.expect_err("the other client has it");
    assert!(error.is_busy());
    assert_eq!(error.holder(), Some(theirs.id()));
    println!("try again later: {error}");

    // The waiter is served as soon as the holder releases the lock.
    let lock = ours.lock("account/17").wait(Duration::from_secs(30));
    let (ours, released) = tokio::join!(lock.acquire(), guard.release());
    released?;
    println!("held with fence {}", ours?.fence());
    Ok(())
}
