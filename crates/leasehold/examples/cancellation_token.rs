//! The token that stops a service also stops a wait for a lock, and the loss of the lock cancels the work.
#![expect(clippy::print_stdout, reason = "it shows what happens")]

use std::pin::pin;
use std::time::Duration;

use leasehold::{Client, Error, memory::MemoryStore};
use tokio_util::sync::CancellationToken;

#[tokio::main]
pub(crate) async fn main() -> Result<(), Error> {
    let locks = Client::new(MemoryStore::new());
    let stop = CancellationToken::new();

    // The lock is lost after its longest hold. That cancels the work, but not the service.
    import(&locks, &stop).await?;
    assert!(!stop.is_cancelled());

    // The token of the service ends the wait.
    let busy = locks.lock("import").acquire().await?;
    let (stopped, ()) = tokio::join!(import(&locks, &stop), async { stop.cancel() });
    stopped?;
    busy.release().await.map(drop)
}

/// Imports under a lock, until `stop` is cancelled or the lock is lost.
async fn import(locks: &Client, stop: &CancellationToken) -> Result<(), Error> {
    // If the token is cancelled, the client leaves the queue.
    let lock = locks.lock("import").max_hold(Duration::from_millis(50));
    let Some(guard) = stop.run_until_cancelled(lock.acquire()).await else {
        println!("stopped while it waited");
        return Ok(());
    };
    let guard = guard?;

    // The stop of the service cancels this token, and so does the loss of the lock.
    let working = stop.child_token();
    let mut work = pin!(work(working.clone()));
    tokio::select! {
        () = &mut work => {}
        reason = guard.lost() => {
            println!("the lock is lost: {reason}");
            working.cancel();
            work.await; // it ends between two steps
        }
    }
    guard.release().await.map(drop)
}

/// May start tasks of its own, and gives them the token.
async fn work(working: CancellationToken) {
    while !working.is_cancelled() {
        tokio::task::yield_now().await; // the next step
    }
}
