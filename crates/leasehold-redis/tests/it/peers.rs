//! Other libraries on the plain wire protocol. They and this library exclude each other.

use leasehold_testkit::servers::{RedisPy, RedisServer, Reply};

use crate::support::{client, hold, is_busy, permit, share, value};

#[tokio::test]
async fn plain_set_and_locks_exclude_each_other() {
    let server = RedisServer::start();
    let locks = client(&server);
    let plain = || server.command(&["SET", "deploy", "token", "NX", "PX", "60000"]);
    let guard = hold(&locks, "deploy").await;
    assert_eq!(plain(), Reply::Nil);
    guard.release().await.unwrap();
    assert_eq!(plain(), Reply::Status("OK".into()));
    assert!(is_busy(&locks, "deploy").await);
    assert_eq!(value(&server, "deploy"), Reply::Bulk("token".into()));
    server.command(&["DEL", "deploy"]);
    hold(&locks, "deploy").await.release().await.unwrap();
}

#[tokio::test]
async fn redis_py_and_locks_exclude_each_other() {
    let server = RedisServer::start();
    let locks = client(&server);
    let mut python = RedisPy::start(server.port());
    assert!(python.acquire("deploy"));
    assert!(is_busy(&locks, "deploy").await);
    let holders = locks.holders("deploy").await.unwrap();
    assert_eq!(holders[0].owner, None);
    python.release("deploy");
    let guard = hold(&locks, "deploy").await;
    assert!(!python.acquire("deploy"));
    guard.release().await.unwrap();
    assert!(python.acquire("deploy"));
}

#[tokio::test]
async fn readers_and_permits_exclude_redis_py() {
    let server = RedisServer::start();
    let locks = client(&server);
    let mut python = RedisPy::start(server.port());
    let reader = share(&locks, "doc").await;
    assert!(!python.acquire("doc"));
    reader.release().await.unwrap();
    assert!(python.acquire("doc"));
    let held = permit(&locks, "workers", 2).await;
    assert!(!python.acquire("workers"));
    held.release().await.unwrap();
    assert!(python.acquire("workers"));
}
