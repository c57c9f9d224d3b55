use std::time::Duration;

use leasehold::clock::{BootInstant, WallTime};
use leasehold_quorum::Now;

/// An instant of the run, or a span, in microseconds.
pub(crate) type Time = u64;

pub(crate) const MILLIS: Time = 1_000;
pub(crate) const SECOND: Time = 1_000_000;

/// The clocks of one machine.
///
/// Both run at the same rate. The wall clock can be stepped, and both are stopped while the machine is frozen.
#[derive(Clone, Debug)]
pub(crate) struct MachineClock {
    /// By how many millionths the clocks run too fast.
    rate: i64,
    /// How far the wall clock is ahead of the run, in microseconds.
    offset: i64,
    frozen_since: Option<Time>,
    /// For how long the clocks were stopped.
    lost: Time,
    /// How far the boot clock was set ahead after a freeze, in nanoseconds.
    ahead: u64,
}

/// A day in November 2026.
const WALL_START: u64 = 1_795_000_000_000_000;

/// Machines boot some time before the run begins.
const BOOTED: u64 = 1_000_000_000;

impl MachineClock {
    pub(crate) fn new(rate: i64, offset: i64) -> Self {
        Self {
            rate,
            offset,
            frozen_since: None,
            lost: 0,
            ahead: 0,
        }
    }

    /// Returns the time that passed on this machine since the run began, in nanoseconds.
    fn passed(&self, at: Time) -> u64 {
        let at = self.frozen_since.map_or(at, |since| at.min(since)) - self.lost;
        (i128::from(at) * i128::from(1_000_000 + self.rate) / 1_000) as u64
    }

    pub(crate) fn boot(&self, at: Time) -> BootInstant {
        BootInstant::from_nanos(BOOTED + self.passed(at) + self.ahead)
    }

    pub(crate) fn wall_micros(&self, at: Time) -> u64 {
        (WALL_START + self.passed(at) / 1_000).saturating_add_signed(self.offset)
    }

    pub(crate) fn now(&self, at: Time) -> Now {
        Now {
            instant: self.boot(at),
            wall: WallTime::from_micros(self.wall_micros(at)),
        }
    }

    /// Returns when the boot clock shows `instant`, or a moment later. The clocks must not be frozen before
    /// that.
    pub(crate) fn when(&self, instant: BootInstant) -> Time {
        let passed = instant.as_nanos().saturating_sub(BOOTED + self.ahead);
        let rate = 1_000_000 + self.rate as i128;
        let micros = (i128::from(passed) * 1_000 + rate - 1) / rate;
        micros as Time + self.lost
    }

    /// Returns the span of the run in which this machine's clocks advance by `micros`.
    pub(crate) fn span_of(&self, micros: u64) -> Time {
        (i128::from(micros) * 1_000_000 / i128::from(1_000_000 + self.rate)) as Time
    }

    pub(crate) fn offset(&self) -> i64 {
        self.offset
    }

    pub(crate) fn step(&mut self, micros: i64) {
        self.offset += micros;
    }

    /// Sets the boot clock ahead, as `SystemClock` does after a suspension that it did not notice.
    pub(crate) fn set_ahead(&mut self, span: Duration) {
        self.ahead += span.as_nanos() as u64;
    }

    pub(crate) fn freeze(&mut self, at: Time) {
        self.frozen_since.get_or_insert(at);
    }

    pub(crate) fn thaw(&mut self, at: Time) {
        if let Some(since) = self.frozen_since.take() {
            self.lost += at - since;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instants_are_found_on_the_timeline() {
        for rate in [-40_000, -3, 0, 7, 40_000] {
            let mut clock = MachineClock::new(rate, 0);
            clock.freeze(100);
            clock.thaw(250);
            clock.set_ahead(Duration::from_micros(77));
            for at in [300, 12_345, 5_000_001] {
                let instant = clock.boot(at);
                let found = clock.when(instant);
                assert!(clock.boot(found) >= instant, "{rate} {at}");
                assert!(found.abs_diff(at) <= 1, "{rate} {at} {found}");
            }
        }
    }

    #[test]
    fn frozen_clocks_stand_still() {
        let mut clock = MachineClock::new(0, 5);
        clock.freeze(1_000);
        let stood_at = clock.wall_micros(1_000);
        assert_eq!(clock.boot(9_000), clock.boot(1_000));
        clock.thaw(9_000);
        assert_eq!(clock.wall_micros(9_500), stood_at + 500);
    }
}
