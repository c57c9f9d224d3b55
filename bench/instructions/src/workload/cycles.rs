use leasehold::{Client, Lock, blocking};
use leasehold_redis::RedisStore;

use crate::exit::Fallible;

/// Acquires and releases a free lock, one at a time.
pub(super) async fn run(client: Client, cycles: usize) -> Fallible {
    let lock = client.lock("free");
    for _ in 0..cycles {
        lock.acquire().await?.release().await?;
    }
    Ok(())
}

/// Acquires and releases free locks, `width` of them at a time, each a lock of its own.
pub(super) async fn run_at_once(client: Client, width: usize, cycles: usize) -> Fallible {
    let tasks: Vec<_> = (0..width)
        .map(|at| tokio::spawn(go_round(client.lock(format!("free/{at}")), cycles / width)))
        .collect();
    for task in tasks {
        task.await??;
    }
    Ok(())
}

async fn go_round(lock: Lock, cycles: usize) -> Fallible {
    for _ in 0..cycles {
        lock.acquire().await?.release().await?;
    }
    Ok(())
}

/// Acquires and releases a free lock from a thread that is not the client's own.
pub(super) fn from_another_thread(cycles: usize, urls: &[String]) -> Fallible {
    let client = blocking::Client::new(RedisStore::new(urls)?);
    let lock = client.lock("free");
    for _ in 0..cycles {
        let guard = lock.acquire()?;
        guard.release()?;
    }
    Ok(())
}
