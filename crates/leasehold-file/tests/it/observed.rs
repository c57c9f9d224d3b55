//! What a client of the file store reports about itself.

use std::time::Duration;

use leasehold::LostReason;
use leasehold::blocking::Client;
use leasehold::telemetry::{
    ACQUIRE_WAIT, CONTENDED, HAND_OVER, HELD, HOLD, LOST, MEMBERS, RELEASES, RENEWAL,
};
use leasehold_file::FileStore;
use leasehold_testkit::servers::until;
use leasehold_testkit::telemetry::TestRecorder;

#[test]
fn file_store_client_reports_each_step_once() {
    let directory = tempfile::tempdir().unwrap();
    let recorder = TestRecorder::new();
    let store = FileStore::open(directory.path()).unwrap();
    let client = recorder.scope(|| Client::new(store));
    let count = |name: &str, labels: &[(&str, &str)]| recorder.samples(name, labels).len();
    let guard = client.lock("x").acquire().unwrap();
    assert_eq!(recorder.sum(HELD.name, &[]), 1.0);
    assert!(client.lock("x").try_acquire().unwrap().is_none());
    let wait = Duration::from_millis(100);
    assert!(client.lock("x").wait(wait).acquire().is_err());
    let waited = recorder.samples(ACQUIRE_WAIT.name, &[("outcome", "timeout")]);
    assert!(waited.len() == 1 && waited[0] >= 0.1, "{waited:?}");
    // Later, a child process of another test may have the file open for a moment, which looks like another holder.
    assert_eq!(recorder.sum(CONTENDED.name, &[]), 2.0);
    guard.release().unwrap();
    let longest = Duration::from_millis(50);
    let guard = client.lock("x").max_hold(longest).acquire().unwrap();
    assert_eq!(guard.wait_lost(), LostReason::MaxHold);
    drop(guard);
    until("it is freed", || recorder.sum(RELEASES.name, &[]) == 2.0);
    for (name, label, value, expected) in [
        (ACQUIRE_WAIT.name, "outcome", "granted", 2),
        (ACQUIRE_WAIT.name, "outcome", "busy", 1),
        (HOLD.name, "end", "released", 1),
        (HOLD.name, "end", "lost", 1),
        (LOST.name, "reason", "max_hold", 1),
        (RENEWAL.name, "outcome", "renewed", 0),
    ] {
        assert_eq!(count(name, &[(label, value)]), expected, "{name} {value}");
    }
    let lost = recorder.samples(HOLD.name, &[("end", "lost")]);
    assert_eq!(lost, [longest.as_secs_f64()]);
    assert_eq!(recorder.sum(HELD.name, &[]), 0.0);
    for (name, labels) in recorder.asked_for() {
        assert_eq!(labels["store"], client.to_string(), "{name}");
        assert_ne!(name, MEMBERS.name, "it has no members");
        assert_ne!(name, HAND_OVER.name, "nobody is told of a turn");
    }
}
