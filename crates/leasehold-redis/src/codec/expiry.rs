use std::time::Duration;

/// Milliseconds for PX: a TTL of zero would delete the key.
pub(crate) fn milliseconds(ttl: Duration) -> u64 {
    u64::try_from(ttl.as_millis()).unwrap_or(u64::MAX).max(1)
}
