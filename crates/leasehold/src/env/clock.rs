//! The only file that reads time.

use std::fmt;
use std::future::Future;
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

use super::boxed::BoxFuture;
use super::platform;
#[doc(inline)]
pub use leasehold_types::{BootInstant, WallTime};

/// Identifies the boot of a machine from which a [`BootInstant`] counts. Two processes with the same id
/// read the same clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct BootId(u64);

impl BootId {
    /// Returns the boot in which the calling process runs.
    ///
    /// # Errors
    ///
    /// If `/proc` cannot be read, and always on Windows.
    pub fn of_this_process() -> io::Result<Self> {
        platform::boot().map(|boot| Self(fnv1a(&boot)))
    }

    /// No boot of any machine, for what no clock of a machine measures. A hash is never zero in practice.
    pub(crate) const ANY: Self = Self(0);

    pub(crate) const fn from_bits(bits: u64) -> Self {
        Self(bits)
    }

    pub(crate) const fn to_bits(self) -> u64 {
        self.0
    }
}

/// The 64-bit FNV-1a hash. It detects accidents, not attacks.
pub(crate) fn fnv1a(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

/// A point on a clock by which a store keeps something for a span, such as a [record](crate::store::RecordState).
pub trait Moment: Copy + Ord {
    /// Returns the point that lies `span` later, or the last one that exists.
    fn after(self, span: Duration) -> Self;

    /// Returns how long ago `earlier` was, or zero if it is later.
    fn since(self, earlier: Self) -> Duration;
}

impl Moment for BootInstant {
    fn after(self, span: Duration) -> Self {
        self + span
    }

    fn since(self, earlier: Self) -> Duration {
        self.since(earlier)
    }
}

impl Moment for WallTime {
    fn after(self, span: Duration) -> Self {
        let micros = u64::try_from(span.as_micros()).unwrap_or(u64::MAX);
        Self::from_micros(self.as_micros().saturating_add(micros))
    }

    fn since(self, earlier: Self) -> Duration {
        Duration::from_micros(self.as_micros().saturating_sub(earlier.as_micros()))
    }
}

/// Reads time and waits for it. Tests replace it with a clock of their own.
pub trait Clock: fmt::Debug + Send + Sync + 'static {
    /// Returns the current instant, on the clock that includes suspend.
    fn now(&self) -> BootInstant;

    /// Returns the current time of the wall clock.
    fn wall(&self) -> WallTime;

    /// Resolves once [`Clock::now`] has reached `deadline`, even if the machine slept meanwhile. Must be
    /// polled on the background thread (or, in tests, inside a tokio runtime).
    fn sleep_until(&self, deadline: BootInstant) -> BoxFuture<'static, ()>;

    /// Reports that the machine, and this clock with it, was paused for `span`. From now on,
    /// [`Clock::now`] is ahead by that much, so that every deadline comes that much sooner. A paused
    /// virtual machine can notice only by the clocks of others.
    fn was_paused(&self, span: Duration);
}

/// Runs `future` until `deadline` at the latest; `None` if the deadline came first.
///
/// # Cancel safety
///
/// Dropping it drops `future`, as the deadline does: `future` must be safe to drop.
pub async fn within<F: Future>(
    clock: &dyn Clock,
    deadline: BootInstant,
    future: F,
) -> Option<F::Output> {
    tokio::select! {
        biased;
        output = future => Some(output),
        () = clock.sleep_until(deadline) => None,
    }
}

/// The machine's clocks: one that counts suspend for spans and deadlines, and the wall clock.
///
/// The first is `CLOCK_BOOTTIME` on Linux, `CLOCK_MONOTONIC_RAW` on macOS, and `QueryInterruptTimePrecise` on
/// Windows.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemClock;

impl SystemClock {
    /// Returns the same instant as other processes on this machine read it. They do not know how long the
    /// machine [was paused](Clock::was_paused).
    pub fn as_other_processes_read(instant: BootInstant) -> BootInstant {
        instant - Duration::from_nanos(PAUSED.load(Ordering::Acquire))
    }
}

/// How many nanoseconds the machine was paused unnoticed by its own clock. One value per process, because
/// a process runs on one machine.
static PAUSED: AtomicU64 = AtomicU64::new(0);

/// Timers of the runtime stop during suspend, so a long sleep is cut into ticks, and the clock is read
/// again after each. A deadline may fire this late after the machine wakes up.
const TICK: Duration = Duration::from_millis(250);

impl Clock for SystemClock {
    fn now(&self) -> BootInstant {
        let nanos = u64::try_from(platform::since_boot().as_nanos()).unwrap_or(u64::MAX);
        BootInstant::from_nanos(nanos.saturating_add(PAUSED.load(Ordering::Acquire)))
    }

    fn wall(&self) -> WallTime {
        #[expect(clippy::disallowed_methods, reason = "the one place that reads time")]
        let since_epoch = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
        // A clock before 1970 reads as 1970.
        let since_epoch = since_epoch.unwrap_or_default();
        WallTime::from_micros(u64::try_from(since_epoch.as_micros()).unwrap_or(u64::MAX))
    }

    fn sleep_until(&self, deadline: BootInstant) -> BoxFuture<'static, ()> {
        Box::pin(async move {
            loop {
                let left = deadline.since(Self.now());
                if left.is_zero() {
                    return;
                }
                #[expect(clippy::disallowed_methods, reason = "the one place that sleeps")]
                tokio::time::sleep(left.min(TICK)).await;
            }
        })
    }

    fn was_paused(&self, span: Duration) {
        move_ahead(&PAUSED, span);
    }
}

fn move_ahead(total: &AtomicU64, span: Duration) {
    let nanos = u64::try_from(span.as_nanos()).unwrap_or(u64::MAX);
    let add = |total: u64| Some(total.saturating_add(nanos));
    // This cannot fail, because `add` always returns a value.
    let _ = total.fetch_update(Ordering::AcqRel, Ordering::Acquire, add);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_saturate_at_both_ends() {
        let wall = WallTime::from_micros(5);
        assert_eq!(wall.after(Duration::MAX), WallTime::from_micros(u64::MAX));
        assert_eq!(
            wall.since(wall.after(Duration::from_secs(1))),
            Duration::ZERO
        );
    }

    #[test]
    fn endless_pause_never_turns_the_clock_back() {
        let total = AtomicU64::new(7);
        move_ahead(&total, Duration::MAX);
        assert_eq!(total.load(Ordering::Acquire), u64::MAX);
    }

    #[test]
    fn boot_id_is_the_same_for_all_processes() {
        let boot = BootId::of_this_process().unwrap();
        assert_eq!(BootId::of_this_process().unwrap(), boot);
        assert_eq!(BootId::from_bits(boot.to_bits()), boot);
        // The published test vectors.
        assert_eq!(fnv1a(b""), 0xcbf2_9ce4_8422_2325);
        assert_eq!(fnv1a(b"foobar"), 0x8594_4171_f739_67e8);
    }

    #[tokio::test]
    async fn sleep_ends_at_its_deadline() {
        let deadline = SystemClock.now() + Duration::from_millis(20);
        SystemClock.sleep_until(deadline).await;
        assert!(SystemClock.now() >= deadline);
    }

    #[tokio::test]
    async fn within_prefers_a_result_that_is_there() {
        let past = SystemClock.now();
        assert_eq!(
            within(&SystemClock, past, std::future::ready(7)).await,
            Some(7)
        );
        assert_eq!(
            within(&SystemClock, past, std::future::pending::<()>()).await,
            None
        );
    }
}
