use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::task::JoinSet;

use super::Handle;
use crate::error::Fallible;
use crate::measure::record::Cycled;
use crate::report::statistics::p50_and_p99;

/// What handles did: how long each cycle took, in microseconds.
#[derive(Debug, Default)]
struct Tally {
    cycles: Vec<f64>,
    failed: usize,
    why: String,
}

/// Acquires and releases the lock of each handle again and again, all at once and without contention.
pub(super) async fn run<H: Handle>(handles: &[Arc<H>], span: Duration) -> Fallible<Cycled> {
    let began = Instant::now();
    let mut tasks = JoinSet::new();
    for handle in handles {
        tasks.spawn(cycle(Arc::clone(handle), began + span));
    }
    let mut all = Tally::default();
    while let Some(done) = tasks.join_next().await {
        let own = done?;
        all.cycles.extend(own.cycles);
        all.failed += own.failed;
        if own.failed > 0 {
            all.why = own.why;
        }
    }
    let seconds = began.elapsed().as_secs_f64();
    let cycles = all.cycles.len();
    let longest = all.cycles.iter().copied().fold(0.0, f64::max);
    let [cycle_p50, cycle_p99] = p50_and_p99(all.cycles);
    Ok(Cycled {
        cycles,
        seconds,
        cycle_p50,
        cycle_p99,
        longest,
        failed: all.failed,
        why: all.why,
    })
}

async fn cycle<H: Handle>(handle: Arc<H>, end: Instant) -> Tally {
    let mut tally = Tally::default();
    loop {
        let asked = Instant::now();
        if asked >= end {
            return tally;
        }
        let released = match handle.acquire().await {
            Ok(held) => handle.release(held).await,
            Err(why) => Err(why),
        };
        match released {
            Ok(()) => tally.cycles.push(asked.elapsed().as_secs_f64() * 1e6),
            Err(why) => {
                tally.failed += 1;
                tally.why = why.to_string();
            }
        }
    }
}
