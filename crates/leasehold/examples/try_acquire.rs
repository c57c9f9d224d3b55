//! A job that a machine skips if another one is at it. A busy lock is no error.
#![expect(clippy::print_stdout, reason = "it shows what happens")]

use leasehold::{Client, Error, memory::MemoryStore};

#[tokio::main]
pub(crate) async fn main() -> Result<(), Error> {
    let store = MemoryStore::new();
    let (ours, theirs) = (Client::new(store.clone()), Client::new(store));

    let guard = theirs.lock("nightly-report").acquire().await?;
    assert!(!report(&ours).await?, "another machine writes the report");
    guard.release().await?;
    assert!(report(&ours).await?);
    Ok(())
}

/// Writes the report, unless another machine is writing it.
async fn report(locks: &Client) -> Result<bool, Error> {
    let Some(guard) = locks.lock("nightly-report").try_acquire().await? else {
        println!("another machine writes the report");
        return Ok(false);
    };
    guard
        .run(async |_| println!("the report is written"))
        .await?;
    Ok(true)
}
