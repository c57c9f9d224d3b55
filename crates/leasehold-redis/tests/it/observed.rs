//! What a client of real servers reports about itself.

use std::time::Duration;

use leasehold::telemetry::{
    ACQUIRE_WAIT, ATTEMPTS, CONTENDED, HAND_OVER, HELD, HOLD, LOST, MEMBERS, RELEASES, RENEWAL,
};
use leasehold::{Client, LostReason, blocking};
use leasehold_testkit::servers::{RedisServer, until};
use leasehold_testkit::telemetry::{TestRecorder, TraceRecorder};

use crate::support::store;

const PASSWORD: &str = "a-word-that-nobody-may-see";
const TTL: Duration = Duration::from_secs(1);

#[test]
fn client_thread_reports_each_step_once() {
    let server = RedisServer::builder().password(PASSWORD).start();
    let recorder = TestRecorder::new();
    let client = || recorder.scope(|| blocking::Client::new(store(&server)));
    let (holder, waiter) = (client(), client());
    let count = |name: &str, labels: &[(&str, &str)]| recorder.samples(name, labels).len();
    let guard = holder.lock("x").ttl(TTL).acquire().unwrap();
    assert_eq!(recorder.sum(HELD.name, &[]), 1.0);
    assert!(waiter.lock("x").try_acquire().unwrap().is_none());
    let wait = Duration::from_millis(200);
    let error = waiter.lock("x").wait(wait).acquire().unwrap_err();
    assert!(error.is_busy());
    let waited = recorder.samples(ACQUIRE_WAIT.name, &[("outcome", "timeout")]);
    assert!(waited.len() == 1 && waited[0] >= 0.2, "{waited:?}");
    until("a renewal", || {
        count(RENEWAL.name, &[("outcome", "renewed")]) >= 1
    });
    // The lock passes between the two, once the queue has no other waiter.
    until("the wait has left", || {
        holder.waiters("x").unwrap().is_empty()
    });
    let granted = std::thread::scope(|scope| {
        let waiting = scope.spawn(|| waiter.lock("x").acquire().unwrap());
        until("somebody waits", || {
            !holder.waiters("x").unwrap().is_empty()
        });
        guard.release().unwrap();
        waiting.join().unwrap()
    });
    // If the notification is late, the waiter finds out by itself, and there is no hand-over. The test of
    // the example's page checks that there are some.
    let hand_overs = recorder.samples(HAND_OVER.name, &[]);
    assert!(hand_overs.len() <= 1 && hand_overs.iter().all(|span| *span > 0.0));
    granted.release().unwrap();
    // A loss.
    let guard = holder.lock("y").ttl(TTL).acquire().unwrap();
    server.command(&["DEL", "y"]);
    assert_eq!(guard.wait_lost(), LostReason::Gone);
    drop(guard);
    until("all is freed", || recorder.sum(RELEASES.name, &[]) == 3.0);
    for (name, label, value, expected) in [
        (ACQUIRE_WAIT.name, "outcome", "granted", 3),
        (ACQUIRE_WAIT.name, "outcome", "busy", 1),
        (HOLD.name, "end", "released", 2),
        (HOLD.name, "end", "lost", 1),
        (LOST.name, "reason", "gone", 1),
        (ATTEMPTS.name, "outcome", "granted", 3),
        (RELEASES.name, "outcome", "released", 2),
        (RELEASES.name, "outcome", "was_lost", 1),
    ] {
        assert_eq!(count(name, &[(label, value)]), expected, "{name} {value}");
    }
    assert_eq!(recorder.sum(LOST.name, &[]), 1.0);
    assert_eq!(recorder.sum(HELD.name, &[]), 0.0);
    assert_eq!(recorder.sum(CONTENDED.name, &[]), 3.0);
    // Each client has its own view of the only member.
    let trusted = recorder.sum(MEMBERS.name, &[("state", "trusted")]);
    assert_eq!(trusted, 2.0);
    for (name, labels) in recorder.asked_for() {
        assert_eq!(labels["store"], holder.to_string(), "{name}");
        assert!(!labels["store"].contains(PASSWORD));
    }
}

#[tokio::test]
async fn spans_name_no_password_and_no_owner() {
    let server = RedisServer::builder().password(PASSWORD).start();
    let recorder = TraceRecorder::new();
    let _watching = recorder.watch();
    let client = Client::builder(store(&server)).on_current_runtime().build();
    let guard = client.lock("x").ttl(TTL).acquire().await.unwrap();
    assert!(client.lock("x").try_acquire().await.unwrap().is_none());
    guard.deadline_moved(guard.deadline()).await;
    let owner = guard.owner().to_string();
    let (_, nonce) = owner.split_once('.').unwrap();
    guard.release().await.unwrap();
    let names = |name: &str| recorder.named(name).len();
    let counts = ["acquire", "renewal", "release"].map(names);
    assert_eq!((counts[0], counts[2]), (2, 1), "{counts:?}");
    assert!(counts[1] >= 1, "{counts:?}");
    let acquire = &recorder.named("acquire")[1];
    assert_eq!(acquire.fields["outcome"], "busy");
    let values = recorder.values();
    for secret in [PASSWORD, nonce, "redis://"] {
        let told = values.iter().find(|value| value.contains(secret));
        assert_eq!(told, None);
    }
}
