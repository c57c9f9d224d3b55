//! Waiters, and the notifications that wake them.

use std::time::Duration;

use leasehold::clock::{Clock as _, SystemClock};
use leasehold_testkit::servers::until;

use crate::support::{client, server, taken};

/// Ten waiters that only asked once a second would wait for five seconds in all.
const MOST: Duration = Duration::from_millis(2_500);

#[tokio::test(flavor = "multi_thread")]
async fn waiters_are_notified_of_their_turn() {
    let server = server().await;
    let (one, two) = (client(&server), client(&server));
    let mut waited = Duration::ZERO;
    for _ in 0..10 {
        let guard = taken(&one, "job").await;
        let waiting = leasehold::store::background::spawn(two.lock("job").acquire());
        tokio::task::block_in_place(|| {
            let count = "select count(*) from leasehold.waiter;";
            until("a waiter", || server.sql(count) == ["1"]);
        });
        let freed = SystemClock.now();
        guard.release().await.expect("a release");
        let guard = waiting.await.expect("a task").expect("the lock");
        waited += SystemClock.now().since(freed);
        guard.release().await.expect("a release");
    }
    assert!(waited < MOST, "{waited:?} for ten hand-overs");
}

/// The session of the notifications is cut. Its waiter listens again, and is notified again.
#[tokio::test(flavor = "multi_thread")]
async fn waiter_listens_again_after_a_cut() {
    let server = server().await;
    let (one, two) = (client(&server), client(&server));
    let guard = taken(&one, "job").await;
    let waiting = leasehold::store::background::spawn(two.lock("job").acquire());
    tokio::task::block_in_place(|| {
        let count = "select count(*) from leasehold.waiter;";
        until("a waiter", || server.sql(count) == ["1"]);
        let listening = "select pid from pg_stat_activity where query like 'listen %';";
        let before = server.sql(listening);
        server.sql(
            "select pg_terminate_backend(pid) from pg_stat_activity \
             where application_name = 'leasehold' and query like 'listen %';",
        );
        until("it listens again", || {
            let now = server.sql(listening);
            now.iter().any(|pid| !before.contains(pid))
        });
        let count = "select count(*) from leasehold.waiter;";
        assert_eq!(server.sql(count), ["1"], "it keeps its place");
    });
    let fence = guard.fence();
    guard.release().await.expect("a release");
    let guard = waiting.await.expect("a task").expect("the lock");
    assert!(guard.fence() > fence);
}
