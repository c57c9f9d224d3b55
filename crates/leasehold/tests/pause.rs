//! The correction of the system's clock applies to the whole process, so this test runs in one of its
//! own.

use std::time::Duration;

use leasehold::Client;
use leasehold::clock::{BootInstant, Clock, SystemClock};
use leasehold::memory::MemoryStore;

#[test]
fn process_reacts_to_a_pause() {
    clock_is_ahead_of_other_processes_after_a_pause();
    a_handle_has_its_times_as_other_processes_read_them();
}

fn clock_is_ahead_of_other_processes_after_a_pause() {
    let before = SystemClock.now();
    let span = Duration::from_secs(1_000);
    SystemClock.was_paused(span);
    let now = SystemClock.now();
    assert!(now.since(before) >= span);
    assert_eq!(now.since(SystemClock::as_other_processes_read(now)), span);
    let deadline = now + span;
    SystemClock.was_paused(span);
    assert!(SystemClock.now() >= deadline, "it comes that much sooner");
}

fn a_handle_has_its_times_as_other_processes_read_them() {
    let locks = Client::new(MemoryStore::new());
    let hold = Duration::from_secs(3_600);
    pollster::block_on(async {
        let before = SystemClock::as_other_processes_read(SystemClock.now());
        let guard = locks.lock("y").max_hold(hold).acquire().await;
        let guard = guard.expect("a free lock");
        let deadline = guard.deadline().map(SystemClock::as_other_processes_read);
        let after = SystemClock::as_other_processes_read(SystemClock.now());
        let handle = guard.into_handle().expect("a handle");
        assert_eq!(handle.deadline(), deadline);
        let end = hold_deadline(&handle.reveal());
        assert!(before + hold <= end && end <= after + hold, "{end:?}");
    });
}

/// The end of the hold, in the text of a handle: its ninth field, behind mode and owner.
fn hold_deadline(text: &str) -> BootInstant {
    let digits = 2 * (1 + 24 + 4 * 8);
    let number = text
        .strip_prefix("lh1_")
        .and_then(|text| text.get(digits..digits + 16));
    let number = u64::from_str_radix(number.expect("a field"), 16);
    BootInstant::from_nanos(number.expect("a number"))
}
