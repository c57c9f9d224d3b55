//! Runs cycles without end, and measures them during a window of time.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::Handle;
use crate::error::Fallible;
use crate::measure::record::Watched;
use crate::report::figures::number;
use crate::report::statistics::{percentile, sorted};

/// The cycles of all handles.
#[derive(Debug)]
pub(super) struct Cycling(Vec<Arc<Mutex<Log>>>);

/// What one handle does.
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

impl Cycling {
    /// Starts the cycles, and lets them warm up.
    pub(super) async fn start<H: Handle>(handles: &[Arc<H>], warm_up: Duration) -> Fallible<Self> {
        let start = |handle: &Arc<H>| {
            let log = Arc::default();
            tokio::spawn(cycle(Arc::clone(handle), Arc::clone(&log)));
            log
        };
        let cycling = Self(handles.iter().map(start).collect());
        tokio::time::sleep(warm_up).await;
        if let Some(log) = cycling.logs().find(|log| log.through.is_empty()) {
            return Err(format!("not one cycle: {}", log.last_failure).into());
        }
        Ok(cycling)
    }

    /// Returns what happens from now on until `window` is over.
    pub(super) async fn watch(&self, window: Duration) -> Watched {
        let from = Instant::now();
        tokio::time::sleep(window).await;
        let until = Instant::now();
        let (mut took, mut waiting) = (Vec::new(), Vec::new());
        let (mut cycles, mut failed) = (0, 0);
        let within = |instant: &&Instant| (from..until).contains(*instant);
        for log in self.logs() {
            let own = log.acquired.iter().filter(|(_, at)| within(&at));
            took.extend(own.map(|(began, at)| (*at - *began).as_secs_f64() * 1e6));
            waiting.extend(log.asking.map(|began| (until - began).as_secs_f64() * 1e6));
            cycles += log.through.iter().filter(within).count();
            failed += log.failed.iter().filter(within).count();
        }
        let took = sorted(took);
        let figure = |percent| percentile(&took, percent).unwrap_or_default();
        Watched {
            cycles_per_second: number(cycles) / (until - from).as_secs_f64(),
            p50: figure(50),
            p99: figure(99),
            longest: waiting.into_iter().fold(figure(100), f64::max),
            failed,
        }
    }

    fn logs(&self) -> impl Iterator<Item = MutexGuard<'_, Log>> {
        self.0.iter().map(|log| lock(log))
    }
}

async fn cycle<H: Handle>(handle: Arc<H>, log: Arc<Mutex<Log>>) {
    loop {
        let began = Instant::now();
        lock(&log).asking = Some(began);
        let acquired = handle.acquire().await;
        {
            let mut log = lock(&log);
            log.asking = None;
            if acquired.is_ok() {
                log.acquired.push((began, Instant::now()));
            }
        }
        let released = match acquired {
            Ok(held) => handle.release(held).await,
            Err(why) => Err(why),
        };
        let mut log = lock(&log);
        match released {
            Ok(()) => log.through.push(Instant::now()),
            Err(why) => {
                log.failed.push(Instant::now());
                log.last_failure = why.to_string();
            }
        }
    }
}

fn lock(log: &Mutex<Log>) -> MutexGuard<'_, Log> {
    log.lock().unwrap_or_else(PoisonError::into_inner)
}
