use std::sync::Arc;

use leasehold::Client;
use leasehold::member::MemberHealth;
use leasehold::memory::MemoryStore;
use leasehold::store::Store;
use leasehold_redis::RedisStore;

use crate::exit::Fallible;

mod bare;
mod cycles;
mod hand_over;
mod renewal;

/// The first argument of a process that is counted.
pub const VERB: &str = "workload";

/// A script that deletes a key if the caller holds it: what the release of any lock library amounts to.
pub const FREE: &str = "if redis.call('GET', KEYS[1]) == ARGV[1] then \
                        return redis.call('DEL', KEYS[1]) end return 0";

/// Takes `NAME CYCLES URL...`, and runs that many cycles of the path and nothing else.
///
/// Uses one thread if the interface allows it, so that the same instructions run in the same order.
///
/// # Errors
///
/// Nonsense, or a lock that could not be taken or was lost.
pub fn run(arguments: &[String]) -> Fallible {
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
        .build()?;
    runtime.block_on(async {
        match name.as_str() {
            "memory" => cycles::run(client(MemoryStore::new()), cycles).await,
            "redis" | "redis-5" => cycles::run(of_redis(urls).await?, cycles).await,
            "redis-64" | "redis-5-64" => {
                cycles::run_at_once(of_redis(urls).await?, 64, cycles).await
            }
            "renewal" => renewal::run(&of_redis(urls).await?, cycles).await,
            "hand-over" => {
                let clients = [of_redis(urls).await?, of_redis(urls).await?];
                hand_over::run(clients, cycles).await
            }
            "raw-redis" => bare::run(urls, 1, cycles).await,
            "raw-redis-64" | "raw-redis-5-64" => bare::run(urls, 64, cycles).await,
            _ => Err(format!("there is no workload {name:?}").into()),
        }
    })
}

fn client(store: impl Into<Arc<dyn Store>>) -> Client {
    Client::builder(store).on_current_runtime().build()
}

/// Returns a client whose servers all have a vote: it asks differently before.
async fn of_redis(urls: &[String]) -> Fallible<Client> {
    let store = RedisStore::new(urls)?;
    if urls.len() > 1 {
        // The servers are new, so no lock was ever held on them.
        store.init().await?;
    }
    let client = client(store);
    client
        .lock("opens the connections")
        .acquire()
        .await?
        .release()
        .await?;
    for _ in 0..HEALTH_CHECKS {
        let health = client.health().await?;
        let has_vote = |it: &MemberHealth| it.status.is_ok() && it.untrusted_reason.is_none();
        if health.iter().all(has_vote) {
            return Ok(client);
        }
    }
    Err("a server has no vote".into())
}

/// A health check takes up to a second if a server does not answer.
const HEALTH_CHECKS: u32 = 30;
