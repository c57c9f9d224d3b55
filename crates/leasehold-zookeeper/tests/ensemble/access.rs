//! TLS, logins and rights.

use leasehold::ErrorKind;
use leasehold::look::Pattern;
use leasehold::store::LockRequest;
use leasehold_testkit::servers::Zookeeper;
use leasehold_zookeeper::ZooKeeperStore;

use crate::support::{client, lock};

#[tokio::test]
async fn zookeeper_tls_checks_both_sides() {
    let servers = Zookeeper::builder().tls().start();
    let url = servers.tls_url();
    let guard = lock(&client(&url), "tls").acquire().await.unwrap();
    guard.release().await.unwrap();
    let found = ZooKeeperStore::new(&url)
        .unwrap()
        .examine(LockRequest::LIMIT_MAX)
        .await;
    assert!(found.is_encrypted && found.session.is_ok(), "{found:?}");
    assert_eq!(
        found.servers[0].1.as_ref().unwrap().mode.as_deref(),
        Some("standalone")
    );
    // Without a certificate of its own, and without the authority.
    let ca = servers.ca().certificate();
    let (place, _) = url.split_once('?').unwrap();
    for other in [format!("{place}?ca={}", ca.display()), place.to_owned()] {
        let refused = client(&other).lock("tls").try_acquire().await.unwrap_err();
        let is_known = matches!(refused.kind(), ErrorKind::Refused | ErrorKind::Unreachable);
        assert!(is_known, "{refused}");
    }
}

#[tokio::test]
async fn zookeeper_locks_belong_to_their_login() {
    let servers = Zookeeper::start();
    let with = |login: &str| servers.url().replace("zk://", &format!("zk://{login}@")) + "/own";
    let owner = client(&with("ann:secret-1"));
    let guard = lock(&owner, "x").acquire().await.unwrap();
    for other in [with("ann:secret-2"), servers.url() + "/own"] {
        let refused = client(&other).lock("x").try_acquire().await.unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::Refused, "{refused}");
        assert!(!refused.to_string().contains("secret"), "{refused}");
        let found = ZooKeeperStore::new(&other)
            .unwrap()
            .examine(LockRequest::LIMIT_MAX)
            .await;
        let (node, command) = found.session.unwrap().missing_right.unwrap();
        assert_eq!(node, "/own");
        assert!(
            command.contains("setAcl /own") && !command.contains("secret"),
            "{command}"
        );
    }
    let found = ZooKeeperStore::new(with("ann:secret-1"))
        .unwrap()
        .examine(LockRequest::LIMIT_MAX)
        .await;
    assert_eq!(found.session.unwrap().missing_right, None);
    guard.release().await.unwrap();
}

#[tokio::test]
async fn zookeeper_is_examined_without_a_trace() {
    let servers = Zookeeper::start();
    let found = ZooKeeperStore::new(servers.url() + "/not/yet?timeout=10s")
        .unwrap()
        .examine(LockRequest::LIMIT_MAX)
        .await;
    let session = found.session.unwrap();
    assert_eq!(session.shortest.as_millis(), 400);
    assert_eq!(session.longest.as_millis(), 8_000);
    assert!(!session.root_exists && session.missing_right.is_none());
    assert!(found.is_local && !found.is_encrypted);
    let facts = found.servers[0].1.as_ref().unwrap();
    assert_eq!(
        facts.version.as_deref().map(|version| &version[..2]),
        Some("3.")
    );
    let again = ZooKeeperStore::new(servers.url() + "/not/yet")
        .unwrap()
        .examine(LockRequest::LIMIT_MAX)
        .await;
    assert!(!again.session.unwrap().root_exists);
}

#[tokio::test]
async fn zookeeper_wrong_port_is_named() {
    // Nothing listens on this port, which is reserved for the system.
    let refused = client("zk://127.0.0.1:1")
        .lock("x")
        .try_acquire()
        .await
        .unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Unreachable);
    assert!(refused.to_string().contains("127.0.0.1:1"), "{refused}");
}

/// The first and the last of each range of characters that a server refuses, and their neighbours.
#[tokio::test]
async fn zookeeper_locks_of_all_characters_are_granted() {
    let servers = Zookeeper::start();
    let (locks, all) = (client(&servers.url()), Pattern::new("*").unwrap());
    for c in [
        '/',
        '%',
        '\u{7e}',
        '\u{a0}',
        '\u{d7ff}',
        '\u{e000}',
        '\u{f8ff}',
        '\u{f900}',
        '\u{ffef}',
        '\u{fff0}',
        '\u{fffd}',
        '\u{10000}',
        '🔒',
        '\u{10ffff}',
    ] {
        let key = format!("a{c}b");
        let guard = lock(&locks, &key).acquire().await.unwrap();
        let listed = locks.list_locks(&all, 10).await.unwrap();
        assert_eq!(listed.locks[0].key.as_str(), key);
        guard.release().await.unwrap();
    }
}
