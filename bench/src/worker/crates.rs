use std::sync::atomic::{AtomicU64, Ordering};

use futures_util::future::join_all;
use futures_util::stream::{FuturesUnordered, StreamExt};
use redis::aio::MultiplexedConnection;
use redis::{AsyncConnectionConfig, Client, Cmd, FromRedisValue};
use tokio::runtime;

use super::Handle;
use super::pipeline::FREE;
use super::task::Task;

/// A bare key over the client library that Leasehold and rslock use too: no fence, no clock, no
/// queue, no renewal, and no time limit for an answer.
pub(super) struct Key {
    nodes: Vec<MultiplexedConnection>,
    key: String,
    sha: String,
    await_all: bool,
}

/// Waits for the answers of all servers.
pub(super) async fn all(task: &Task) -> Result<Vec<Key>, String> {
    keys(task, true).await
}

/// Continues at a majority; the other answers arrive in the background.
pub(super) async fn majority(task: &Task) -> Result<Vec<Key>, String> {
    keys(task, false).await
}

async fn keys(task: &Task, await_all: bool) -> Result<Vec<Key>, String> {
    let (mut nodes, mut sha) = (Vec::new(), String::new());
    for url in task.urls() {
        let mut node = connect(&url).await?;
        let mut load = redis::cmd("SCRIPT");
        sha = query(load.arg("LOAD").arg(FREE), &mut node).await?;
        nodes.push(node);
    }
    let key = |key| Key {
        nodes: nodes.clone(),
        key,
        sha: sha.clone(),
        await_all,
    };
    Ok(task.keys().map(key).collect())
}

async fn connect(url: &str) -> Result<MultiplexedConnection, String> {
    let client = Client::open(url).map_err(text)?;
    let patient = AsyncConnectionConfig::new().set_response_timeout(None);
    let connection = client.get_multiplexed_async_connection_with_config(&patient);
    connection.await.map_err(text)
}

async fn query<T: FromRedisValue>(
    command: &Cmd,
    node: &mut MultiplexedConnection,
) -> Result<T, String> {
    command.query_async(node).await.map_err(text)
}

#[expect(clippy::needless_pass_by_value, reason = "for map_err")]
fn text(error: redis::RedisError) -> String {
    error.to_string()
}

impl Key {
    /// On how many servers the command took effect: `1` or `OK`.
    async fn everywhere(&self, command: Cmd) -> Result<usize, String> {
        if let [node] = self.nodes.as_slice() {
            let done: bool = query(&command, &mut node.clone()).await?;
            return Ok(usize::from(done));
        }
        let asks = self.nodes.iter().map(|node| {
            let (command, mut node) = (command.clone(), node.clone());
            async move { query::<bool>(&command, &mut node).await }
        });
        if self.await_all {
            let answers = join_all(asks).await;
            let done = answers.into_iter().collect::<Result<Vec<bool>, _>>()?;
            return Ok(done.into_iter().filter(|done| *done).count());
        }
        let mut asks: FuturesUnordered<_> = asks.collect();
        let mut done = 0;
        while done <= self.nodes.len() / 2 {
            match asks.next().await {
                Some(answer) => done += usize::from(answer?),
                None => return Ok(done),
            }
        }
        if !asks.is_empty() {
            // Not dropped, because requests that still wait to be sent would be lost.
            tokio::spawn(async move { while asks.next().await.is_some() {} });
        }
        Ok(done)
    }

    fn is_majority(&self, done: usize) -> bool {
        done > self.nodes.len() / 2
    }
}

impl Handle for Key {
    /// The value of the key.
    type Held = u64;

    async fn acquire(&self) -> Result<u64, String> {
        self.try_acquire().await?.ok_or_else(|| "busy".into())
    }

    async fn try_acquire(&self) -> Result<Option<u64>, String> {
        static TOKENS: AtomicU64 = AtomicU64::new(1);
        let token = TOKENS.fetch_add(1, Ordering::Relaxed);
        let mut set = redis::cmd("SET");
        set.arg(&self.key)
            .arg(token)
            .arg("NX")
            .arg("PX")
            .arg(30_000);
        let done = self.everywhere(set).await?;
        Ok(self.is_majority(done).then_some(token))
    }

    async fn release(&self, held: u64) -> Result<(), String> {
        let mut free = redis::cmd("EVALSHA");
        free.arg(&self.sha).arg(1).arg(&self.key).arg(held);
        let done = self.everywhere(free).await?;
        self.is_majority(done)
            .then_some(())
            .ok_or_else(|| "lost".into())
    }
}

/// The list of one token (`bare.rs`) with the overhead of any asynchronous library: the client library,
/// and a separate thread that receives each call and returns each answer.
pub(super) struct Popper {
    background: runtime::Handle,
    /// BLPOP keeps a connection waiting, so each waiter has its own.
    own: MultiplexedConnection,
    shared: MultiplexedConnection,
    key: String,
}

pub(super) async fn poppers(task: &Task) -> Result<Vec<Popper>, String> {
    let [url] = task
        .urls()
        .try_into()
        .map_err(|_| "a list of one token is on one server")?;
    let runtime = runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| error.to_string())?;
    let background = runtime.handle().clone();
    std::thread::spawn(move || runtime.block_on(std::future::pending::<()>()));
    let open = || {
        let url: String = url.clone();
        let opened = background.spawn(async move { connect(&url).await });
        async { opened.await.map_err(|error| error.to_string())? }
    };
    let shared = open().await?;
    let mut poppers = Vec::new();
    for key in task.keys() {
        poppers.push(Popper {
            background: background.clone(),
            own: open().await?,
            shared: shared.clone(),
            key,
        });
    }
    if let Some(first) = poppers.first() {
        first.release(()).await?;
    }
    Ok(poppers)
}

impl Popper {
    async fn call<T: FromRedisValue + Send + 'static>(
        &self,
        node: &MultiplexedConnection,
        words: &[&str],
    ) -> Result<T, String> {
        let mut command = Cmd::new();
        command.arg(words);
        let mut node = node.clone();
        let called = self
            .background
            .spawn(async move { query(&command, &mut node).await });
        called.await.map_err(|error| error.to_string())?
    }
}

impl Handle for Popper {
    type Held = ();

    async fn acquire(&self) -> Result<(), String> {
        let popped: Vec<String> = self.call(&self.own, &["BLPOP", &self.key, "0"]).await?;
        (popped.len() == 2)
            .then_some(())
            .ok_or_else(|| format!("{popped:?}"))
    }

    async fn try_acquire(&self) -> Result<Option<()>, String> {
        let popped: Option<String> = self.call(&self.own, &["LPOP", &self.key]).await?;
        Ok(popped.map(drop))
    }

    async fn release(&self, (): ()) -> Result<(), String> {
        self.call(&self.shared, &["RPUSH", &self.key, "t"]).await
    }
}
