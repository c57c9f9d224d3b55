use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use leasehold::clock::{BootInstant, Clock, SystemClock, WallTime};
use leasehold::store::BoxFuture;

/// The clocks of the machine, except that the wall clock is wrong.
#[derive(Debug, Default)]
pub struct ShiftedClock {
    /// By how many microseconds it is ahead.
    ahead: AtomicI64,
}

impl ShiftedClock {
    /// Returns clocks whose wall clock is ahead by some microseconds, or behind if the number is negative.
    pub fn ahead(micros: i64) -> Self {
        Self {
            ahead: AtomicI64::new(micros),
        }
    }

    /// Steps the wall clock.
    pub fn set(&self, micros: i64) {
        self.ahead.store(micros, Ordering::SeqCst);
    }
}

impl Clock for ShiftedClock {
    fn now(&self) -> BootInstant {
        SystemClock.now()
    }

    fn wall(&self) -> WallTime {
        let ahead = self.ahead.load(Ordering::SeqCst);
        WallTime::from_micros(SystemClock.wall().as_micros().saturating_add_signed(ahead))
    }

    fn sleep_until(&self, deadline: BootInstant) -> BoxFuture<'static, ()> {
        SystemClock.sleep_until(deadline)
    }

    fn was_paused(&self, span: Duration) {
        SystemClock.was_paused(span);
    }
}
