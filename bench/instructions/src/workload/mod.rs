use std::sync::Arc;

use leasehold::store::Store;
use leasehold::{Client, Error, MemoryStore};
use leasehold_redis::RedisStore;

mod bare;
mod cycles;
mod hand_over;
mod renewal;

/// The first argument of a process that is counted.
pub const VERB: &str = "workload";

/// Takes `NAME CYCLES URL...`, and runs that many cycles of the path and nothing else.
///
/// Uses one thread if the interface allows it, so that the same instructions run in the same order.
///
/// # Errors
///
/// Nonsense, or a lock that could not be taken or was lost.
pub fn run(arguments: &[String]) -> Result<(), String> {
    let [name, cycles, urls @ ..] = arguments else {
        return Err("a workload needs a path and a number of cycles".into());
    };
    let cycles = cycles
        .parse()
        .map_err(|error| format!("{cycles:?}: {error}"))?;
    if name == "thread" {
        return cycles::from_another_thread(cycles, urls);
    }
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    let runtime = runtime.map_err(|error| error.to_string())?;
    runtime.block_on(async {
        match name.as_str() {
            "memory" => cycles::run(client(MemoryStore::new()), 1, cycles).await,
            "redis" | "redis-5" => cycles::run(client(of_redis(urls).await?), 1, cycles).await,
            "redis-64" | "redis-5-64" => {
                cycles::run(client(of_redis(urls).await?), 64, cycles).await
            }
            "renewal" => renewal::run(&client(of_redis(urls).await?), cycles).await,
            "hand-over" => {
                let clients = [client(of_redis(urls).await?), client(of_redis(urls).await?)];
                hand_over::run(clients, cycles).await
            }
            "raw-redis" => bare::run(urls, 1, cycles).await,
            "raw-redis-64" | "raw-redis-5-64" => bare::run(urls, 64, cycles).await,
            _ => Err(format!("there is no workload {name:?}")),
        }
    })
}

fn client(store: impl Into<Arc<dyn Store>>) -> Client {
    Client::builder(store).on_current_runtime().build()
}

async fn of_redis(urls: &[String]) -> Result<RedisStore, String> {
    let store = RedisStore::new(urls).map_err(text)?;
    if urls.len() > 1 {
        // The servers are new, so no lock was ever held on them.
        store.init().await.map_err(text)?;
    }
    Ok(store)
}

fn text(error: Error) -> String {
    error.to_string()
}
