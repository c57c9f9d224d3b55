use std::time::{Duration, SystemTime};

use leasehold::clock::WallTime;

/// A duration in milliseconds, for every `_ms` of the JSON messages.
pub(crate) fn millis(span: Duration) -> u64 {
    u64::try_from(span.as_millis()).unwrap_or(u64::MAX)
}

pub(crate) fn whole_millis(span: Duration) -> humantime::FormattedDuration {
    humantime::format_duration(Duration::from_millis(millis(span)))
}

/// An instant of a wall clock, to the second.
pub(crate) fn timestamp(at: WallTime) -> String {
    humantime::format_rfc3339_seconds(system_time(at)).to_string()
}

fn system_time(at: WallTime) -> SystemTime {
    let time = SystemTime::UNIX_EPOCH + Duration::from_micros(at.as_micros());
    // A damaged record may contain a year with more than four digits.
    let latest = SystemTime::UNIX_EPOCH + Duration::from_secs(253_402_300_799);
    time.min(latest)
}

/// An instant of a wall clock, to the millisecond.
pub(crate) fn instant(at: WallTime) -> String {
    humantime::format_rfc3339_millis(system_time(at)).to_string()
}

/// What is left of a lease, rounded down to seconds.
pub(crate) fn expiry(left: Duration) -> humantime::FormattedDuration {
    humantime::format_duration(Duration::from_secs(left.as_secs()))
}

/// A duration that has passed: in seconds from 10 s on, in milliseconds below a second.
pub(crate) fn passed(span: Duration) -> humantime::FormattedDuration {
    let millis = millis(span);
    humantime::format_duration(Duration::from_millis(match millis {
        0..1_000 => millis,
        1_000..10_000 => millis / 100 * 100,
        _ => millis / 1_000 * 1_000,
    }))
}

/// A duration in seconds, rounded up, for people who wait for its end.
pub(crate) fn whole_seconds(span: Duration) -> humantime::FormattedDuration {
    let secs = span.as_secs() + u64::from(span.subsec_nanos() > 0);
    humantime::format_duration(Duration::from_secs(secs))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_damaged_date_is_shown_all_the_same() {
        assert_eq!(
            timestamp(WallTime::from_micros(u64::MAX)),
            "9999-12-31T23:59:59Z"
        );
    }
}
