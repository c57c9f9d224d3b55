//! How many connections a client needs.

use std::time::Duration;

use leasehold::Client;
use leasehold_postgres::PostgresStore;
use leasehold_testkit::servers::{PostgresServer, until};

use crate::support::{server, taken};

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
