//! The JSON of `acquire`, `renew` and `release`.

use std::time::Duration;

use leasehold::clock::{Clock as _, SystemClock};
use leasehold::handle::Handle;
use serde_json::{Value, json};

use crate::output::locks::holder_text::{mode_name, permits};
use crate::output::time_text::millis;

/// What `acquire` and `renew` print; without its text if the handle went into a file.
pub(super) fn handle(handle: &Handle, store: &str, is_shown: bool) -> Value {
    json!({
        "lock": handle.key().as_str(),
        "store": store,
        "mode": mode_name(handle.mode()),
        "permits": permits(handle.mode()),
        "fence": handle.fence().get(),
        "ttl_ms": millis(handle.ttl()),
        "expires_in_ms": millis(remaining(handle)),
        "handle": is_shown.then(|| handle.reveal()),
    })
}

/// What `release` prints.
pub(super) fn released(handle: &Handle, store: &str, released: bool) -> Value {
    json!({
        "lock": handle.key().as_str(),
        "store": store,
        "released": released,
    })
}

/// For how long the handle is good unless it is renewed.
pub(super) fn remaining(handle: &Handle) -> Duration {
    let now = SystemClock.now();
    if handle.is_portable() {
        // It was granted or renewed a moment ago.
        return handle.ttl();
    }
    handle
        .deadline()
        .map_or(Duration::ZERO, |deadline| deadline.since(now))
}
