use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use leasehold::clock::{BootInstant, Clock, WallTime};
use leasehold::env::{Entropy, Env};
use leasehold::store::BoxFuture;
use tokio::time::Instant;

/// The clock of a paused tokio runtime. Time passes only when everything waits for it.
#[derive(Debug)]
pub struct VirtualClock {
    start: Instant,
    /// In nanoseconds.
    paused: AtomicU64,
}

impl VirtualClock {
    /// Returns a clock that starts now.
    ///
    /// # Panics
    ///
    /// Outside a tokio runtime.
    #[expect(clippy::disallowed_methods, reason = "this is a clock")]
    pub fn new() -> Self {
        Self {
            start: Instant::now(),
            paused: AtomicU64::new(0),
        }
    }

    #[expect(clippy::disallowed_methods, reason = "this is a clock")]
    fn elapsed(&self) -> Duration {
        Instant::now() - self.start
    }
}

impl Default for VirtualClock {
    fn default() -> Self {
        Self::new()
    }
}

/// The machine has been up for a while, like any machine.
const BOOTED: BootInstant = BootInstant::from_nanos(1_000_000_000_000);

/// 2026-11-20, more or less.
const WALL_START_MICROS: u64 = 1_795_000_000_000_000;

impl Clock for VirtualClock {
    fn now(&self) -> BootInstant {
        BOOTED + self.elapsed() + Duration::from_nanos(self.paused.load(Ordering::Relaxed))
    }

    fn wall(&self) -> WallTime {
        WallTime::from_micros(WALL_START_MICROS + self.elapsed().as_micros() as u64)
    }

    fn sleep_until(&self, deadline: BootInstant) -> BoxFuture<'static, ()> {
        let left = deadline.since(self.now());
        #[expect(clippy::disallowed_methods, reason = "this is a clock")]
        let sleep = tokio::time::sleep(left);
        Box::pin(sleep)
    }

    fn was_paused(&self, span: Duration) {
        self.paused
            .fetch_add(span.as_nanos() as u64, Ordering::Relaxed);
    }
}

/// Random numbers that follow from a seed (SplitMix64: Steele, Lea, Flood, "Fast Splittable
/// Pseudorandom Number Generators", OOPSLA 2014).
#[derive(Debug)]
pub struct SeededEntropy(AtomicU64);

impl SeededEntropy {
    /// Returns the sequence of `seed`.
    pub fn new(seed: u64) -> Self {
        Self(AtomicU64::new(seed))
    }
}

impl Entropy for SeededEntropy {
    fn next_u64(&self) -> u64 {
        const GAMMA: u64 = 0x9e37_79b9_7f4a_7c15;
        let mut z = self
            .0
            .fetch_add(GAMMA, Ordering::Relaxed)
            .wrapping_add(GAMMA);
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }
}

/// Returns virtual time and the random numbers of `seed`.
///
/// # Panics
///
/// Outside a tokio runtime.
pub fn virtual_env(seed: u64) -> Env {
    Env {
        clock: Arc::new(VirtualClock::new()),
        entropy: Arc::new(SeededEntropy::new(seed)),
    }
}
