//! How people write durations.

use std::fmt;
use std::time::Duration;

/// Returns a duration as people write it, such as `1m 30s` or `250ms`.
///
/// # Examples
///
/// ```
/// use std::time::Duration;
/// use leasehold::store::exact_span;
///
/// assert_eq!(exact_span(Duration::from_millis(1_500)).to_string(), "1s 500ms");
/// assert_eq!(exact_span(Duration::from_secs(86_400)).to_string(), "1day");
/// ```
pub fn exact_span(span: Duration) -> impl fmt::Display {
    humantime::format_duration(span)
}

/// Returns a duration as [`exact_span`] does, rounded: to seconds from 10 s on, and to milliseconds below a second.
///
/// # Examples
///
/// ```
/// use std::time::Duration;
/// use leasehold::store::rough_span;
///
/// assert_eq!(rough_span(Duration::from_micros(61_234_567)).to_string(), "1m 1s");
/// assert_eq!(rough_span(Duration::from_nanos(2_345_678)).to_string(), "2ms");
/// assert_eq!(rough_span(Duration::from_nanos(45_678)).to_string(), "46us");
/// ```
pub fn rough_span(span: Duration) -> impl fmt::Display {
    let unit = match span.as_millis() {
        0 => Duration::from_micros(1),
        1..1_000 => Duration::from_millis(1),
        1_000..10_000 => Duration::from_millis(100),
        _ => Duration::from_secs(1),
    };
    let nanos = span.saturating_add(unit / 2).as_nanos();
    let units = nanos / unit.as_nanos();
    humantime::format_duration(unit.saturating_mul(u32::try_from(units).unwrap_or(u32::MAX)))
}
