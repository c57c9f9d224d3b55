use std::fmt;
use std::ops::{Add, Sub};
use std::time::{Duration, SystemTime, SystemTimeError, UNIX_EPOCH};

/// A point on the client's own clock, which continues while the machine is suspended.
///
/// Compare it only with other instants of the same machine since its boot. `std::time::Instant` stops
/// during suspend on Linux, so a lease would seem to live longer than it does.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BootInstant(u64);

impl BootInstant {
    /// Returns the instant `nanos` nanoseconds after the machine's boot.
    #[inline]
    pub const fn from_nanos(nanos: u64) -> Self {
        Self(nanos)
    }

    /// Returns the nanoseconds since the machine's boot.
    #[inline]
    pub const fn as_nanos(self) -> u64 {
        self.0
    }

    /// Returns how long ago `earlier` was, or zero if it is later.
    #[inline]
    pub const fn since(self, earlier: Self) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }
}

impl Add<Duration> for BootInstant {
    type Output = Self;

    #[inline]
    fn add(self, span: Duration) -> Self {
        Self(
            self.0
                .saturating_add(u64::try_from(span.as_nanos()).unwrap_or(u64::MAX)),
        )
    }
}

impl Sub<Duration> for BootInstant {
    type Output = Self;

    #[inline]
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

/// A reading of a wall clock, in microseconds since 1970. No lease depends on it. It proposes fences,
/// compares the clocks of machines, limits how long a file keeps a record, and is shown to people.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct WallTime(u64);

impl WallTime {
    /// Returns the reading `micros` microseconds after 1970 began.
    #[inline]
    pub const fn from_micros(micros: u64) -> Self {
        Self(micros)
    }

    /// Returns the microseconds since 1970 began.
    #[inline]
    pub const fn as_micros(self) -> u64 {
        self.0
    }

    /// Returns the distance between two readings, whichever is later.
    pub const fn distance(self, other: Self) -> Duration {
        Duration::from_micros(self.0.abs_diff(other.0))
    }
}

impl From<WallTime> for SystemTime {
    fn from(time: WallTime) -> Self {
        UNIX_EPOCH + Duration::from_micros(time.0)
    }
}

impl TryFrom<SystemTime> for WallTime {
    type Error = SystemTimeError;

    /// Drops what is shorter than a microsecond. Fails for a time before 1970.
    fn try_from(time: SystemTime) -> Result<Self, SystemTimeError> {
        let micros = time.duration_since(UNIX_EPOCH)?.as_micros();
        Ok(Self(u64::try_from(micros).unwrap_or(u64::MAX)))
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
    }

    #[test]
    fn wall_time_converts_to_system_time_and_back() {
        let time = WallTime::from_micros(1_700_000_000_000_001);
        assert_eq!(WallTime::try_from(SystemTime::from(time)).unwrap(), time);
        let before_1970 = UNIX_EPOCH - Duration::from_secs(1);
        assert!(WallTime::try_from(before_1970).is_err());
    }
}
