//! A lock that passes from a process that ends to another one, as between two steps of a deployment.
#![expect(clippy::print_stdout, reason = "it shows what happens")]

use std::time::Duration;
use std::{fs, path::Path};

use leasehold::handle::Handle;
use leasehold::{Client, ReleaseOutcome, memory::MemoryStore};

type Outcome<T> = Result<T, Box<dyn std::error::Error>>;

#[tokio::main]
pub(crate) async fn main() -> Outcome<()> {
    let store = MemoryStore::new(); // in a program, a server that both processes reach
    let folder = tempfile::tempdir()?;
    let file = folder.path().join("lock-handle");
    first_process(Client::new(store.clone()), &file).await?;
    second_process(Client::new(store), &file).await
}

/// Takes the lock, and leaves it held. The TTL is how long the next process may take to start.
async fn first_process(locks: Client, file: &Path) -> Outcome<()> {
    let lock = locks.lock("deploy").ttl(Duration::from_secs(60));
    let guard = lock.acquire().await?;
    println!("deploying with fence {}", guard.fence());
    // The text is a secret: it is enough to release the lock.
    fs::write(file, guard.into_handle()?.reveal())?;
    Ok(())
}

async fn second_process(locks: Client, file: &Path) -> Outcome<()> {
    let handle: Handle = fs::read_to_string(file)?.parse()?;
    assert!(
        locks.lock("deploy").try_acquire().await?.is_none(),
        "it is held"
    );
    // From here on, this client renews the lease.
    let guard = locks.adopt(&handle).await?;
    println!("testing the deployment with fence {}", guard.fence());
    assert_eq!(guard.release().await?, ReleaseOutcome::Released);
    Ok(())
}
