use std::sync::atomic::{AtomicU64, Ordering};

use futures_util::future::join_all;
use futures_util::stream::{FuturesUnordered, StreamExt};
use leasehold_instructions::FREE;
use redis::aio::MultiplexedConnection;
use redis::{AsyncConnectionConfig, Client, Cmd, FromRedisValue};
use tokio::runtime;

use crate::error::Fallible;
use crate::worker::{Handle, Task};

/// A bare key over the client library that Leasehold and rslock use too: no fence, no clock, no queue, and no
/// renewal.
pub(super) struct Key {
    nodes: Vec<MultiplexedConnection>,
    key: String,
    sha: String,
    is_patient: bool,
}

/// `is_patient`: whether it waits for all answers. Otherwise a majority suffices even if other servers fail or
/// do not answer in time.
pub(super) async fn keys(task: &Task, is_patient: bool) -> Fallible<Vec<Key>> {
    let (mut nodes, mut sha) = (Vec::new(), String::new());
    for url in task.urls() {
        let mut node = connect(&url, !is_patient).await?;
        let mut load = redis::cmd("SCRIPT");
        sha = load.arg("LOAD").arg(FREE).query_async(&mut node).await?;
        nodes.push(node);
    }
    let key = |key| Key {
        nodes: nodes.clone(),
        key,
        sha: sha.clone(),
        is_patient,
    };
    Ok(task.keys().map(key).collect())
}

/// `is_timed`: whether an answer must come within the time that is the default of the crate.
async fn connect(url: &str, is_timed: bool) -> Fallible<MultiplexedConnection> {
    let mut config = AsyncConnectionConfig::new();
    if !is_timed {
        config = config.set_response_timeout(None);
    }
    let client = Client::open(url)?;
    let connection = client.get_multiplexed_async_connection_with_config(&config);
    Ok(connection.await?)
}

impl Key {
    /// On how many servers the command took effect: `1` or `OK`.
    async fn everywhere(&self, command: Cmd) -> Fallible<usize> {
        if let [node] = self.nodes.as_slice() {
            let done: bool = command.query_async(&mut node.clone()).await?;
            return Ok(usize::from(done));
        }
        let asks = self.nodes.iter().map(|node| {
            let (command, mut node) = (command.clone(), node.clone());
            async move { command.query_async::<bool>(&mut node).await }
        });
        if self.is_patient {
            let answers = join_all(asks).await;
            let done = answers.into_iter().collect::<Result<Vec<bool>, _>>()?;
            return Ok(done.into_iter().filter(|done| *done).count());
        }
        let mut asks: FuturesUnordered<_> = asks.collect();
        let mut done = 0;
        while !self.is_majority(done) {
            match asks.next().await {
                Some(Ok(is_done)) => done += usize::from(is_done),
                Some(Err(_)) => {}
                None => return Ok(done),
            }
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

    async fn try_acquire(&self) -> Fallible<Option<u64>> {
        static TOKENS: AtomicU64 = AtomicU64::new(1);
        let token = match self.is_patient {
            true => TOKENS.fetch_add(1, Ordering::Relaxed),
            // A dropped release may leave the key on a server. The next one deletes it if the token is the same.
            false => 0,
        };
        let mut set = redis::cmd("SET");
        set.arg(&self.key)
            .arg(token)
            .arg("NX")
            .arg("PX")
            .arg(30_000);
        let done = self.everywhere(set).await?;
        Ok(self.is_majority(done).then_some(token))
    }

    async fn release(&self, held: u64) -> Fallible {
        let mut free = redis::cmd("EVALSHA");
        free.arg(&self.sha).arg(1).arg(&self.key).arg(held);
        let done = self.everywhere(free).await?;
        Ok(self.is_majority(done).then_some(()).ok_or("lost")?)
    }
}

/// A list that holds one token while the lock is free, which BLPOP takes in the order of the requests. It is no
/// lock, because a client that dies keeps the token. It has the overhead of any asynchronous library: the
/// client library, and a separate thread that receives each call and returns each answer.
pub(super) struct Popper {
    background: runtime::Handle,
    /// BLPOP keeps a connection waiting, so each waiter has its own.
    own: MultiplexedConnection,
    shared: MultiplexedConnection,
    key: String,
}

pub(super) async fn poppers(task: &Task) -> Fallible<Vec<Popper>> {
    let [url] = task
        .urls()
        .try_into()
        .map_err(|_| "a list of one token is on one server")?;
    let runtime = runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let background = runtime.handle().clone();
    std::thread::spawn(move || runtime.block_on(std::future::pending::<()>()));
    let open = || {
        let url: String = url.clone();
        let opened = background.spawn(async move { connect(&url, false).await });
        async { opened.await? }
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
    ) -> Fallible<T> {
        let mut command = Cmd::new();
        command.arg(words);
        let mut node = node.clone();
        let called = self
            .background
            .spawn(async move { command.query_async(&mut node).await });
        Ok(called.await??)
    }
}

impl Handle for Popper {
    type Held = ();

    async fn acquire(&self) -> Fallible {
        let popped: Vec<String> = self.call(&self.own, &["BLPOP", &self.key, "0"]).await?;
        match popped.len() {
            2 => Ok(()),
            _ => Err(format!("{popped:?}").into()),
        }
    }

    async fn try_acquire(&self) -> Fallible<Option<()>> {
        let popped: Option<String> = self.call(&self.own, &["LPOP", &self.key]).await?;
        Ok(popped.map(drop))
    }

    async fn release(&self, (): ()) -> Fallible {
        self.call(&self.shared, &["RPUSH", &self.key, "t"]).await
    }
}
