//! The only file that reads time.

use std::fmt;
use std::fs;
use std::future::Future;
use std::io;
use std::ops::{Add, Sub};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use crate::BoxFuture;

/// A point on the client's own clock, which goes on while the machine is suspended.
///
/// Only good for comparing with others of the same machine since its boot. `std::time::Instant`
/// stands still during suspend on Linux, and a lease would seem to live longer than it does.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BootInstant(u64);

impl BootInstant {
    /// The instant that lies `nanos` nanoseconds after the machine's boot.
    pub const fn from_nanos(nanos: u64) -> Self {
        Self(nanos)
    }

    /// Nanoseconds since the machine's boot.
    pub const fn as_nanos(self) -> u64 {
        self.0
    }

    /// How long ago `earlier` was; zero if it is later.
    pub const fn since(self, earlier: Self) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }
}

impl Add<Duration> for BootInstant {
    type Output = Self;

    fn add(self, span: Duration) -> Self {
        Self(
            self.0
                .saturating_add(u64::try_from(span.as_nanos()).unwrap_or(u64::MAX)),
        )
    }
}

impl Sub<Duration> for BootInstant {
    type Output = Self;

    fn sub(self, span: Duration) -> Self {
        Self(
            self.0
                .saturating_sub(u64::try_from(span.as_nanos()).unwrap_or(u64::MAX)),
        )
    }
}

impl fmt::Debug for BootInstant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "boot+{:?}", Duration::from_nanos(self.0))
    }
}

/// Which boot of which machine a [`BootInstant`] counts from: two processes that find the same one
/// read the same clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct BootId(u64);

impl BootId {
    /// The boot that the calling process lives in.
    ///
    /// # Errors
    ///
    /// Where `/proc` cannot be read.
    pub fn of_this_process() -> io::Result<Self> {
        let mut boot = fs::read("/proc/sys/kernel/random/boot_id")?;
        // Another namespace may count from elsewhere. Kernels before 5.6 have one for all.
        if let Ok(namespace) = fs::read_link("/proc/self/ns/time") {
            boot.extend_from_slice(namespace.as_os_str().as_encoded_bytes());
        }
        Ok(Self(fnv1a(&boot)))
    }

    pub(crate) const fn from_bits(bits: u64) -> Self {
        Self(bits)
    }

    pub(crate) const fn to_bits(self) -> u64 {
        self.0
    }
}

/// The hash called FNV-1a, of 64 bits: against accidents, not against people.
pub(crate) fn fnv1a(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

/// A reading of a wall clock, in microseconds since 1970. No lease is measured by it: it proposes fences,
/// compares machines with each other, says until when a file keeps a record, and is shown to people.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct WallTime(u64);

impl WallTime {
    /// The reading `micros` microseconds after 1970 began.
    pub const fn from_micros(micros: u64) -> Self {
        Self(micros)
    }

    /// Microseconds since 1970 began.
    pub const fn as_micros(self) -> u64 {
        self.0
    }

    /// The distance between two readings, whichever is later.
    pub const fn distance(self, other: Self) -> Duration {
        Duration::from_micros(self.0.abs_diff(other.0))
    }
}

/// A point on a clock by which a store keeps something for a span, as a [record](crate::RecordSlot).
pub trait Moment: Copy + Ord {
    /// The point that lies `span` later, or the last one there is.
    fn after(self, span: Duration) -> Self;

    /// How long ago `earlier` was; zero if it is later.
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
        Self(self.0.saturating_add(micros))
    }

    fn since(self, earlier: Self) -> Duration {
        Duration::from_micros(self.0.saturating_sub(earlier.0))
    }
}

/// Reads time and waits for it. Tests put a clock of their own in its place.
pub trait Clock: fmt::Debug + Send + Sync + 'static {
    /// Now, on the clock that counts suspend.
    fn now(&self) -> BootInstant;

    /// Now, on the wall clock.
    fn wall(&self) -> WallTime;

    /// Resolves once [`Clock::now`] has reached `deadline`, also if the machine slept meanwhile.
    /// Must be polled on the background thread (or, in tests, inside a tokio runtime).
    fn sleep_until(&self, deadline: BootInstant) -> BoxFuture<'static, ()>;

    /// The machine was found to have stood still, this clock with it, for as long as `span`: from
    /// now on [`Clock::now`] is ahead by that much, so that whatever ends at an instant ends that
    /// much sooner. A paused virtual machine finds out only by the clocks of others.
    fn stood_still(&self, span: Duration);
}

/// Runs `future` until `deadline` at the latest; `None` if the deadline came first.
///
/// # Cancel safety
///
/// Dropping it, like the deadline, drops `future`: it must be safe to drop.
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

/// The machine's clocks: `CLOCK_BOOTTIME` for spans and deadlines, `CLOCK_REALTIME` for the wall.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemClock;

impl SystemClock {
    /// The same instant as other processes of this machine read it, which were not told how long
    /// it [stood still](Clock::stood_still).
    pub fn as_other_processes_read(instant: BootInstant) -> BootInstant {
        instant - Duration::from_nanos(STOOD_STILL.load(Ordering::Acquire))
    }
}

/// By how much, in nanoseconds, the machine is known to have stood still unnoticed by its own
/// clock. One for the process, as there is one machine.
static STOOD_STILL: AtomicU64 = AtomicU64::new(0);

/// Timers of the runtime stand still during suspend; so a long sleep is cut into ticks, and the
/// clock is read again after each. This is how late a deadline may fire after waking up.
const TICK: Duration = Duration::from_millis(250);

impl Clock for SystemClock {
    fn now(&self) -> BootInstant {
        let since_boot = read(nix::time::ClockId::CLOCK_BOOTTIME);
        let nanos = u64::try_from(since_boot.as_nanos()).unwrap_or(u64::MAX);
        BootInstant(nanos.saturating_add(STOOD_STILL.load(Ordering::Acquire)))
    }

    fn wall(&self) -> WallTime {
        let since_epoch = read(nix::time::ClockId::CLOCK_REALTIME);
        WallTime(u64::try_from(since_epoch.as_micros()).unwrap_or(u64::MAX))
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

    fn stood_still(&self, span: Duration) {
        move_ahead(&STOOD_STILL, span);
    }
}

fn move_ahead(total: &AtomicU64, span: Duration) {
    let nanos = u64::try_from(span.as_nanos()).unwrap_or(u64::MAX);
    let add = |total: u64| Some(total.saturating_add(nanos));
    // It cannot fail, since `add` always has a value.
    let _ = total.fetch_update(Ordering::AcqRel, Ordering::Acquire, add);
}

fn read(clock: nix::time::ClockId) -> Duration {
    match clock.now() {
        Ok(time) => Duration::from(time),
        // Linux has had both clocks since 2.6.39; without one no lease could be kept safely.
        Err(errno) => unreachable!("clock_gettime failed: {errno}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arithmetic_saturates_at_both_ends() {
        let early = BootInstant::from_nanos(5);
        assert_eq!(early - Duration::from_secs(1), BootInstant::from_nanos(0));
        assert_eq!(early + Duration::MAX, BootInstant::from_nanos(u64::MAX));
        assert_eq!(early.since(early + Duration::from_secs(1)), Duration::ZERO);
        let wall = WallTime::from_micros(5);
        assert_eq!(wall.after(Duration::MAX), WallTime::from_micros(u64::MAX));
        assert_eq!(
            wall.since(wall.after(Duration::from_secs(1))),
            Duration::ZERO
        );
    }

    #[test]
    fn an_endless_standstill_never_turns_the_clock_back() {
        let total = AtomicU64::new(7);
        move_ahead(&total, Duration::MAX);
        assert_eq!(total.load(Ordering::Acquire), u64::MAX);
    }

    #[test]
    fn a_boot_is_the_same_for_all_who_live_in_it() {
        let boot = BootId::of_this_process().unwrap();
        assert_eq!(BootId::of_this_process().unwrap(), boot);
        assert_eq!(BootId::from_bits(boot.to_bits()), boot);
        // The published test vectors.
        assert_eq!(fnv1a(b""), 0xcbf2_9ce4_8422_2325);
        assert_eq!(fnv1a(b"foobar"), 0x8594_4171_f739_67e8);
    }

    #[tokio::test]
    async fn a_sleep_ends_at_its_deadline_and_not_before() {
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
