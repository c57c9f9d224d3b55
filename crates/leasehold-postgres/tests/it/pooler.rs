//! PgBouncer between the client and the server.

use leasehold::store::LockRequest;
use leasehold::{Client, Error, ErrorKind};
use leasehold_postgres::PostgresStore;
use leasehold_testkit::servers::{PgBouncer, PostgresServer, until};

use crate::support::{is_free, server, taken};

/// A client cannot set anything through a pooler that does not know how.
const PASSES: &str = "ignore_startup_parameters = options";

fn through(pooler: &PgBouncer) -> PostgresStore {
    PostgresStore::new(pooler.url()).expect("a URL")
}

#[tokio::test(flavor = "multi_thread")]
async fn session_mode_keeps_settings_and_notifications() {
    let server = server().await;
    let pooler = PgBouncer::start(&server, "session", PASSES);
    let (one, two) = (Client::new(through(&pooler)), Client::new(through(&pooler)));
    let guard = taken(&one, "job").await;
    let waiting = leasehold::store::background::spawn(two.lock("job").acquire());
    tokio::task::block_in_place(|| {
        let count = "select count(*) from leasehold.waiter;";
        until("a waiter", || server.sql(count) == ["1"]);
    });
    guard.release().await.expect("a release");
    let guard = waiting.await.expect("a task").expect("the lock");
    guard.release().await.expect("a release");
    let found = through(&pooler)
        .examine(LockRequest::LIMIT_MAX)
        .await
        .expect("facts");
    assert!(found.has_session_settings, "{found:?}");
    // A late statement is bounded: the row stays locked for longer than a statement waits.
    let mut other = server.session();
    other.run("begin; select from leasehold.lock for update;");
    let error = is_free(&one, "job").await.expect_err("no answer");
    assert!(error.is_not_ready(), "{error}");
}

#[tokio::test]
async fn transaction_mode_is_refused() {
    let server = server().await;
    let pooler = PgBouncer::start(&server, "transaction", PASSES);
    let error = refusal(&pooler).await;
    assert!(error.to_string().contains("pool_mode = session"), "{error}");
    let found = through(&pooler)
        .examine(LockRequest::LIMIT_MAX)
        .await
        .expect("facts");
    assert!(!found.has_session_settings, "{found:?}");
    // The session of the server has none of the settings afterwards.
    let (plain, connection) = tokio_postgres::connect(&pooler.url(), tokio_postgres::NoTls)
        .await
        .expect("a connection");
    let driving = leasehold::store::background::spawn(connection);
    let row = plain.query_one("select current_setting('lock_timeout')", &[]);
    let timeout: String = row.await.expect("an answer").get(0);
    assert_eq!(timeout, "0");
    driving.abort();
}

/// As PgBouncer is configured by default.
#[tokio::test]
async fn pooler_that_refuses_settings_is_named() {
    let server: PostgresServer = server().await;
    let pooler = PgBouncer::start(&server, "session", "");
    let error = refusal(&pooler).await;
    let remedy = "ignore_startup_parameters = options";
    assert!(error.to_string().contains(remedy), "{error}");
}

/// The answer to an attempt through the pooler.
async fn refusal(pooler: &PgBouncer) -> Error {
    let lock = Client::new(through(pooler)).lock("job");
    let error = lock.try_acquire().await.expect_err("a refusal");
    assert_eq!(error.kind(), ErrorKind::Refused, "{error}");
    error
}
