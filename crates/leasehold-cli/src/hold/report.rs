//! The JSON of the subcommands for scripts, version 1.

use std::time::Duration;

use leasehold::clock::{Clock as _, SystemClock};
use leasehold::{Fence, GuardSet, Handle};
use serde_json::{Value, json};

use crate::holder_text::{millis, mode_name, permits};
use crate::lock_options::LockOptions;
use crate::run::hold::Loss;

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
pub(super) fn lost(loss: &Loss) -> Value {
    json!({
        "version": VERSION,
        "event": "lost",
        "lock": loss.lock,
        "reason": loss.reason,
    })
}

/// What `acquire` and `renew` print; without its text if the handle went into a file.
pub(super) fn handle(handle: &Handle, store: &str, is_shown: bool) -> Value {
    json!({
        "version": VERSION,
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
        "version": VERSION,
        "lock": handle.key().as_str(),
        "store": store,
        "released": released,
    })
}

/// For how long the handle is good unless it is renewed.
pub(super) fn remaining(handle: &Handle) -> Duration {
    let now = SystemClock.now();
    handle
        .deadline()
        .map_or(Duration::ZERO, |deadline| deadline.since(now))
}
