//! The correction of the system's clock holds for a whole process: so this test has one of its own.

use std::time::Duration;

use leasehold::clock::{Clock, SystemClock};

#[test]
fn a_machine_that_stood_still_is_ahead_of_what_other_processes_read() {
    let before = SystemClock.now();
    let span = Duration::from_secs(1_000);
    SystemClock.stood_still(span);
    let now = SystemClock.now();
    assert!(now.since(before) >= span);
    assert_eq!(now.since(SystemClock::as_other_processes_read(now)), span);
    let deadline = now + span;
    SystemClock.stood_still(span);
    assert!(SystemClock.now() >= deadline, "it comes that much sooner");
}
