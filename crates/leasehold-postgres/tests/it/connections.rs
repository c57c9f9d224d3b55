//! How many connections a client needs.

use std::sync::Arc;
use std::time::Duration;

use leasehold::Client;
use leasehold::clock::{Clock as _, SystemClock, within};
use leasehold::store::{LockRequest, Progress};
use leasehold_postgres::PostgresStore;
use leasehold_testkit::faults::{NetworkFault, Proxy};
use leasehold_testkit::servers::{PostgresServer, until};

use crate::support::{LONG, server, session, taken};

/// The address for a user who may open that many connections.
fn limited(server: &PostgresServer, connections: u32) -> String {
    let role = format!(
        "create role app login password 'app-secret' connection limit {connections}; \
         grant usage on schema leasehold to app; \
         grant select, insert, update, delete on all tables in schema leasehold to app;"
    );
    server.sql(&role);
    let login = format!("tester:{}@", PostgresServer::PASSWORD);
    server.url().replace(&login, "app:app-secret@")
}

#[tokio::test]
async fn grant_comes_with_both_connections() {
    let server = server().await;
    let client = Client::new(PostgresStore::new(limited(&server, 2)).expect("a URL"));
    let guard = taken(&client, "job").await;
    let sessions = "select count(*) from pg_stat_activity where usename = 'app';";
    assert_eq!(server.sql(sessions), ["2"]);
    guard.release().await.expect("a release");
}

#[tokio::test(flavor = "multi_thread")]
async fn one_connection_suffices_to_hold_a_lock() {
    let server = server().await;
    let client = Client::new(PostgresStore::new(limited(&server, 1)).expect("a URL"));
    let lock = client.lock("job").ttl(Duration::from_secs(3));
    let guard = lock.acquire().await.expect("the lock");
    let end = "select until from leasehold.lock where name = 'job';";
    let first = server.sql(end);
    tokio::task::block_in_place(|| {
        until("the lease is renewed", || {
            assert!(guard.is_valid(), "lost");
            server.sql(end) != first
        });
    });
    assert_eq!(client.holders("job").await.expect("an answer").len(), 1);
    guard.release().await.expect("a release");
    assert_eq!(
        server.sql("select owner is null from leasehold.lock;"),
        ["t"]
    );
}

/// Each of them ends long before it could tell that the server is silent.
#[tokio::test(flavor = "multi_thread")]
async fn impatient_attempts_leave_a_silent_connection() {
    let server = server().await;
    let network = Proxy::to(server.port());
    let store = PostgresStore::new(PostgresServer::url_at(network.port())).expect("a URL");
    let (session, request) = session(&store);
    let mut request = LockRequest::clone(&request);
    request.ttl = Duration::from_secs(3);
    let (request, progress) = (Arc::new(request), Progress::new());
    session.acquire(&request, &progress).await.expect("a lock");
    network.set(NetworkFault::Mute);
    let (opened, end) = (network.opened(), SystemClock.now() + LONG);
    while network.opened() == opened {
        assert!(SystemClock.now() < end, "they stay on the connection");
        let soon = SystemClock.now() + Duration::from_millis(20);
        drop(within(&SystemClock, soon, session.acquire(&request, &progress)).await);
    }
}
