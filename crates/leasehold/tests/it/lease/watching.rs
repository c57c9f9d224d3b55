//! Threads that wait for the loss of a lock, in real time.

use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use leasehold::memory::MemoryStore;
use leasehold::{LostReason, ReleaseOutcome, blocking};

/// Long enough for a machine that is busy.
const LIMIT: Duration = Duration::from_secs(30);

/// Waits on a thread of its own for the loss of `guard`.
fn watched(guard: &blocking::Guard) -> mpsc::Receiver<Option<LostReason>> {
    let watch = guard.loss_watch();
    let (sender, receiver) = mpsc::channel();
    let waiting = thread::Builder::new().spawn(move || sender.send(watch.wait()));
    waiting.expect("a thread");
    receiver
}

#[test]
fn watched_guard_is_freed_by_its_release() {
    let locks = blocking::Client::new(MemoryStore::new());
    let guard = locks.lock("x").acquire().unwrap();
    let watching = watched(&guard);
    assert_eq!(guard.release().unwrap(), ReleaseOutcome::Released);
    assert_eq!(watching.recv_timeout(LIMIT), Ok(None));
    assert!(locks.lock("x").try_acquire().unwrap().is_some());
}

#[test]
fn watch_ends_with_the_last_share() {
    let locks = blocking::Client::new(MemoryStore::new());
    let guard = locks.lock("x").acquire().unwrap();
    let inner = guard.reenter();
    let watching = watched(&guard);
    assert_eq!(guard.release().unwrap(), ReleaseOutcome::StillHeld);
    assert!(watching.try_recv().is_err());
    drop(inner);
    assert_eq!(watching.recv_timeout(LIMIT), Ok(None));
}

#[test]
fn watch_tells_why_the_guard_is_lost() {
    let locks = blocking::Client::new(MemoryStore::new());
    let lock = locks.lock("x").max_hold(Duration::from_millis(50));
    let guard = lock.acquire().unwrap();
    let watching = watched(&guard);
    assert_eq!(watching.recv_timeout(LIMIT), Ok(Some(LostReason::MaxHold)));
    let late = guard.loss_watch();
    drop(guard);
    assert_eq!(late.wait(), Some(LostReason::MaxHold));
}
