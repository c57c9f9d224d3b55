//! The keys of locks at a server.

use leasehold::ErrorKind;
use leasehold::store::background;
use leasehold_testkit::servers::{RedisServer, Reply};

use crate::support::{
    client, client_at, eventually, hold, is_busy, left, pass, permit, queued, refused, share,
    start, value,
};

#[tokio::test]
async fn no_key_of_a_lock_stays_forever() {
    let server = RedisServer::start();
    let (locks, other) = (client(&server), client(&server));
    server.command(&["SET", "foreign", "token", "PX", "60000"]);
    assert!(is_busy(&locks, "foreign").await);
    let _held = (
        hold(&locks, "alone").await,
        share(&locks, "together").await,
        permit(&locks, "permit", 2).await,
    );
    pass(&locks, "free").await;
    let _waits = background::spawn(other.lock("alone").acquire());
    queued(&server, "alone", 1).await;
    let Reply::Array(keys) = server.command(&["KEYS", "*"]) else {
        panic!("KEYS")
    };
    assert!(keys.len() > 8, "{keys:?}");
    for key in keys {
        let Reply::Bulk(key) = key else {
            panic!("{key:?}")
        };
        assert!(left(&server, &key) > 0, "{key}");
    }
}

#[tokio::test]
async fn fences_grow_after_a_restart_without_data() {
    let (mut server, locks) = start();
    let before = hold(&locks, "deploy").await.fence();
    server.restart();
    assert_eq!(value(&server, "deploy"), Reply::Nil);
    let after = eventually("a grant after the restart", async || {
        locks.lock("deploy").try_acquire().await.ok()?
    });
    assert!(after.await.fence() > before);
}

#[tokio::test]
async fn lock_of_another_type_is_named() {
    let (server, locks) = start();
    server.command(&["HSET", "deploy", "uuid:1", "1"]);
    let error = refused(&locks, "deploy").await;
    assert_eq!(error.kind(), ErrorKind::IncompatibleKey);
    for part in ["a hash", "?prefix="] {
        assert!(error.to_string().contains(part), "{error}");
    }
    let kind = server.command(&["TYPE", "deploy"]);
    assert_eq!(kind, Reply::Status("hash".into()));
}

#[tokio::test]
async fn damaged_counter_fails_and_frees_the_lock() {
    let (server, locks) = start();
    server.command(&["SET", "leasehold:fence:0:{deploy}:deploy", "text"]);
    let error = refused(&locks, "deploy").await;
    assert_eq!(error.kind(), ErrorKind::Corrupt, "{error}");
    eventually("the lock is free", async || {
        (value(&server, "deploy") == Reply::Nil).then_some(())
    })
    .await;
}

#[tokio::test]
async fn damaged_records_of_permits_are_named() {
    for record in ["readers", "slots"] {
        let (server, locks) = start();
        let held = permit(&locks, "workers", 3).await;
        let record = format!("leasehold:{record}:{{workers}}:workers");
        server.command(&["DEL", &record]);
        server.command(&["RPUSH", &record, "text"]);
        let other = locks.semaphore("workers", 3).try_acquire().await;
        let error = other.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Corrupt, "{record}: {error}");
        drop(held);
    }
}

#[tokio::test]
async fn prefix_and_hash_tag_name_the_keys() {
    let server = RedisServer::start();
    let locks = client_at(&format!("{}?prefix=app:", server.url()));
    let guard = hold(&locks, "{user7}/cart").await;
    let owner = Reply::Bulk(guard.owner().to_string());
    assert_eq!(value(&server, "app:{user7}/cart"), owner);
    let fence = "leasehold:fence:0:{user7}:app:{user7}/cart";
    let kind = server.command(&["TYPE", fence]);
    assert_eq!(kind, Reply::Status("zset".into()));
    guard.release().await.unwrap();
}
