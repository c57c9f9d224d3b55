use std::fmt;
use std::ops::Range;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use leasehold::clock::{Clock, SystemClock};

use super::faults::Faults;
use super::grants::Grants;
use super::run::{Outcome, run};
use crate::virtual_time::lock;

/// What came of many seeds.
#[derive(Debug, Default)]
pub struct Summary {
    /// How many ran.
    pub seeds: u64,
    /// The locks that were granted in all of them.
    pub grants: Grants,
    /// Those that broke an invariant, by seed.
    pub broken: Vec<Outcome>,
    /// How long they took in all.
    pub took: Duration,
    /// Those that panicked.
    pub panicked: Vec<u64>,
}

impl Summary {
    /// Whether no seed broke an invariant or panicked.
    pub fn is_clean(&self) -> bool {
        self.broken.is_empty() && self.panicked.is_empty()
    }
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for outcome in &self.broken {
            writeln!(f, "{outcome}")?;
        }
        for seed in &self.panicked {
            writeln!(f, "seed {seed} PANICKED")?;
        }
        let (seeds, grants, broken) = (self.seeds, self.grants, self.broken.len());
        let took = self.took.as_secs_f64();
        write!(
            f,
            "{seeds} worlds in {took:.0} s ({:.0} a second), {grants}; {broken} worlds broke an invariant",
            seeds as f64 / took
        )
    }
}

/// Runs every seed of `seeds` on `threads` threads, each in a runtime of its own.
pub fn run_all(seeds: Range<u64>, faults: Faults, threads: usize) -> Summary {
    let began = SystemClock.now();
    let next = AtomicU64::new(seeds.start);
    let summary = Mutex::new(Summary::default());
    let work = || {
        loop {
            let seed = next.fetch_add(1, Ordering::Relaxed);
            if seed >= seeds.end {
                return;
            }
            let outcome = std::panic::catch_unwind(|| run(seed, faults));
            let mut summary = lock(&summary);
            summary.seeds += 1;
            let Ok(outcome) = outcome else {
                summary.panicked.push(seed);
                continue;
            };
            summary.grants += outcome.grants;
            if !outcome.violations.is_empty() {
                summary.broken.push(outcome);
            }
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(work);
        }
    });
    let mut summary = summary.into_inner().unwrap_or_default();
    summary.broken.sort_by_key(|outcome| outcome.seed);
    summary.took = SystemClock.now().since(began);
    summary
}
