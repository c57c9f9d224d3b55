use std::time::Duration;

use leasehold::{Inspection as _, Mode};
use leasehold_redis::RedisMember;
use leasehold_testkit::servers::RedisServer;

use crate::support::{CLIENT, claim, granted, key, member, released, shared};

#[tokio::test]
async fn holders_are_named_with_their_client() {
    let server = RedisServer::start();
    let store = member(&server);
    assert!(store.holders(&key("deploy")).await.unwrap().is_empty());
    let mine = claim("deploy");
    let fence = granted(&store, &mine).await.fence;
    let holders = store.holders(&key("deploy")).await.unwrap();
    let [holder] = holders.as_slice() else {
        panic!("{holders:?}")
    };
    assert_eq!(holder.owner, Some(mine.owner));
    assert_eq!(holder.client.as_ref(), Some(&**CLIENT));
    assert_eq!(holder.mode, Mode::Exclusive);
    assert_eq!(holder.fence, Some(fence));
    let left = holder.remaining.unwrap();
    assert!(
        left <= mine.ttl && left > Duration::from_secs(1),
        "{left:?}"
    );
}

#[tokio::test]
async fn readers_are_named_one_by_one() {
    let server = RedisServer::start();
    let store = member(&server);
    let readers = [shared("doc"), shared("doc")];
    for reader in &readers {
        granted(&store, reader).await;
    }
    let holders = store.holders(&key("doc")).await.unwrap();
    assert_eq!(holders.len(), 2);
    for holder in &holders {
        assert_eq!(holder.mode, Mode::Shared);
        assert!(
            readers
                .iter()
                .any(|reader| holder.owner == Some(reader.owner))
        );
        assert_eq!(holder.client.as_ref(), Some(&**CLIENT));
        assert!(holder.remaining.unwrap() > Duration::from_secs(1));
    }
}

#[tokio::test]
async fn holders_of_other_libraries_have_no_owner() {
    let server = RedisServer::start();
    let store = member(&server);
    server.command(&["SET", "endless", "token"]);
    server.command(&["SET", "short", "token", "PX", "50000"]);
    server.command(&["HSET", "redisson", "uuid:1", "1"]);
    for (name, ends) in [("endless", false), ("short", true), ("redisson", false)] {
        let holders = store.holders(&key(name)).await.unwrap();
        let [holder] = holders.as_slice() else {
            panic!("{name}: {holders:?}")
        };
        assert_eq!(holder.owner, None);
        assert_eq!(holder.client, None);
        assert_eq!(holder.remaining.is_some(), ends, "{name}");
    }
}

#[tokio::test]
async fn exactly_our_held_keys_with_the_prefix_are_listed() {
    let server = RedisServer::start();
    let store = member(&server);
    let names = ["a*1", "a*2", "ab", "b", "a*gone"];
    for name in names {
        granted(&store, &claim(name)).await;
    }
    let gone = claim("a*released");
    granted(&store, &gone).await;
    released(&store, &gone).await;
    granted(&store, &shared("a*read")).await;
    server.command(&["DEL", "a*gone"]);
    server.command(&["SET", "a*cache", "not a lock of ours"]);
    server.command(&["HSET", "a*hash", "f", "v"]);
    let mut listed: Vec<String> = store
        .list("a*", 100)
        .await
        .unwrap()
        .iter()
        .map(ToString::to_string)
        .collect();
    listed.sort();
    assert_eq!(listed, ["a*1", "a*2", "a*read"]);
    assert_eq!(store.list("a*", 2).await.unwrap().len(), 2);
    assert_eq!(store.list("a*", 0).await.unwrap().len(), 0);
    assert_eq!(store.list("", 100).await.unwrap().len(), 5);
}

#[tokio::test]
async fn large_values_of_others_do_not_stop_a_listing() {
    let server = RedisServer::start();
    let store = member(&server);
    granted(&store, &claim("deploy")).await;
    // Together more than one reply may have.
    for number in 0..40 {
        let name = format!("cache {number}");
        server.command(&["SETRANGE", &name, "499999", "x"]);
    }
    assert_eq!(store.list("", 100).await.unwrap(), [key("deploy")]);
}

#[tokio::test]
async fn a_thousand_keys_of_one_prefix_are_listed_once_each() {
    let server = RedisServer::start();
    let store = RedisMember::new(format!("{}?prefix=app:", server.url())).unwrap();
    for number in 0..1000 {
        granted(&store, &claim(&format!("lock {number}"))).await;
    }
    server.command(&["SET", "lock other", &claim("x").owner.to_string()]);
    let mut listed = store.list("lock ", usize::MAX).await.unwrap();
    listed.sort();
    listed.dedup();
    assert_eq!(listed.len(), 1000);
    assert!(listed.contains(&key("lock 999")));
}
