//! Compares uncontended cycles of the driver with the bare `redis` crate, and with the commands of the driver
//! sent by that crate, in turns on the same servers. The latter shows what a client of our own is worth.
//!
//! `cargo run --release -p leasehold-bench --example driver_cycles -- [current] [ROUNDS] [5x64 …]`
//!
//! `current` runs the callers on a single thread, and `ours` leaves the crate out, for a profile. `5x64` measures five servers with 64 cycles in flight
//! only. It prints the median rate of both, and the median, least and greatest ratio within a round.

#![expect(
    clippy::disallowed_methods,
    reason = "a measurement reads the real clock"
)]

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use futures_util::future::join_all;
use futures_util::stream::{FuturesUnordered, StreamExt as _};
use leasehold::Key;
use leasehold::env::Env;
use leasehold::store::{Claim, ClientInfo, Owner};
use leasehold_instructions::FREE;
use leasehold_quorum::{Outcome, ReleaseMode};
use leasehold_redis::driver::{Driver, DriverConfig};
use leasehold_testkit::servers::RedisSet;
use redis::aio::MultiplexedConnection;
use redis::{AsyncConnectionConfig, Client, Pipeline, Value};

const SPAN: Duration = Duration::from_millis(700);

/// As `free.lua` of the driver.
const FREE_UNLESS_QUEUED: &str = "if redis.pcall('GET', KEYS[1]) == ARGV[1] and \
                                  redis.call('EXISTS', KEYS[2]) == 0 then \
                                  return redis.call('DEL', KEYS[1]) end return 0";

#[expect(clippy::print_stdout, reason = "it prints its results")]
fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let alone = arguments.iter().any(|word| word == "ours");
    let current = arguments.iter().any(|word| word == "current");
    let rounds = arguments.iter().find_map(|word| word.parse().ok());
    let mut builder = if current {
        tokio::runtime::Builder::new_current_thread()
    } else {
        tokio::runtime::Builder::new_multi_thread()
    };
    let runtime = builder.worker_threads(2).enable_all().build();
    let runtime = runtime.expect("a runtime");
    let wanted: Vec<_> = arguments.iter().filter(|word| word.contains('x')).collect();
    for servers in [1, 5] {
        let set = RedisSet::start(servers);
        let urls = set.urls();
        let bare = Arc::new(runtime.block_on(Bare::open(&urls)));
        let ours = Arc::new(Ours::open(urls));
        runtime.block_on(ours.wait_until_connected());
        for in_flight in [1, 64, 512] {
            let name = format!("{servers}x{in_flight}");
            if !wanted.is_empty() && !wanted.contains(&&name) {
                continue;
            }
            let [mut bare_rates, mut protocol, mut driver] = [const { Vec::new() }; 3];
            for _ in 0..rounds.unwrap_or(5) {
                if !alone {
                    bare_rates.push(rate(&runtime, &bare, in_flight, Bare::cycle));
                    protocol.push(rate(
                        &runtime,
                        &bare,
                        in_flight,
                        Bare::cycle_of_the_protocol,
                    ));
                }
                driver.push(rate(&runtime, &ours, in_flight, Ours::cycle));
            }
            println!(
                "{name}: bare {:.0}/s, its protocol by the crate {:.0}/s ({}), driver {:.0}/s ({})",
                median(&bare_rates),
                median(&protocol),
                ratios(&protocol, &bare_rates),
                median(&driver),
                ratios(&driver, &bare_rates),
            );
        }
        runtime.block_on(ours.driver.close());
    }
}

fn median(figures: &[f64]) -> f64 {
    let mut sorted = figures.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted.get(sorted.len() / 2).copied().unwrap_or(f64::NAN)
}

/// The median, the least, and the greatest ratio within a round.
fn ratios(figures: &[f64], reference: &[f64]) -> String {
    let ratios = figures
        .iter()
        .zip(reference)
        .map(|(one, other)| one / other);
    let ratios: Vec<f64> = ratios.collect();
    let least = ratios.iter().copied().fold(f64::INFINITY, f64::min);
    let greatest = ratios.iter().copied().fold(0.0, f64::max);
    format!("{:.2}, {least:.2} to {greatest:.2}", median(&ratios))
}

/// Cycles per second.
fn rate<S, F>(
    runtime: &tokio::runtime::Runtime,
    subject: &Arc<S>,
    in_flight: usize,
    cycle: impl Fn(Arc<S>, Key) -> F + Copy + Send + 'static,
) -> f64
where
    S: Send + Sync + 'static,
    F: Future<Output = ()> + Send,
{
    let began = Instant::now();
    let tasks = (0..in_flight).map(|task| {
        let subject = Arc::clone(subject);
        let key = Key::new(format!("cycle-{task}")).expect("a key");
        runtime.spawn(async move {
            let mut cycles = 0;
            while began.elapsed() < SPAN {
                cycle(Arc::clone(&subject), key.clone()).await;
                cycles += 1;
            }
            cycles
        })
    });
    let ended = runtime.block_on(join_all(tasks)).into_iter();
    let cycles: u32 = ended.map(|cycles| cycles.expect("a task")).sum();
    f64::from(cycles) / began.elapsed().as_secs_f64()
}

struct Ours {
    driver: Driver,
    env: Env,
    client: Arc<ClientInfo>,
}

impl Ours {
    fn open(urls: Vec<String>) -> Self {
        let env = Env::default();
        let client = Arc::new(ClientInfo::of_this_process(&env, None));
        let config = DriverConfig {
            gauges: None,
            urls,
            max_ttl: Duration::from_secs(60),
            clock_tolerance: Duration::from_secs(1),
            // Fresh servers have no vote at first where it is enforced.
            enforced: false,
            read_only: false,
            foreign_gap: Duration::ZERO,
            client: Arc::clone(&client),
            env: env.clone(),
        };
        Self {
            driver: Driver::open(config).expect("a driver"),
            env,
            client,
        }
    }

    fn claim(&self, key: &Key) -> Arc<Claim> {
        let now = self.env.clock.wall();
        let owner = Owner::at(self.client.id, now, &*self.env.entropy);
        let ttl = Duration::from_secs(30);
        Arc::new(Claim::new(
            key.clone(),
            owner,
            ttl,
            now,
            Arc::clone(&self.client),
        ))
    }

    async fn cycle(self: Arc<Self>, key: Key) {
        let claim = self.claim(&key);
        match self.driver.acquire(Arc::clone(&claim)).await {
            Outcome::Acquired(_) => {}
            other => panic!("{other:?}"),
        }
        match self.driver.release(claim, ReleaseMode::HandOver).await {
            Outcome::Released(_) => {}
            other => panic!("{other:?}"),
        }
    }

    /// Waits until the members have a vote, and until the hot path is used: a client's first second is
    /// over.
    async fn wait_until_connected(&self) {
        let began = Instant::now();
        let key = Key::new("first").expect("a key");
        loop {
            let claim = self.claim(&key);
            let taken = self.driver.acquire(Arc::clone(&claim)).await;
            self.driver.release(claim, ReleaseMode::HandOver).await;
            let is_taken = matches!(taken, Outcome::Acquired(_));
            if is_taken && began.elapsed() > Duration::from_secs(2) {
                return;
            }
            assert!(began.elapsed() < Duration::from_secs(60), "{taken:?}");
        }
    }
}

/// A bare key: no fence, no clock, no queue, no renewal.
struct Bare {
    nodes: Vec<MultiplexedConnection>,
    sha: String,
    sha_unless_queued: String,
}

impl Bare {
    async fn open(urls: &[String]) -> Self {
        let (mut nodes, mut sha, mut sha_unless_queued) =
            (Vec::new(), String::new(), String::new());
        for url in urls {
            let client = Client::open(url.as_str()).expect("a URL");
            let patient = AsyncConnectionConfig::new().set_response_timeout(None);
            let node = client.get_multiplexed_async_connection_with_config(&patient);
            let mut node = node.await.expect("a connection");
            let load = |text: &str| redis::cmd("SCRIPT").arg("LOAD").arg(text).to_owned();
            let loaded = load(FREE).query_async(&mut node).await;
            sha = loaded.expect("a reply");
            let loaded = load(FREE_UNLESS_QUEUED).query_async(&mut node).await;
            sha_unless_queued = loaded.expect("a reply");
            nodes.push(node);
        }
        Self {
            nodes,
            sha,
            sha_unless_queued,
        }
    }

    async fn cycle(self: Arc<Self>, key: Key) {
        static TOKENS: AtomicU64 = AtomicU64::new(1);
        let token = TOKENS.fetch_add(1, Ordering::Relaxed);
        let key = format!("bare-{key}");
        let mut set = redis::cmd("SET");
        set.arg(&key).arg(token).arg("NX").arg("PX").arg(30_000);
        self.everywhere(|mut node| {
            let set = set.clone();
            async move { set.query_async(&mut node).await.expect("a reply") }
        })
        .await;
        let mut free = redis::cmd("EVALSHA");
        free.arg(&self.sha).arg(1).arg(&key).arg(token);
        self.everywhere(|mut node| {
            let free = free.clone();
            async move { free.query_async(&mut node).await.expect("a reply") }
        })
        .await;
    }

    /// The commands of the driver. The driver asks for a sample of the server once for all requests that it
    /// writes together. The crate does not tell which these are, so this does so for every eighth request.
    async fn cycle_of_the_protocol(self: Arc<Self>, key: Key) {
        static TOKENS: AtomicU64 = AtomicU64::new(1 << 40);
        let token = TOKENS.fetch_add(1, Ordering::Relaxed);
        let owner = format!("0123456789abcdef.{token:032x}");
        let fence = format!("leasehold:fence:0:{{protocol-{key}}}:protocol-{key}");
        let queue = format!("leasehold:queue:{{protocol-{key}}}:protocol-{key}");
        let key = format!("protocol-{key}");
        let mut take = redis::pipe();
        let set = take.cmd("SET").arg(&key).arg(&owner);
        set.arg("NX").arg("GET").arg("PX").arg(30_000);
        let raise = take.cmd("ZADD").arg(&fence).arg("GT").arg("CH");
        raise.arg(token).arg("counter");
        if token.is_multiple_of(4) {
            sample(&mut take);
        }
        self.everywhere(|mut node| {
            let take = take.clone();
            async move {
                let replies: Vec<Value> = take.query_async(&mut node).await.expect("replies");
                replies[0] == Value::Nil && replies[1] == Value::Int(1)
            }
        })
        .await;
        let mut free = redis::pipe();
        let script = free.cmd("EVALSHA").arg(&self.sha_unless_queued);
        script.arg(2).arg(&key).arg(&queue).arg(&owner);
        self.everywhere(|mut node| {
            let free = free.clone();
            async move {
                let replies: Vec<Value> = free.query_async(&mut node).await.expect("replies");
                replies[0] == Value::Int(1)
            }
        })
        .await;
    }

    /// Asks all nodes, and continues once a majority agreed.
    async fn everywhere<F>(&self, ask: impl Fn(MultiplexedConnection) -> F)
    where
        F: Future<Output = bool> + Send + 'static,
    {
        if let [node] = self.nodes.as_slice() {
            assert!(ask(node.clone()).await, "refused");
            return;
        }
        let asks = self.nodes.iter().map(|node| ask(node.clone()));
        let mut asks: FuturesUnordered<_> = asks.collect();
        let mut done = 0;
        while done <= self.nodes.len() / 2 {
            match asks.next().await {
                Some(answer) => done += usize::from(answer),
                None => panic!("no majority"),
            }
        }
        if !asks.is_empty() {
            // Dropped requests that wait to be sent would never be.
            #[expect(clippy::disallowed_methods, reason = "the rest of the replies")]
            drop(tokio::spawn(
                async move { while asks.next().await.is_some() {} },
            ));
        }
    }
}

/// Adds the commands of a sample: the clock of the server, and the epoch of its data.
fn sample(pipeline: &mut Pipeline) {
    pipeline.cmd("TIME");
    pipeline
        .cmd("HGET")
        .arg("leasehold:member_record")
        .arg("epoch");
}
