//! Other libraries on the plain wire: they and we exclude each other.

use leasehold::{Release, Store};
use leasehold_testkit::servers::{RedisPy, RedisServer, Reply};

use crate::support::{busy, claim, granted, member, released, value};

#[tokio::test]
async fn a_plain_set_and_ours_exclude_each_other() {
    let server = RedisServer::start();
    let store = member(&server);
    let plain = || server.command(&["SET", "deploy", "token", "NX", "PX", "60000"]);
    let mine = claim("deploy");
    granted(&store, &mine).await;
    assert_eq!(plain(), Reply::Nil);
    released(&store, &mine).await;
    assert_eq!(plain(), Reply::Status("OK".into()));
    assert_eq!(busy(&store, &mine).await.holder, None);
    assert_eq!(store.release(&mine).await.unwrap(), Release::WasLost);
    assert_eq!(value(&server, "deploy"), Reply::Bulk("token".into()));
    server.command(&["DEL", "deploy"]);
    granted(&store, &mine).await;
}

#[tokio::test]
async fn redis_py_and_ours_exclude_each_other() {
    let server = RedisServer::start();
    let store = member(&server);
    let mut python = RedisPy::start(server.port());
    let mine = claim("deploy");
    assert!(python.acquire("deploy"));
    assert_eq!(busy(&store, &mine).await.holder, None);
    python.release("deploy");
    granted(&store, &mine).await;
    assert!(!python.acquire("deploy"));
    released(&store, &mine).await;
    assert!(python.acquire("deploy"));
}

#[tokio::test]
async fn redis_py_waits_for_our_readers_too() {
    let server = RedisServer::start();
    let store = member(&server);
    let mut python = RedisPy::start(server.port());
    let reader = crate::support::shared("doc");
    granted(&store, &reader).await;
    assert!(!python.acquire("doc"));
    released(&store, &reader).await;
    assert!(python.acquire("doc"));
}
