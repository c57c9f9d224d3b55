//! Which servers can be members, and which logins they accept.

use leasehold::{Client, Effect, ErrorKind};
use leasehold_redis::RedisStore;
use leasehold_testkit::servers::{RedisServer, Reply, TestCa, until};

use crate::support::{client, client_at, hold, is_busy, pass, refused};

/// Returns the text of the refusal, which has no effect and no password, and names the member.
async fn refusal(url: &str, kind: ErrorKind) -> String {
    let store = RedisStore::new([url]).unwrap();
    let shown = format!("{store:?}");
    let id = store.member_ids().next().unwrap().clone();
    let error = refused(&Client::new(store), "deploy").await;
    assert_eq!(error.kind(), kind, "{error}");
    assert_eq!(error.effect(), Effect::None);
    assert_eq!(error.store(), Some(id.as_str()));
    let debug = format!("{error:?} {shown}");
    assert!(
        !debug.contains("secret") && !debug.contains("guess"),
        "{debug}"
    );
    error.to_string()
}

#[tokio::test]
async fn passwords_and_users_are_accepted() {
    let server = RedisServer::builder()
        .password("secret")
        .acl("ann", "on >s%cr@t ~* +@all")
        .start();
    let at = |login: &str| format!("redis://{login}127.0.0.1:{}/3", server.port());
    for login in [":secret@", "default:secret@", "ann:s%25cr%40t@"] {
        let locks = client_at(&at(login));
        pass(&locks, "deploy").await;
    }
    let text = refusal(&at(":guess@"), ErrorKind::Refused).await;
    assert!(text.contains(r#"password of the user "default""#), "{text}");
    let text = refusal(&at("ann:guess@"), ErrorKind::Refused).await;
    assert!(text.contains(r#"password of the user "ann""#), "{text}");
    let text = refusal(&at(""), ErrorKind::Refused).await;
    assert!(text.contains("asks for a password"), "{text}");
}

#[tokio::test]
async fn wrong_password_is_refused_in_the_old_protocol() {
    let old = || RedisServer::builder().directive("rename-command", "HELLO \"\"");
    for server in [old().password("secret").start(), old().start()] {
        let url = format!("redis://:guess@127.0.0.1:{}", server.port());
        let text = refusal(&url, ErrorKind::Refused).await;
        assert!(text.contains(r#"password of the user "default""#), "{text}");
    }
}

#[tokio::test]
async fn missing_database_is_named() {
    let server = RedisServer::start();
    let text = refusal(&format!("{}/999", server.url()), ErrorKind::Refused).await;
    assert!(text.contains("out of range"), "{text}");
}

#[tokio::test]
async fn named_database_is_used() {
    let server = RedisServer::start();
    let locks = client_at(&format!("{}/3", server.url()));
    let _held = hold(&locks, "deploy").await;
    assert_eq!(server.command(&["GET", "deploy"]), Reply::Nil);
}

#[tokio::test]
async fn replica_is_refused() {
    let primary = RedisServer::start();
    let replica = RedisServer::builder().replica_of(&primary).start();
    let text = refusal(&replica.url(), ErrorKind::Unreachable).await;
    assert!(text.contains("is a replica"), "{text}");
}

#[tokio::test]
async fn demoted_primary_loses_its_connections() {
    let [server, other] = [RedisServer::start(), RedisServer::start()];
    let locks = client(&server);
    hold(&locks, "deploy").await.release().await.unwrap();
    let port = other.port().to_string();
    server.command(&["REPLICAOF", "127.0.0.1", &port]);
    let error = refused(&locks, "deploy").await;
    assert_eq!(error.kind(), ErrorKind::Unreachable, "{error}");
    until("the client to leave", || {
        let Reply::Bulk(clients) = server.command(&["CLIENT", "LIST"]) else {
            return false;
        };
        !clients.contains("name=leasehold")
    });
    server.command(&["REPLICAOF", "NO", "ONE"]);
    let guard = locks.lock("deploy").acquire().await.unwrap();
    guard.release().await.unwrap();
}

#[tokio::test]
async fn cluster_node_is_refused() {
    let node = RedisServer::builder().cluster().start();
    let text = refusal(&node.url(), ErrorKind::Unsupported).await;
    assert!(text.contains("node of a Redis Cluster"), "{text}");
}

#[tokio::test]
async fn server_that_evicts_is_refused() {
    let server = RedisServer::builder()
        .directive("maxmemory", "100mb")
        .directive("maxmemory-policy", "allkeys-lru")
        .start();
    let text = refusal(&server.url(), ErrorKind::Misconfigured).await;
    for part in [
        "allkeys-lru",
        "maxmemory-policy noeviction",
        "?evicting=accept",
    ] {
        assert!(text.contains(part), "{text}");
    }
    let accepted = client_at(&format!("{}?evicting=accept", server.url()));
    pass(&accepted, "deploy").await;
    server.command(&["CONFIG", "SET", "maxmemory-policy", "noeviction"]);
    pass(&client(&server), "deploy").await;
    // Without a limit, nothing is evicted.
    server.command(&["CONFIG", "SET", "maxmemory", "0"]);
    server.command(&["CONFIG", "SET", "maxmemory-policy", "volatile-ttl"]);
    pass(&client(&server), "deploy").await;
}

#[tokio::test]
async fn server_out_of_memory_says_so() {
    let server = RedisServer::builder().directive("maxmemory", "1").start();
    let error = refused(&client(&server), "deploy").await;
    assert_eq!(error.kind(), ErrorKind::Unreachable, "{error}");
    assert!(error.to_string().contains("OOM"), "{error}");
}

#[tokio::test]
async fn unix_socket_has_the_same_locks() {
    let server = RedisServer::builder().unix().start();
    let path = server.socket().display();
    let by_socket = RedisStore::new([format!("unix://{path}")]).unwrap();
    let id = by_socket.member_ids().next().unwrap();
    assert_eq!(id.as_str(), path.to_string());
    let guard = hold(&Client::new(by_socket), "deploy").await;
    assert!(is_busy(&client(&server), "deploy").await);
    guard.release().await.unwrap();
    let text = refusal("unix:///nowhere/redis.sock", ErrorKind::Unreachable).await;
    assert!(text.contains("No such file"), "{text}");
}

#[tokio::test]
async fn tls_needs_a_trusted_authority() {
    let server = RedisServer::builder().tls().start();
    let with = |ca: &TestCa| {
        let ca = ca.certificate();
        format!("{}?ca={}", server.tls_url(), ca.display())
    };
    let locks = client_at(&with(server.ca()));
    pass(&locks, "deploy").await;
    let text = refusal(&with(&TestCa::new()), ErrorKind::Refused).await;
    assert!(text.contains("invalid peer certificate"), "{text}");
    let by_the_machine = client_at(&server.tls_url());
    let error = refused(&by_the_machine, "deploy").await;
    assert!(
        matches!(error.kind(), ErrorKind::Refused | ErrorKind::Unsupported),
        "{error}"
    );
}

#[tokio::test]
async fn failures_are_in_the_order_of_the_list() {
    let store = RedisStore::new([
        "redis://127.0.0.1:1?id=z",
        "redis://127.0.0.1:2?id=a",
        "redis://127.0.0.1:3?id=m",
    ]);
    let client = Client::new(store.unwrap());
    let error = refused(&client, "deploy").await.to_string();
    let failures = "; 127.0.0.1:1 (id z), 127.0.0.1:2 (id a), 127.0.0.1:3 (id m): no connection";
    assert!(error.contains(failures), "{error}");
    let error = client.record("deploy").read().await.unwrap_err();
    assert!(error.to_string().contains(failures), "{error}");
}

#[tokio::test]
async fn file_without_a_certificate_is_named() {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml");
    for (file, rule) in [
        (script, "no certificate in it"),
        ("/nowhere/ca.pem", "No such file"),
    ] {
        let error = RedisStore::new([format!("rediss://h?ca={file}")]).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidInput);
        let text = error.to_string();
        assert!(text.contains(rule) && text.contains(file), "{text}");
    }
}

#[test]
fn server_or_id_is_given_only_once() {
    let refusal = |urls: &[&str]| {
        let error = RedisStore::new(urls).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidInput);
        let text = error.to_string();
        assert!(!text.contains("secret"), "{text}");
        text
    };
    for urls in [
        ["redis://h", "redis://u:secret@H:6379/1?id=b"],
        ["redis://a?id=one", "redis://b?id=one"],
        ["unix:///run/r.sock", "unix:///run/r.sock?db=2&id=other"],
        ["redis://h:1", "rediss://h:1?id=tls"],
    ] {
        assert!(refusal(&urls).contains("given twice"));
    }
    let many: Vec<String> = (1..=32).map(|port| format!("redis://h:{port}")).collect();
    assert_eq!(RedisStore::new(&many[..31]).unwrap().members().len(), 31);
    let many: Vec<&str> = many.iter().map(String::as_str).collect();
    assert!(refusal(&many).contains("more than 31"));
}

#[tokio::test]
async fn clocks_a_day_apart_are_refused() {
    let day = std::time::Duration::from_secs(24 * 60 * 60);
    let server = RedisServer::builder().steppable_clock().start();
    server.clock().forward(day + day / 8);
    let text = refusal(&server.url(), ErrorKind::InvalidInput).await;
    assert!(text.contains("days apart: at most 1"), "{text}");
    assert_eq!(server.command(&["EXISTS", "deploy"]), Reply::Integer(0));
    server.clock().back(day);
    hold(&client(&server), "deploy")
        .await
        .release()
        .await
        .unwrap();
}
