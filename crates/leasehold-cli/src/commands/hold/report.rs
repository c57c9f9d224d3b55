//! The JSON of `hold`, version 1.

use std::time::Duration;

use leasehold::{Fence, GuardSet};
use serde_json::{Value, json};

use crate::locks::held_locks::LostLock;
use crate::options::lock_options::LockOptions;
use crate::output::holder_text::{mode_name, permits};
use crate::output::time_text::millis;

/// Stays the same until a field changes its meaning or is removed.
const VERSION: u32 = 1;

/// The line of `hold` when the lock is held.
pub(super) fn held(
    lock_options: &LockOptions,
    guards: &GuardSet,
    store: &str,
    waited: Duration,
) -> Value {
    let expires = guards.deadline().map(|_| millis(guards.remaining()));
    json!({
        "version": VERSION,
        "event": "held",
        "lock": lock_options.name,
        "store": store,
        "mode": mode_name(lock_options.mode()),
        "permits": permits(lock_options.mode()),
        "fence": guards.fence(&lock_options.name).map(Fence::get),
        "ttl_ms": expires.is_some().then(|| millis(lock_options.ttl)),
        "expires_in_ms": expires,
        "waited_ms": millis(waited),
    })
}

/// The line of `hold` when the lock is lost.
pub(super) fn lost(loss: &LostLock) -> Value {
    json!({
        "version": VERSION,
        "event": "lost",
        "lock": loss.lock,
        "reason": loss.reason,
    })
}
