//! What a crash of the server undoes.

use leasehold::Client;
use leasehold_postgres::PostgresStore;
use leasehold_testkit::servers::PostgresServer;

use crate::support::{LONG, is_free, store, taken};

/// A server that writes to its log of changes only what a transaction waits for.
async fn lazy_server() -> PostgresServer {
    let server = PostgresServer::builder().setting("wal_writer_delay", "10s");
    let server = server.start();
    store(&server).init().await.expect("the schema");
    server
}

fn client_with(server: &PostgresServer, parameters: &str) -> Client {
    Client::new(PostgresStore::new(server.url() + parameters).expect("a URL"))
}

const DURABLE: &str = "?options=-c%20leasehold_client.durable_releases%3Don";

/// Takes and releases a lock, and crashes the server at once. Returns whether the lock is free afterwards.
async fn is_free_after_a_crash(parameters: &str) -> bool {
    let mut server = lazy_server().await;
    let client = client_with(&server, parameters);
    let guard = taken(&client, "job").await;
    let fence = guard.fence();
    guard.release().await.expect("an answer");
    server.kill();
    server.restart();
    let known = server.sql("select fence from leasehold.lock where name = 'job';");
    assert_eq!(known, [fence.get().to_string()]);
    is_free(&client_with(&server, ""), "job")
        .await
        .expect("an answer")
}

/// Otherwise no release is faster than before.
#[tokio::test]
async fn crash_may_undo_a_release() {
    assert!(!is_free_after_a_crash("").await);
}

#[tokio::test]
async fn durable_release_survives_a_crash() {
    assert!(is_free_after_a_crash(DURABLE).await);
}

#[tokio::test]
async fn grant_after_a_release_survives_a_crash() {
    let mut server = lazy_server().await;
    let client = client_with(&server, "");
    taken(&client, "job")
        .await
        .release()
        .await
        .expect("an answer");
    let guard = taken(&client, "job").await;
    server.kill();
    server.restart();
    let other = client_with(&server, "");
    assert!(!is_free(&other, "job").await.expect("an answer"));
    guard.renew().await.expect("the lease is still there");
}

/// The release of the holder is also the grant of the waiter.
#[tokio::test]
async fn lock_that_was_passed_on_survives_a_crash() {
    let mut server = lazy_server().await;
    let client = client_with(&server, "");
    let guard = taken(&client, "job").await;
    let lock = client.lock("job").ttl(LONG);
    let releases = async {
        let crowded = "select crowded from leasehold.lock where name = 'job';";
        while server.sql(crowded) != ["t"] {
            tokio::task::yield_now().await;
        }
        guard.release().await
    };
    let (next, released) = tokio::join!(lock.acquire(), releases);
    server.kill();
    released.expect("an answer");
    let next = next.expect("the lock");
    server.restart();
    let known =
        server.sql("select fence from leasehold.lock where name = 'job' and owner is not null;");
    assert_eq!(known, [next.fence().get().to_string()]);
    next.renew().await.expect("the lease is still there");
}
