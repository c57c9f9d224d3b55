//! Certificates, logins and rights.

use std::io::Write as _;
use std::process::Stdio;

use leasehold::{Client, Error, ErrorKind};
use leasehold_etcd::{EtcdStore, Password};
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
async fn function_returns_the_password_of_the_login() {
    let server = EtcdServer::start();
    server.demand_login("ann", "secret", "locks/");
    let at = |password: &'static str| {
        let store = EtcdStore::new(&url(&server)).unwrap();
        let password = Password::from_fn(move || async move { Ok(password.to_owned()) });
        Client::new(store.login("ann", password))
    };
    works(&at("secret")).await;
    let error = refusal(&at("secret2")).await;
    assert_eq!(error.kind(), ErrorKind::Refused, "{error}");
}

#[tokio::test]
async fn login_for_a_server_without_users_is_refused() {
    let server = EtcdServer::start();
    let client = client(&url(&server).replace("://", "://ann:secret@"));
    let error = refusal(&client).await;
    assert!(error.to_string().contains("has no users"), "{error}");
}

/// Changes the password of the user `ann`. That ends all tokens of the user, even if the password stays the same.
fn change_password(server: &EtcdServer, password: &str) {
    let words = [
        "--user=root:root",
        "user",
        "passwd",
        "ann",
        "--interactive=false",
    ];
    let mut command = server.etcdctl_command(&words);
    let mut changing = command
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let mut stdin = changing.stdin.take().unwrap();
    writeln!(stdin, "{password}").unwrap();
    drop(stdin);
    assert!(changing.wait().unwrap().success());
}

#[tokio::test]
async fn client_logs_in_again_when_its_token_ends() {
    let server = EtcdServer::start();
    server.demand_login("ann", "secret", "locks/");
    let client = client(&url(&server).replace("://", "://ann:secret@"));
    let held = lock(&client, "locks/job").acquire().await.unwrap();
    change_password(&server, "secret");
    let other = lock(&client, "locks/other").acquire().await.unwrap();
    assert!(held.is_valid());
    held.release().await.unwrap();
    other.release().await.unwrap();
}

#[tokio::test]
async fn new_password_takes_effect_while_a_lock_is_held() {
    let server = EtcdServer::start();
    server.demand_login("ann", "first-secret", "locks/");
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), "first-secret\n").unwrap();
    let address = url(&server).replace("://", "://ann@");
    let client = client(&format!(
        "{address}?password_file={}",
        file.path().display()
    ));
    let held = lock(&client, "locks/job").acquire().await.unwrap();
    std::fs::write(file.path(), "second-secret\n").unwrap();
    change_password(&server, "second-secret");
    let other = lock(&client, "locks/other").acquire().await.unwrap();
    assert!(held.is_valid());
    held.release().await.unwrap();
    other.release().await.unwrap();
}
