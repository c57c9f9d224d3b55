//! Client certificates, and passwords and certificates that change while a lock is held.

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use leasehold::clock::{Clock as _, SystemClock};
use leasehold::{Client, ErrorKind, Guard};
use leasehold_redis::rustls::pki_types::CertificateDer;
use leasehold_redis::rustls::pki_types::pem::PemObject as _;
use leasehold_redis::rustls::{ClientConfig, RootCertStore};
use leasehold_redis::{RedisStore, rustls};
use leasehold_testkit::servers::{LIMIT, RedisServer, Reply, TestCa, until};

use crate::support::{client_at, pass, refused};

fn with_files(server: &RedisServer, folder: &Path) -> String {
    let of = |name: &str| folder.join(name).display().to_string();
    let (ca, cert, key) = (of("ca"), of("cert"), of("key"));
    format!("{}?ca={ca}&cert={cert}&key={key}", server.tls_url())
}

/// Replaces the certificate of the client in `folder`.
fn identify(folder: &Path, ca: &TestCa) {
    let (cert, key) = ca.sign_client("ann");
    fs::copy(cert, folder.join("cert")).unwrap();
    fs::copy(key, folder.join("key")).unwrap();
}

/// Replaces the authorities that the client trusts.
fn trust(folder: &Path, authorities: &[&TestCa]) {
    let pem = authorities
        .iter()
        .map(|ca| fs::read_to_string(ca.certificate()).unwrap());
    fs::write(folder.join("ca"), pem.collect::<String>()).unwrap();
}

fn ok(server: &RedisServer, words: &[&str]) {
    assert_eq!(
        server.command(words),
        Reply::Status("OK".into()),
        "{words:?}"
    );
}

/// Takes and releases another lock, after the connection has broken.
async fn passes_again(client: &Client) {
    let end = SystemClock.now() + LIMIT;
    loop {
        match client.lock("other").try_acquire().await {
            Ok(Some(guard)) => {
                guard.release().await.unwrap();
                return;
            }
            outcome => assert!(SystemClock.now() < end, "{outcome:?}"),
        }
        tokio::task::yield_now().await;
    }
}

/// Waits until the lock was renewed.
fn is_renewed(guard: &Guard) {
    let deadline = guard.deadline();
    until("the lock is renewed", || guard.deadline() > deadline);
    assert!(guard.is_valid());
}

async fn hold(client: &Client) -> Guard {
    let lock = client.lock("held").ttl(Duration::from_secs(6));
    lock.try_acquire().await.unwrap().unwrap()
}

#[tokio::test]
async fn server_demands_a_certificate_it_trusts() {
    let server = RedisServer::builder().tls().client_certificates().start();
    let folder = tempfile::tempdir().unwrap();
    trust(folder.path(), &[server.ca()]);
    let url = with_files(&server, folder.path());
    identify(folder.path(), server.ca());
    pass(&client_at(&url), "deploy").await;
    identify(folder.path(), &TestCa::new());
    let error = refused(&client_at(&url), "deploy").await;
    assert_eq!(error.kind(), ErrorKind::Refused, "{error}");
    assert!(
        error.to_string().contains("certificate of the client"),
        "{error}"
    );
    let (without, _) = url.split_once("&cert").unwrap();
    let error = refused(&client_at(without), "deploy").await;
    assert_eq!(error.kind(), ErrorKind::Refused, "{error}");
    assert!(error.to_string().contains("cert=FILE"), "{error}");
}

#[tokio::test]
async fn program_configures_tls() {
    let server = RedisServer::builder().tls().start();
    let mut roots = RootCertStore::empty();
    let ca = CertificateDer::from_pem_file(server.ca().certificate()).unwrap();
    roots.add(ca).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    let config = Arc::new(config);
    let store = RedisStore::new([server.tls_url()]).unwrap();
    let store = store.tls_config(Arc::clone(&config)).unwrap();
    pass(&Client::new(store), "deploy").await;

    let plain = RedisStore::new([server.url()]).unwrap();
    let error = plain.tls_config(config).unwrap_err();
    assert!(error.to_string().contains("rediss:// alone"), "{error}");
}

#[tokio::test]
async fn new_authority_takes_effect_while_a_lock_is_held() {
    let (old, new) = (Arc::new(TestCa::new()), TestCa::new());
    let settings = RedisServer::builder().tls_with(Arc::clone(&old));
    let server = settings.client_certificates().start();
    let folder = tempfile::tempdir().unwrap();
    trust(folder.path(), &[&old]);
    identify(folder.path(), &old);
    let client = client_at(&with_files(&server, folder.path()));
    let guard = hold(&client).await;
    let drop_connections = || {
        // Also the own one.
        server.command(&["CLIENT", "KILL", "TYPE", "normal"]);
        server.command(&["CLIENT", "KILL", "TYPE", "pubsub"]);
    };
    // A file that cannot be used changes nothing.
    fs::write(folder.path().join("ca"), "nonsense").unwrap();
    drop_connections();
    passes_again(&client).await;
    // First the clients trust both authorities, then the server changes, then the clients trust the new one alone.
    trust(folder.path(), &[&old, &new]);
    identify(folder.path(), &new);
    let path = |path: std::path::PathBuf| path.display().to_string();
    let (cert, key, ca) = (
        new.server_certificate(),
        new.server_key(),
        new.certificate(),
    );
    let (cert, key, ca) = (path(cert), path(key), path(ca));
    let names = [
        "tls-cert-file",
        &cert,
        "tls-key-file",
        &key,
        "tls-ca-cert-file",
        &ca,
    ];
    ok(&server, &[&["CONFIG", "SET"], &names[..]].concat());
    drop_connections();
    passes_again(&client).await;
    trust(folder.path(), &[&new]);
    drop_connections();
    passes_again(&client).await;
    is_renewed(&guard);
    guard.release().await.unwrap();
}

#[tokio::test]
async fn password_file_that_cannot_be_used_is_named() {
    let error = RedisStore::new(["redis://h?password_file=/nowhere/password"]).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidInput);
    let text = error.to_string();
    assert!(
        text.contains("/nowhere/password") && text.contains("No such file"),
        "{text}"
    );
}
