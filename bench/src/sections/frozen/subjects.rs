use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use futures_util::stream::{FuturesUnordered, StreamExt as _};
use leasehold::{Client, Guard, Lock};
use leasehold_redis::RedisStore;
use redis::aio::MultiplexedConnection;
use redis::{RedisError, Script};
use rslock::LockManager;

use super::worker::WorkerTask;

const TTL: Duration = Duration::from_secs(30);

/// Locks on five servers. Each task uses its own lock, so that all are free.
pub(super) trait Subject: Clone + Send + Sync + 'static {
    type Held: Send;

    fn acquire(&self, task: usize) -> impl Future<Output = Result<Self::Held, String>> + Send;

    fn release(&self, held: Self::Held) -> impl Future<Output = Result<(), String>> + Send;
}

#[derive(Clone)]
pub(super) struct Leasehold(Arc<Vec<Lock>>);

impl Leasehold {
    pub(super) async fn new(task: &WorkerTask) -> Result<Self, String> {
        let store = RedisStore::new(&task.urls).map_err(text)?;
        // The servers are new, so no lock was ever held on them.
        store.init().await.map_err(text)?;
        let client = Client::new(store);
        let locks = (0..task.in_flight).map(|task| client.lock(key(task)).ttl(TTL));
        Ok(Self(Arc::new(locks.collect())))
    }
}

impl Subject for Leasehold {
    type Held = Guard;

    async fn acquire(&self, task: usize) -> Result<Guard, String> {
        self.0[task].acquire().await.map_err(text)
    }

    async fn release(&self, held: Guard) -> Result<(), String> {
        held.release().await.map(drop).map_err(text)
    }
}

/// What a majority of answers costs with the client library alone: it sends each command to all servers
/// at once, awaits three answers, and ignores the others.
#[derive(Clone)]
pub(super) struct Bare {
    connections: Arc<Vec<MultiplexedConnection>>,
    free: Arc<Script>,
}

const FREE: &str = "if redis.call('GET', KEYS[1]) == ARGV[1] then \
                    return redis.call('DEL', KEYS[1]) end return 0";
const OWNER: &str = "0123456789abcdef.0123456789abcdef0123456789abcdef";

impl Bare {
    pub(super) async fn new(task: &WorkerTask) -> Result<Self, String> {
        let mut connections = Vec::new();
        for url in &task.urls {
            let client = redis::Client::open(url.as_str()).map_err(failed)?;
            let connection = client.get_multiplexed_async_connection().await;
            connections.push(connection.map_err(failed)?);
        }
        Ok(Self {
            connections: Arc::new(connections),
            free: Arc::new(Script::new(FREE)),
        })
    }

    /// Waits until a majority did it, or no longer can.
    async fn majority<F>(&self, ask: impl Fn(MultiplexedConnection) -> F) -> Result<(), String>
    where
        F: Future<Output = Result<bool, RedisError>>,
    {
        let asked = self.connections.iter().cloned().map(ask);
        let mut answers: FuturesUnordered<F> = asked.collect();
        let (mut done, mut why) = (0, "no majority".to_owned());
        while let Some(answer) = answers.next().await {
            match answer {
                Ok(true) => done += 1,
                Ok(false) => {}
                Err(error) => why = failed(error),
            }
            if done > self.connections.len() / 2 {
                return Ok(());
            }
        }
        Err(why)
    }
}

impl Subject for Bare {
    type Held = usize;

    async fn acquire(&self, task: usize) -> Result<usize, String> {
        let mut set = redis::cmd("SET");
        set.arg(key(task)).arg(OWNER).arg("NX").arg("PX");
        set.arg(TTL.as_secs() * 1000);
        let set = &set;
        let ask = |mut connection| async move {
            let taken: Option<String> = set.query_async(&mut connection).await?;
            Ok(taken.is_some())
        };
        self.majority(ask).await.map(|()| task)
    }

    async fn release(&self, task: usize) -> Result<(), String> {
        let mut free = self.free.key(key(task));
        free.arg(OWNER);
        let free = &free;
        let ask = |mut connection| async move {
            let freed: usize = free.invoke_async(&mut connection).await?;
            Ok(freed == 1)
        };
        self.majority(ask).await
    }
}

#[derive(Clone)]
pub(super) struct Rslock(LockManager);

impl Rslock {
    pub(super) fn new(task: &WorkerTask) -> Self {
        Self(LockManager::new(task.urls.clone()))
    }
}

impl Subject for Rslock {
    type Held = rslock::Lock;

    async fn acquire(&self, task: usize) -> Result<rslock::Lock, String> {
        let acquired = self.0.lock(key(task).as_bytes(), TTL).await;
        acquired.map_err(|error| error.to_string())
    }

    async fn release(&self, held: rslock::Lock) -> Result<(), String> {
        self.0.unlock(&held).await;
        Ok(())
    }
}

fn key(task: usize) -> String {
    format!("frozen/{task}")
}

fn text(error: leasehold::Error) -> String {
    error.to_string()
}

fn failed(error: RedisError) -> String {
    error.to_string()
}
