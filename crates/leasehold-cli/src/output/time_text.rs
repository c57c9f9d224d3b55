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

/// An instant with its age, if that is at least a minute: `2026-11-23T16:48:30Z (3m ago)`.
pub(crate) fn timestamp_and_age(at: WallTime, now: WallTime) -> String {
    let age = Duration::from_micros(now.as_micros().saturating_sub(at.as_micros()));
    match age.as_secs() {
        0..60 => timestamp(at),
        _ => format!("{} ({} ago)", timestamp(at), coarse(age)),
    }
}

/// A duration in its greatest unit: `3m`, `2h`, `5d`.
pub(crate) fn coarse(span: Duration) -> String {
    match span.as_secs() {
        secs @ 0..60 => format!("{secs}s"),
        secs @ 60..3_600 => format!("{}m", secs / 60),
        secs @ 3_600..172_800 => format!("{}h", secs / 3_600),
        secs => format!("{}d", secs / 86_400),
    }
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

    #[test]
    fn ages_are_in_the_greatest_unit() {
        let at = WallTime::from_micros(1_700_000_000_000_000);
        let after = |secs: u64| WallTime::from_micros(at.as_micros() + secs * 1_000_000);
        let plain = "2023-11-14T22:13:20Z";
        for (secs, age) in [(60, "1m"), (3_599, "59m"), (7_300, "2h"), (200_000, "2d")] {
            let shown = timestamp_and_age(at, after(secs));
            assert_eq!(shown, format!("{plain} ({age} ago)"));
        }
        assert_eq!(timestamp_and_age(at, after(59)), plain);
        assert_eq!(
            timestamp_and_age(after(9), at),
            "2023-11-14T22:13:29Z",
            "another clock"
        );
    }
}
