use leasehold::store::LockRequest;
use leasehold::{Client, Error, ErrorKind};
use leasehold_postgres::PostgresStore;
use leasehold_testkit::servers::{PostgresServer, TestCa};

use tokio_postgres::Config;

use crate::support::{is_free, server, store, taken};

fn at(url: &str) -> PostgresStore {
    PostgresStore::new(url).unwrap_or_else(|error| panic!("{error}"))
}

async fn refusal(url: &str) -> Error {
    let answer = Client::new(at(url)).lock("job").try_acquire().await;
    answer.expect_err("a refusal")
}

fn as_user(server: &PostgresServer, user: &str) -> String {
    let login = format!("tester:{}@", PostgresServer::PASSWORD);
    server.url().replace(&login, &format!("{user}@"))
}

#[tokio::test]
async fn wrong_login_is_refused_without_the_password() {
    let server = server().await;
    for (user, reason) in [
        ("tester:wrong-secret", "password authentication failed"),
        ("nobody:wrong-secret", "password authentication failed"),
        ("tester", "password missing"),
    ] {
        let error = refusal(&as_user(&server, user)).await;
        assert!(error.to_string().contains(reason), "{error}");
        assert!(
            !format!("{error} {error:?}").contains("wrong-secret"),
            "{error:?}"
        );
    }
    let error = refusal(&server.url().replace("/postgres", "/none")).await;
    assert_eq!(error.kind(), ErrorKind::Refused, "{error}");
    assert!(
        error.to_string().contains("\"none\" does not exist"),
        "{error}"
    );
}

#[tokio::test]
async fn password_is_read_from_a_file() {
    let server = server().await;
    let file = tempfile::NamedTempFile::new().expect("a file");
    let line = format!(
        "127.0.0.1:{}:*:tester:{}\n",
        server.port(),
        PostgresServer::PASSWORD
    );
    std::fs::write(file.path(), line).expect("a file");
    let url = as_user(&server, "tester") + "?passfile=" + file.path().to_str().expect("a path");
    assert!(
        is_free(&Client::new(at(&url)), "job")
            .await
            .expect("an answer")
    );
}

#[test]
fn configuration_needs_a_host() {
    let error = PostgresStore::from_config(Config::new()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidInput);
    assert!(error.to_string().contains("no host"), "{error}");
}

#[tokio::test]
async fn certificate_must_name_the_user() {
    let server = PostgresServer::builder().client_certificates().start();
    let url = |user: &str| {
        let (cert, key) = server.ca().sign_client(user);
        let (ca, cert, key) = (server.ca().certificate(), cert.display(), key.display());
        format!(
            "{}?sslmode=require&ca={}&cert={cert}&key={key}",
            server.url(),
            ca.display()
        )
    };
    at(&url("tester")).init().await.expect("the schema");
    let client = Client::new(at(&url("tester")));
    taken(&client, "job")
        .await
        .release()
        .await
        .expect("a release");
    let given = url("tester");
    let (without, _) = given.split_once("&cert").expect("a certificate");
    for (url, reason) in [
        (url("other"), "authentication failed"),
        (without.into(), "valid client certificate"),
    ] {
        let error = refusal(&url).await;
        assert_eq!(error.kind(), ErrorKind::Refused, "{error}");
        assert!(error.to_string().contains(reason), "{error}");
    }
}

#[tokio::test]
async fn connection_is_encrypted_to_a_trusted_server() {
    let server = PostgresServer::builder().tls().start();
    store(&server).init().await.expect("the schema");
    let with = |ca: &TestCa| {
        format!(
            "{}?sslmode=require&ca={}",
            server.url(),
            ca.certificate().display()
        )
    };
    let client = Client::new(at(&with(server.ca())));
    let _guard = taken(&client, "job").await;
    assert!(
        at(&with(server.ca()))
            .examine(LockRequest::LIMIT_MAX)
            .await
            .expect("facts")
            .is_encrypted
    );
    let sessions = "select distinct ssl from pg_stat_ssl join pg_stat_activity using (pid) \
                    where application_name = 'leasehold';";
    assert_eq!(server.sql(sessions), ["t"]);
    let error = refusal(&with(&TestCa::new())).await;
    assert_eq!(error.kind(), ErrorKind::Refused, "{error}");
    assert!(error.to_string().contains("certificate"), "{error}");
}

#[tokio::test]
async fn server_without_tls_is_refused() {
    let (server, ca) = (server().await, TestCa::new());
    let url = format!(
        "{}?sslmode=require&ca={}",
        server.url(),
        ca.certificate().display()
    );
    let error = refusal(&url).await;
    assert!(error.to_string().contains("TLS"), "{error}");
}

#[tokio::test]
async fn missing_rights_are_named_and_suffice() {
    let server = server().await;
    server.sql("create role app login password 'app-secret';");
    let url = as_user(&server, "app:app-secret");
    let error = refusal(&url).await;
    assert_eq!(error.kind(), ErrorKind::Refused, "{error}");
    assert!(error.to_string().contains("leasehold doctor"), "{error}");
    let found = at(&url)
        .examine(LockRequest::LIMIT_MAX)
        .await
        .expect("facts");
    assert!(!found.missing_grants.is_empty(), "{found:?}");
    // The first one lets the user see what else is missing.
    for _ in 0..2 {
        for grant in at(&url)
            .examine(LockRequest::LIMIT_MAX)
            .await
            .expect("facts")
            .missing_grants
        {
            server.sql(&format!("{grant};"));
        }
    }
    let found = at(&url)
        .examine(LockRequest::LIMIT_MAX)
        .await
        .expect("facts");
    assert_eq!(found.missing_grants, Vec::<String>::new());
    let client = Client::new(at(&url));
    let guard = taken(&client, "job").await;
    assert_eq!(client.holders("job").await.expect("an answer").len(), 1);
    guard.release().await.expect("a release");
}

#[tokio::test]
async fn examination_tells_what_a_server_is() {
    let server = server().await;
    let found = store(&server)
        .examine(LockRequest::LIMIT_MAX)
        .await
        .expect("facts");
    assert!(
        !found.is_standby && !found.fsync && found.is_local && !found.is_encrypted,
        "{found:?}"
    );
    assert_eq!(found.synchronous_commit, "on");
    assert_eq!(found.schema_version, Some(found.wanted_version));
    assert!(
        found.has_session_settings && found.connections_left.0 > 0,
        "{found:?}"
    );
    assert!(
        found.clock_offset.abs() < 1_000_000,
        "one machine: {found:?}"
    );
    let standby = PostgresServer::builder()
        .standby_of(server.port(), "second")
        .start();
    let found = store(&standby)
        .examine(LockRequest::LIMIT_MAX)
        .await
        .expect("facts");
    assert!(found.is_standby, "{found:?}");
    let error = refusal(&standby.url()).await;
    assert!(error.to_string().contains("standby"), "{error}");
    assert_eq!(
        store(&server)
            .examine(LockRequest::LIMIT_MAX)
            .await
            .expect("facts")
            .standbys,
        1
    );
}
