//! Cycles of the sections that measure in this process, by the blocking interface.

use std::time::{Duration, Instant};

use leasehold::blocking::Lock;

use crate::error::Fallible;

/// Acquires and releases a lock once.
pub(super) type Cycle = Box<dyn FnMut() -> Fallible>;

pub(super) fn cycle_of(lock: Lock) -> Cycle {
    Box::new(move || {
        lock.acquire()?.release()?;
        Ok(())
    })
}

/// Repeats the cycle for `span`, and returns the durations in microseconds.
pub(super) fn repeat(cycle: &mut Cycle, span: Duration) -> Fallible<Vec<f64>> {
    let end = Instant::now() + span;
    let mut took = Vec::new();
    loop {
        let began = Instant::now();
        if began >= end {
            return Ok(took);
        }
        cycle()?;
        took.push(began.elapsed().as_secs_f64() * 1e6);
    }
}
