//! Waiters, and the notifications that wake them.

use std::time::Duration;

use leasehold::Client;
use leasehold::clock::{Clock as _, SystemClock};
use leasehold_postgres::PostgresStore;
use leasehold_testkit::faults::{NetworkFault, Proxy};
use leasehold_testkit::servers::{PostgresServer, until};

use crate::support::{LONG, client, server, taken};

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

/// The session of the notifications is cut. Its waiter asks in another session, which listens too.
#[tokio::test(flavor = "multi_thread")]
async fn waiter_listens_again_after_a_cut() {
    let server = server().await;
    let (one, two) = (client(&server), client(&server));
    let guard = taken(&one, "job").await;
    let waiting = leasehold::store::background::spawn(two.lock("job").acquire());
    tokio::task::block_in_place(|| {
        let count = "select count(*) from leasehold.waiter;";
        until("a waiter", || server.sql(count) == ["1"]);
        let asking = "select pid from pg_stat_activity \
                      where application_name = 'leasehold' and query like '%acquire%';";
        let before = server.sql(asking);
        server.sql(
            "select pg_terminate_backend(pid) from pg_stat_activity \
             where application_name = 'leasehold';",
        );
        until("it asks again", || {
            let now = server.sql(asking);
            now.iter().any(|pid| !before.contains(pid))
        });
        assert_eq!(server.sql(count), ["1"], "it keeps its place");
    });
    let fence = guard.fence();
    guard.release().await.expect("a release");
    let guard = waiting.await.expect("a task").expect("the lock");
    assert!(guard.fence() > fence);
}

/// The answer to the release is the grant of the next: the waiter asks no more.
#[tokio::test(flavor = "multi_thread")]
async fn release_grants_the_waiter_of_the_same_client() {
    const HAND_OVERS: u64 = 10;
    let server = server().await;
    let network = Proxy::to(server.port());
    let store = PostgresStore::new(PostgresServer::url_at(network.port())).expect("a URL");
    let client = Client::new(store);
    let mut asked = 0;
    for _ in 0..HAND_OVERS {
        let guard = taken(&client, "job").await;
        let waiting = leasehold::store::background::spawn(client.lock("job").ttl(LONG).acquire());
        tokio::task::block_in_place(|| {
            let count = "select count(*) from leasehold.waiter;";
            until("a waiter", || server.sql(count) == ["1"]);
        });
        let (fence, before) = (guard.fence(), network.requests());
        guard.release().await.expect("a release");
        let guard = waiting.await.expect("a task").expect("the lock");
        asked += network.requests() - before;
        assert!(guard.fence() > fence && guard.is_valid());
        let remaining = "select until > clock_timestamp() + interval '50 s' from leasehold.lock;";
        assert_eq!(server.sql(remaining), ["t"], "a whole lease");
        guard.release().await.expect("a release");
    }
    // A waiter also asks once a second.
    assert!(asked < 2 * HAND_OVERS, "{asked} requests");
}

/// A waiter of another client that is gone costs no more than its place.
#[tokio::test(flavor = "multi_thread")]
async fn lock_reserved_for_a_dead_waiter_passes_on() {
    let server = server().await;
    let network = Proxy::to(server.port());
    let store = PostgresStore::new(PostgresServer::url_at(network.port())).expect("a URL");
    let (one, dies, next) = (client(&server), Client::new(store), client(&server));
    let guard = taken(&one, "job").await;
    let mut waits = Vec::new();
    for (number, client) in [&dies, &next].into_iter().enumerate() {
        let lock = client.lock("job").ttl(LONG);
        waits.push(leasehold::store::background::spawn(lock.acquire()));
        tokio::task::block_in_place(|| {
            let count = "select count(*) from leasehold.waiter;";
            until("a waiter", || {
                server.sql(count) == [(number + 1).to_string()]
            });
        });
    }
    network.set(NetworkFault::Frozen);
    guard.release().await.expect("a release");
    let until_reserved = "select until < clock_timestamp() + interval '5 s' from leasehold.lock;";
    assert_eq!(server.sql(until_reserved), ["t"]);
    let freed = SystemClock.now();
    let next = waits.pop().expect("a wait").await.expect("a task");
    assert!(next.expect("the lock").is_valid());
    assert!(SystemClock.now().since(freed) < LONG / 2);
}

/// The place of a waiter lasts longer than its lease, and the lock is reserved for it as long as its place lasts.
#[tokio::test(flavor = "multi_thread")]
async fn reserved_lock_is_leased_for_one_ttl() {
    let server = server().await;
    let (one, two) = (client(&server), client(&server));
    let guard = taken(&one, "job").await;
    let lock = two.lock("job").ttl(Duration::from_secs(2));
    let waiting = leasehold::store::background::spawn(lock.acquire());
    tokio::task::block_in_place(|| {
        let count = "select count(*) from leasehold.waiter;";
        until("a waiter", || server.sql(count) == ["1"]);
    });
    guard.release().await.expect("a release");
    let _guard = waiting.await.expect("a task").expect("the lock");
    let in_time = "select until <= clock_timestamp() + interval '2 s' from leasehold.lock;";
    assert_eq!(server.sql(in_time), ["t"]);
}
