//! What prepares a store, whichever it is.
#![cfg(all(unix, feature = "postgres", feature = "redis"))]
#![expect(clippy::unwrap_used, reason = "a panic is how a test fails")]

use leasehold::Client;
use leasehold_stores::AnyStore;
use leasehold_testkit::servers::{PostgresServer, RedisSet};

/// Prepares the store twice, and then takes a lock at once.
async fn is_prepared_once(addresses: &str) {
    let store = AnyStore::parse(addresses).unwrap();
    assert!(store.init().await.unwrap(), "{store:?}");
    assert!(!store.init().await.unwrap(), "{store:?}");
    let client = Client::new(store.open().unwrap());
    let guard = client.lock("job").try_acquire().await.unwrap();
    guard.unwrap().release().await.unwrap();
}

#[tokio::test]
async fn postgres_gets_its_schema_once() {
    is_prepared_once(&PostgresServer::start().url()).await;
}

#[tokio::test]
async fn redis_quorum_is_initialized_once() {
    is_prepared_once(&RedisSet::start(3).urls().join(",")).await;
}

#[tokio::test]
async fn other_stores_need_nothing() {
    let store = AnyStore::parse("redis://127.0.0.1:1").unwrap();
    assert!(!store.init().await.unwrap());
}
