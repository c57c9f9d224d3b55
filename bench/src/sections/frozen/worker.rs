//! A process that repeats a number of concurrent cycles as fast as it can.

use std::io::Write;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use super::run::Seen;
use super::subjects::{Bare, Leasehold, Rslock, Subject};
use crate::report::figures::number;
use crate::report::statistics::{percentile, sorted};

/// The argument that makes this program such a worker.
pub(crate) const VERB: &str = "frozen-worker";

/// The task for a worker.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct WorkerTask {
    pub(super) subject: String,
    pub(super) in_flight: usize,
    pub(super) warm_up: Duration,
    pub(super) window: Duration,
    pub(super) urls: Vec<String>,
}

/// Warms up, prints `ready`, waits for a line, and answers it with what it measured from then on.
pub(crate) fn run(arguments: &[String]) -> Result<(), String> {
    let task = arguments.first().ok_or("a worker needs a task")?;
    let task: WorkerTask = serde_json::from_str(task).map_err(|error| error.to_string())?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build();
    let runtime = runtime.map_err(|error| error.to_string())?;
    runtime.block_on(async {
        match task.subject.as_str() {
            "leasehold" => obey(Leasehold::new(&task).await?, &task).await,
            "raw redis" => obey(Bare::new(&task).await?, &task).await,
            "rslock" => obey(Rslock::new(&task), &task).await,
            other => Err(format!("there is no subject {other:?}")),
        }
    })?;
    // Cycles are still in progress, and their results are not needed.
    std::process::exit(0);
}

/// What one task does.
#[derive(Debug, Default)]
struct Log {
    /// Acquires that returned: when they were called, and when they did.
    acquired: Vec<(Instant, Instant)>,
    /// When each cycle ended.
    through: Vec<Instant>,
    asking: Option<Instant>,
    failed: Vec<Instant>,
    last_failure: String,
}

type Logs = Arc<Vec<Mutex<Log>>>;

async fn obey<S: Subject>(subject: S, task: &WorkerTask) -> Result<(), String> {
    let logs: Logs = Arc::new((0..task.in_flight).map(|_| Mutex::default()).collect());
    for task in 0..task.in_flight {
        tokio::spawn(go_round(subject.clone(), task, Arc::clone(&logs)));
    }
    tokio::time::sleep(task.warm_up).await;
    if let Some(log) = logs.iter().map(lock).find(|log| log.through.is_empty()) {
        return Err(format!(
            "healthy servers, and not one cycle: {}",
            log.last_failure
        ));
    }
    say("ready")?;
    let asked = tokio::task::spawn_blocking(|| std::io::stdin().read_line(&mut String::new()));
    asked
        .await
        .map_err(|error| error.to_string())?
        .map_err(|error| error.to_string())?;
    let from = Instant::now();
    tokio::time::sleep(task.window).await;
    let seen = seen(&logs, from, Instant::now());
    say(&serde_json::to_string(&seen).map_err(|error| error.to_string())?)
}

async fn go_round<S: Subject>(subject: S, task: usize, logs: Logs) {
    loop {
        let began = Instant::now();
        lock(&logs[task]).asking = Some(began);
        let acquired = subject.acquire(task).await;
        {
            let mut log = lock(&logs[task]);
            log.asking = None;
            if acquired.is_ok() {
                log.acquired.push((began, Instant::now()));
            }
        }
        let released = match acquired {
            Ok(held) => subject.release(held).await,
            Err(why) => Err(why),
        };
        let mut log = lock(&logs[task]);
        match released {
            Ok(()) => log.through.push(Instant::now()),
            Err(why) => {
                log.failed.push(Instant::now());
                log.last_failure = why;
            }
        }
    }
}

fn seen(logs: &Logs, from: Instant, until: Instant) -> Seen {
    let (mut took, mut waiting) = (Vec::new(), Vec::new());
    let (mut cycles, mut failed) = (0, 0);
    let within = |instant: &&Instant| (from..until).contains(*instant);
    for log in logs.iter().map(lock) {
        let own = log.acquired.iter().filter(|(_, at)| within(&at));
        took.extend(own.map(|(began, at)| (*at - *began).as_secs_f64() * 1e6));
        waiting.extend(log.asking.map(|began| (until - began).as_secs_f64() * 1e6));
        cycles += log.through.iter().filter(within).count();
        failed += log.failed.iter().filter(within).count();
    }
    let took = sorted(took);
    let figure = |percent| percentile(&took, percent).unwrap_or_default();
    Seen {
        cycles_per_second: number(cycles) / (until - from).as_secs_f64(),
        p50: figure(50),
        p99: figure(99),
        longest: waiting.into_iter().fold(figure(100), f64::max),
        failed,
    }
}

fn lock(log: &Mutex<Log>) -> MutexGuard<'_, Log> {
    log.lock().unwrap_or_else(PoisonError::into_inner)
}

fn say(line: &str) -> Result<(), String> {
    let mut output = std::io::stdout().lock();
    writeln!(output, "{line}").map_err(|error| error.to_string())
}
