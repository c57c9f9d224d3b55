//! The JSON of `hold`.

use std::time::Duration;

use leasehold::{Fence, GuardSet};
use serde_json::{Value, json};

use crate::locks::lost_lock::LostLock;
use crate::options::lock_options::LockOptions;
use crate::output::locks::holder_text::{mode_name, permits};
use crate::output::time_text::millis;

/// The line of `hold` when the lock is held.
pub(super) fn held(
    lock_options: &LockOptions,
    guards: &GuardSet,
    store: &str,
    waited: Duration,
) -> Value {
    let expires = guards.deadline().map(|_| millis(guards.remaining()));
    json!({
        "event": "held",
        "lock": lock_options.name,
        "store": store,
        "mode": mode_name(lock_options.mode()),
        "permits": permits(lock_options.mode()),
        "fence": guards.fence(&lock_options.name).map(Fence::get),
        "ttl_ms": expires.and(guards.guards().next()).map(|guard| millis(guard.ttl())),
        "expires_in_ms": expires,
        "waited_ms": millis(waited),
    })
}

/// The line of `hold` when the lock is lost.
pub(super) fn lost(loss: &LostLock) -> Value {
    json!({
        "event": "lost",
        "lock": loss.lock,
        "reason": loss.reason,
    })
}
