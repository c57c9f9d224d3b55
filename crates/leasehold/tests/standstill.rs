//! The correction of the system's clock holds for a whole process: so this test has one of its own.

use std::time::Duration;

use leasehold::clock::{Clock, SystemClock};
use leasehold::{Client, MemoryStore};

#[test]
fn what_a_process_does_that_was_told_of_a_standstill() {
    a_machine_that_stood_still_is_ahead_of_what_other_processes_read();
    a_lock_can_be_left_by_who_was_told_of_a_standstill();
}

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

fn a_lock_can_be_left_by_who_was_told_of_a_standstill() {
    let locks = Client::new(MemoryStore::new());
    pollster::block_on(async {
        let guard = locks.lock("x").acquire().await.expect("a free lock");
        let left = guard.leave_for(Duration::from_secs(50)).await;
        assert!(left.is_ok(), "{left:?}");
        let next = locks.lock("x").try_acquire().await.expect("an answer");
        assert!(next.is_none());
    });
}
