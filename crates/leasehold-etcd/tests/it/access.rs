//! Certificates, logins and rights.

use leasehold::{Client, Error, ErrorKind};
use leasehold_testkit::servers::EtcdServer;

use crate::{client, lock, url};

async fn works(client: &Client) {
    let guard = lock(client, "locks/job").acquire().await.unwrap();
    guard.release().await.unwrap();
}

async fn refusal(client: &Client) -> Error {
    let tried = lock(client, "locks/job").try_acquire().await;
    let error = tried.expect_err("a refusal");
    assert!(!error.to_string().contains("secret"), "{error}");
    error
}

#[tokio::test]
async fn etcd_checks_certificates_of_both_sides() {
    let server = EtcdServer::builder().client_certificates().start();
    let (ca, port) = (server.ca(), server.port());
    let authority = ca.certificate().display().to_string();
    let certificate = ca.server_certificate().display().to_string();
    let key = ca.server_key().display().to_string();
    let identity = format!("cert={certificate}&key={key}");
    works(&client(&format!(
        "etcds://localhost:{port}?ca={authority}&{identity}"
    )))
    .await;
    works(&client(&format!(
        "etcd://127.0.0.1:{port}?ca={authority}&{identity}"
    )))
    .await;
    for url in [
        format!("etcds://127.0.0.1:{port}?ca={authority}"),
        format!("etcds://127.0.0.1:{port}?{identity}"),
        format!("etcd://127.0.0.1:{port}"),
    ] {
        let error = refusal(&client(&url)).await;
        assert!(error.is_unreachable(), "{url}: {error}");
    }
}

#[tokio::test]
async fn wrong_logins_are_refused_at_once() {
    let server = EtcdServer::start();
    server.demand_login("ann", "secret", "locks/");
    let at = |login: &str| client(&format!("etcd://{login}127.0.0.1:{}", server.port()));
    works(&at("ann:secret@")).await;
    for (login, part) in [
        ("", "user:password@"),
        ("ann:secret2@", "password"),
        ("bob:secret@", "password"),
    ] {
        let error = refusal(&at(login)).await;
        assert_eq!(error.kind(), ErrorKind::Refused, "{error}");
        assert!(error.to_string().contains(part), "{error}");
    }
    let ann = at("ann:secret@");
    let error = lock(&ann, "other/job").acquire().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Refused, "{error}");
    assert!(error.to_string().contains("permission denied"), "{error}");
}

#[tokio::test]
async fn login_for_a_server_without_users_is_refused() {
    let server = EtcdServer::start();
    let client = client(&url(&server).replace("://", "://ann:secret@"));
    let error = refusal(&client).await;
    assert!(error.to_string().contains("has no users"), "{error}");
}
