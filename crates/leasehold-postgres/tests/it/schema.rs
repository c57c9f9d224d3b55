use leasehold::{Client, Error, ErrorKind};
use leasehold_postgres::{Initialized, PostgresStore};
use leasehold_testkit::servers::PostgresServer;

use crate::support::{client, is_free, server, store, taken};

async fn refusal(client: &Client) -> Error {
    let answer = client.lock("job").try_acquire().await;
    answer.expect_err("a refusal")
}

#[tokio::test]
async fn clients_that_init_at_once_create_once() {
    let server = PostgresServer::start();
    let all = (0..8).map(async |_| store(&server).init().await.expect("the schema"));
    let done = futures_util::future::join_all(all).await;
    let created = done
        .iter()
        .filter(|it| **it == Initialized::Created)
        .count();
    assert_eq!(created, 1, "{done:?}");
    let client = client(&server);
    let guard = taken(&client, "job").await;
    assert_eq!(
        store(&server).init().await.expect("the schema"),
        Initialized::Current
    );
    assert!(guard.is_valid() && !is_free(&client, "job").await.expect("an answer"));
}

#[tokio::test]
async fn missing_schema_names_its_remedy() {
    let server = PostgresServer::start();
    let client = client(&server);
    let error = refusal(&client).await;
    assert_eq!(error.kind(), ErrorKind::NotInitialized, "{error}");
    assert!(
        error
            .to_string()
            .contains("create it with `leasehold init`"),
        "{error}"
    );
    // The same client goes on once it exists.
    store(&server).init().await.expect("the schema");
    assert!(is_free(&client, "job").await.expect("an answer"));
}

#[tokio::test]
async fn other_versions_are_refused() {
    let server = server().await;
    for (version, remedy) in [(99, "use a newer leasehold"), (0, "leasehold init")] {
        server.sql(&format!("update leasehold.version set number = {version};"));
        let error = refusal(&client(&server)).await;
        assert!(error.to_string().contains(remedy), "{error}");
        assert_eq!(error.kind(), ErrorKind::NotInitialized, "{error}");
    }
    server.sql("update leasehold.version set number = 99;");
    let error = store(&server).init().await.expect_err("a refusal");
    assert!(error.to_string().contains("version 99"), "{error}");
}

#[tokio::test]
async fn schemas_have_locks_of_their_own() {
    let server = server().await;
    let other = PostgresStore::new(server.url() + "?schema=order").expect("a URL");
    other.init().await.expect("the schema");
    let (one, other) = (client(&server), Client::new(other));
    let guard = taken(&one, "job").await;
    let beside = taken(&other, "job").await;
    for guard in [guard, beside] {
        guard.release().await.expect("a release");
    }
    assert_eq!(server.sql("select count(*) from \"order\".lock;"), ["1"]);
}

/// As after an operator changed a function by hand.
#[tokio::test]
async fn function_without_an_answer_is_an_error() {
    let server = server().await;
    server.sql(
        "create or replace function leasehold.acquire(p_name text, p_owner text, p_client text, p_mode integer, \
             p_ttl bigint, p_proposal bigint, p_waits boolean, p_barges boolean, p_ticket bigint default null) \
         returns text language sql as 'select null::text';",
    );
    let error = refusal(&client(&server)).await;
    assert_eq!(error.kind(), ErrorKind::InvalidResponse, "{error}");
}
