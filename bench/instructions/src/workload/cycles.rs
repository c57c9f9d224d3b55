use leasehold::{Client, Lock, blocking};
use leasehold_redis::RedisStore;

use super::text;

/// Acquires and releases free locks, `width` of them at a time, each a lock of its own.
pub(super) async fn run(client: Client, width: usize, cycles: usize) -> Result<(), String> {
    let tasks: Vec<_> = (0..width)
        .map(|at| tokio::spawn(go_round(client.lock(format!("free/{at}")), cycles / width)))
        .collect();
    for task in tasks {
        task.await.map_err(|error| error.to_string())??;
    }
    Ok(())
}

async fn go_round(lock: Lock, cycles: usize) -> Result<(), String> {
    for _ in 0..cycles {
        let guard = lock.acquire().await.map_err(text)?;
        guard.release().await.map_err(text)?;
    }
    Ok(())
}

/// Acquires and releases a free lock from a thread that is not the client's own.
pub(super) fn from_another_thread(cycles: usize, urls: &[String]) -> Result<(), String> {
    let client = blocking::Client::new(RedisStore::new(urls).map_err(text)?);
    let lock = client.lock("free");
    for _ in 0..cycles {
        let guard = lock.acquire().map_err(text)?;
        guard.release().map_err(text)?;
    }
    Ok(())
}
