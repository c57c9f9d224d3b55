use std::str::FromStr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::task::JoinSet;

use super::Handle;
use crate::report::statistics::{percentile, sorted};

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
            "cycle-for" => Some(Self::Span(Duration::from_millis(
                u64::from_str(number).ok()?,
            ))),
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

    pub(super) fn fail(&mut self, why: String) {
        self.failed += 1;
        self.why = why;
    }

    fn merge(&mut self, other: Self) {
        self.acquires.extend(other.acquires);
        self.cycles.extend(other.cycles);
        self.failed += other.failed;
        if other.failed > 0 {
            self.why = other.why;
        }
    }

    /// `cycled CYCLES MICROS P50 P99 P50 P99 FAILED WHY`: of the acquires, then of the cycles.
    pub(super) fn text(self, span: Duration) -> String {
        let count = self.cycles.len();
        let figures: Vec<String> = [self.acquires, self.cycles]
            .map(sorted)
            .iter()
            .flat_map(|took| [50, 99].map(|percent| percentile(took, percent)))
            .map(|figure| format!("{:.3}", figure.unwrap_or_default()))
            .collect();
        let why = self.why.replace('\n', " ");
        let (span, figures, failed) = (span.as_micros(), figures.join(" "), self.failed);
        format!("cycled {count} {span} {figures} {failed} {why}")
    }
}

/// Acquires and releases the lock of each handle again and again, all at once and without contention.
pub(super) async fn run<H: Handle>(handles: &[Arc<H>], limit: Limit) -> Result<String, String> {
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
            tally.merge(done.map_err(|error| error.to_string())?);
        }
    }
    Ok(tally.text(began.elapsed()))
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
                    Err(why) => tally.fail(why),
                }
            }
            Err(why) => tally.fail(why),
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
        tally.fail("busy\nstill".into());
        let text = tally.text(Duration::from_micros(130));
        assert_eq!(
            text,
            "cycled 1 130 50.000 50.000 120.000 120.000 1 busy still"
        );
    }
}
