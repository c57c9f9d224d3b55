use std::time::Duration;

use leasehold::clock::{Clock, SystemClock};

/// How long a test waits for something that must happen. It is long, since machines may be slow.
pub const LIMIT: Duration = Duration::from_secs(30);

/// Waits until `condition` holds.
///
/// # Panics
///
/// If `condition` still does not hold after [`LIMIT`]. The message names `what`.
#[track_caller]
pub fn until(what: &str, mut condition: impl FnMut() -> bool) {
    let deadline = SystemClock.now() + LIMIT;
    while !condition() {
        assert!(SystemClock.now() < deadline, "{what}: not within {LIMIT:?}");
        #[expect(
            clippy::disallowed_methods,
            reason = "the pause between two looks at a condition; tests may block their thread"
        )]
        std::thread::sleep(Duration::from_millis(2));
    }
}
