//! Prints how long a lock is between two processes that pass it on, and how often waiters try while
//! it is held: in the current directory, or in the one given as an argument.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use leasehold::clock::{Clock as _, SystemClock};
use leasehold::env::{Env, SystemEntropy};
use leasehold::look::Owner;
use leasehold::store::{AcquireError, LockRequest, Progress, Report, SessionContext, Store};
use leasehold::{Client, Key, Lock};
use leasehold_file::FileStore;
use tokio::runtime::Handle;

type Failure = Box<dyn std::error::Error>;

const ROUNDS: usize = 200;
const WAITERS: usize = 16;
const HELD: Duration = Duration::from_secs(5);

#[tokio::main(flavor = "multi_thread", worker_threads = 2)]
#[expect(clippy::print_stdout, reason = "it is there to print")]
async fn main() -> Result<(), Failure> {
    let arguments: Vec<_> = std::env::args().skip(1).collect();
    if let [waiter, way, directory] = &arguments[..]
        && waiter == WAITER
    {
        return wait_here(way, Path::new(directory)).await;
    }
    let place = arguments.first().map_or(".", String::as_str);
    let directory = tempfile::tempdir_in(place)?;
    println!("from the release to the grant in another process, {ROUNDS} times:");
    for way in ["told", "polling", "flock(2)"] {
        let mut spans = hand_over(way, directory.path()).await?;
        spans.sort_unstable();
        let of = |part: usize| spans[(spans.len() * part / 100).min(spans.len() - 1)];
        println!("{way:>9}: p50 {:.2?}, p99 {:.2?}", of(50), of(99));
    }
    for (name, wait) in [("told", true), ("polling", false)] {
        let tries = tries_while_held(directory.path(), wait).await?;
        println!("tries of each of {WAITERS} waiters in {HELD:?}, {name}: {tries:?}");
    }
    Ok(())
}

/// Marks the second process.
const WAITER: &str = "--waiter";

/// The second process: for each line on its input, takes the lock, says when, and frees it.
#[expect(clippy::print_stdout, reason = "it answers through a pipe")]
async fn wait_here(way: &str, directory: &Path) -> Result<(), Failure> {
    let store = FileStore::open(directory)?;
    let path = store.lock_file(&Key::new(KEY)?);
    let lock = Client::new(store).lock(KEY);
    for _ in std::io::stdin().lines() {
        let granted = match way {
            "told" => passed(lock.acquire().await?).await?,
            "polling" => passed(poll(&lock).await?).await?,
            _ => {
                let file = std::fs::File::open(&path)?;
                file.lock()?;
                SystemClock.now()
            }
        };
        println!("{}", granted.as_nanos());
    }
    Ok(())
}

async fn passed(guard: leasehold::Guard) -> Result<leasehold::clock::BootInstant, Failure> {
    let granted = SystemClock.now();
    guard.release().await?;
    Ok(granted)
}

async fn poll(lock: &Lock) -> Result<leasehold::Guard, Failure> {
    loop {
        match lock.try_acquire().await? {
            Some(guard) => return Ok(guard),
            None => Env::default().poll_pause().await,
        }
    }
}

/// Passes the lock on to another process, again and again; how long each time took.
async fn hand_over(way: &str, directory: &Path) -> Result<Vec<Duration>, Failure> {
    let lock = Client::new(FileStore::open(directory)?).lock(KEY);
    let (mut child, mut orders) = start(way, directory)?;
    let mut answers = BufReader::new(child.stdout.take().ok_or("no pipe")?).lines();
    let mut spans = Vec::with_capacity(ROUNDS);
    for _ in 0..ROUNDS {
        let guard = lock.acquire().await?;
        writeln!(orders, "wait")?;
        // Long enough for it to wait, and at no fixed point of its pauses.
        let held = Env::default().random_span(Duration::from_millis(60), SHORT);
        SystemClock.sleep_until(SystemClock.now() + held).await;
        let released = SystemClock.now();
        guard.release().await?;
        let granted: u64 = answers.next().ok_or("it ended")??.parse()?;
        spans.push(Duration::from_nanos(granted - released.as_nanos()));
    }
    drop(orders);
    child.wait()?;
    Ok(spans)
}

fn start(way: &str, directory: &Path) -> Result<(Child, ChildStdin), Failure> {
    let mut child = Command::new(std::env::current_exe()?)
        .args([WAITER, way])
        .arg(directory)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()?;
    let orders = child.stdin.take().ok_or("no pipe")?;
    Ok((child, orders))
}

/// Returns how often each of several waiters tries while another client holds the lock.
async fn tries_while_held(directory: &Path, waits: bool) -> Result<Vec<u32>, Failure> {
    let lock = Client::new(FileStore::open(directory)?).lock(KEY);
    let guard = lock.acquire().await?;
    let info = Arc::new(Env::default().this_process(None));
    let context = SessionContext::new(Env::default(), info.clone(), Handle::current());
    let store = Store::open(&FileStore::open(directory)?, context);
    let tries: Arc<[AtomicU32; WAITERS]> = Arc::default();
    let mut waiters = tokio::task::JoinSet::new();
    for waiter in 0..WAITERS {
        let owner = || Owner::random(info.id, &SystemEntropy);
        let (key, ttl) = (Key::new(KEY)?, Duration::from_secs(30));
        let request = LockRequest::new(key, owner(), ttl, SystemClock.wall(), info.clone());
        // Ahead of the queue, it polls.
        let request = request.waiting(true).barging(!waits);
        let (store, tries) = (store.clone(), tries.clone());
        waiters.spawn(async move {
            let request = Arc::new(request);
            let count = |_: &Report| {
                tries[waiter].fetch_add(1, Ordering::Relaxed);
            };
            let progress = Progress::heard_by(&count);
            match store.acquire(&request, &progress).await {
                Ok(_) => store.release(&request).await,
                Err(AcquireError::Failed(error)) => Err(error),
                Err(AcquireError::Busy(busy)) => unreachable!("it waits: {busy:?}"),
            }
        });
    }
    SystemClock.sleep_until(SystemClock.now() + HELD).await;
    let tries = tries.iter().map(|tries| tries.load(Ordering::Relaxed));
    let tries = tries.collect();
    guard.release().await?;
    for done in waiters.join_all().await {
        done?;
    }
    Ok(tries)
}

const KEY: &str = "handover";
const SHORT: Duration = Duration::from_millis(140);
