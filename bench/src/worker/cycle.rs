use std::fmt::Display;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::task::JoinSet;

use super::Handle;
use crate::error::Fallible;
use crate::measure::record::Cycled;
use crate::report::statistics::p50_and_p99;

/// When a handle stops: after a time, or after a number of cycles.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Limit {
    Span(Duration),
    Cycles(usize),
}

impl Limit {
    /// `cycle-for MILLISECONDS` or `cycle-times N`.
    pub(super) fn parse(order: &str) -> Option<Self> {
        let (verb, number) = order.split_once(' ')?;
        match verb {
            "cycle-for" => Some(Self::Span(Duration::from_millis(number.parse().ok()?))),
            "cycle-times" => Some(Self::Cycles(number.parse().ok()?)),
            _ => None,
        }
    }

    pub(super) fn is_reached(self, began: Instant, cycles: usize) -> bool {
        match self {
            Self::Span(span) => began.elapsed() >= span,
            Self::Cycles(most) => cycles >= most,
        }
    }
}

/// What the handles did: how long each cycle took, and how much of it the acquire, in microseconds.
#[derive(Debug, Default)]
pub(super) struct Tally {
    acquires: Vec<f64>,
    cycles: Vec<f64>,
    failed: usize,
    why: String,
}

impl Tally {
    pub(super) fn add(&mut self, asked: Instant, acquired: Instant, released: Instant) {
        self.acquires.push((acquired - asked).as_secs_f64() * 1e6);
        self.cycles.push((released - asked).as_secs_f64() * 1e6);
    }

    pub(super) fn fail(&mut self, why: &dyn Display) {
        self.failed += 1;
        self.why = why.to_string();
    }

    fn merge(&mut self, other: Self) {
        self.acquires.extend(other.acquires);
        self.cycles.extend(other.cycles);
        self.failed += other.failed;
        if other.failed > 0 {
            self.why = other.why;
        }
    }

    pub(super) fn finish(self, span: Duration) -> Cycled {
        let cycles = self.cycles.len();
        let [acquire, cycle] = [self.acquires, self.cycles].map(p50_and_p99);
        Cycled {
            cycles,
            seconds: span.as_secs_f64(),
            acquire_p50: acquire[0],
            acquire_p99: acquire[1],
            cycle_p50: cycle[0],
            cycle_p99: cycle[1],
            failed: self.failed,
            why: self.why,
        }
    }
}

/// Acquires and releases the lock of each handle again and again, all at once and without contention.
pub(super) async fn run<H: Handle>(handles: &[Arc<H>], limit: Limit) -> Fallible<Cycled> {
    let began = Instant::now();
    let mut tally = Tally::default();
    if H::BLOCKS {
        let threads: Vec<_> = handles
            .iter()
            .map(|handle| {
                let (handle, runtime) = (Arc::clone(handle), tokio::runtime::Handle::current());
                std::thread::spawn(move || runtime.block_on(cycle(handle, limit, began)))
            })
            .collect();
        for thread in threads {
            tally.merge(thread.join().map_err(|_| "a cycling thread panicked")?);
        }
    } else {
        let mut tasks = JoinSet::new();
        for handle in handles {
            tasks.spawn(cycle(Arc::clone(handle), limit, began));
        }
        while let Some(done) = tasks.join_next().await {
            tally.merge(done?);
        }
    }
    Ok(tally.finish(began.elapsed()))
}

async fn cycle<H: Handle>(handle: Arc<H>, limit: Limit, began: Instant) -> Tally {
    let mut tally = Tally::default();
    while !limit.is_reached(began, tally.cycles.len() + tally.failed) {
        let asked = Instant::now();
        match handle.acquire().await {
            Ok(held) => {
                let acquired = Instant::now();
                match handle.release(held).await {
                    Ok(()) => tally.add(asked, acquired, Instant::now()),
                    Err(why) => tally.fail(&why),
                }
            }
            Err(why) => tally.fail(&why),
        }
    }
    tally
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_is_a_span_or_a_number() {
        let span = Limit::Span(Duration::from_millis(20));
        assert_eq!(Limit::parse("cycle-for 20"), Some(span));
        assert_eq!(Limit::parse("cycle-times 3"), Some(Limit::Cycles(3)));
        assert_eq!(Limit::parse("mark"), None);
        assert!(Limit::Cycles(3).is_reached(Instant::now(), 3));
        assert!(!Limit::Cycles(3).is_reached(Instant::now(), 2));
    }

    #[test]
    fn a_tally_tells_what_was_added() {
        let began = Instant::now();
        let after = |micros| began + Duration::from_micros(micros);
        let mut tally = Tally::default();
        tally.add(began, after(50), after(120));
        tally.fail(&"busy\nstill");
        let cycled = tally.finish(Duration::from_micros(130));
        assert_eq!((cycled.cycles, cycled.failed), (1, 1));
        assert_eq!((cycled.acquire_p99, cycled.cycle_p50), (50.0, 120.0));
    }
}
