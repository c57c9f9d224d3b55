use std::time::Duration;

use leasehold::Mode;
use leasehold_testkit::servers::RedisServer;

use crate::support::{TTL, client, client_at, hold, key, permit, share};

#[tokio::test]
async fn holder_is_named_with_its_client() {
    let server = RedisServer::start();
    let locks = client(&server);
    assert!(locks.holders("deploy").await.unwrap().is_empty());
    let guard = hold(&locks, "deploy").await;
    let holders = locks.holders("deploy").await.unwrap();
    let [holder] = holders.as_slice() else {
        panic!("{holders:?}")
    };
    assert_eq!(holder.owner, Some(guard.owner()));
    assert_eq!(holder.client.as_ref().unwrap().id, locks.id());
    assert_eq!(holder.client.as_ref().unwrap().pid, std::process::id());
    assert_eq!(holder.mode, Mode::Exclusive);
    assert_eq!(holder.fence, Some(guard.fence()));
    let left = holder.remaining.unwrap();
    assert!(left <= TTL && left > Duration::from_secs(1), "{left:?}");
}

#[tokio::test]
async fn readers_and_permits_are_named_one_by_one() {
    let server = RedisServer::start();
    let (locks, other) = (client(&server), client(&server));
    let guards = [
        share(&locks, "doc").await,
        share(&other, "doc").await,
        permit(&locks, "workers", 128).await,
        permit(&other, "workers", 128).await,
    ];
    for name in ["doc", "workers"] {
        let holders = other.holders(name).await.unwrap();
        assert_eq!(holders.len(), 2);
        for holder in &holders {
            let guard = guards.iter().find(|it| Some(it.owner()) == holder.owner);
            let guard = guard.expect("a holder");
            assert_eq!((guard.key().as_str(), guard.mode()), (name, holder.mode));
            assert!(holder.client.is_some());
            assert!(holder.remaining.unwrap() > Duration::from_secs(1));
        }
    }
}

#[tokio::test]
async fn holders_of_other_libraries_have_no_owner() {
    let server = RedisServer::start();
    let locks = client(&server);
    server.command(&["SET", "endless", "token"]);
    server.command(&["SET", "short", "token", "PX", "50000"]);
    server.command(&["HSET", "redisson", "uuid:1", "1"]);
    for (name, ends) in [("endless", false), ("short", true), ("redisson", false)] {
        let holders = locks.holders(name).await.unwrap();
        let [holder] = holders.as_slice() else {
            panic!("{name}: {holders:?}")
        };
        assert_eq!(holder.owner, None);
        assert_eq!(holder.client, None);
        assert_eq!(holder.remaining.is_some(), ends, "{name}");
    }
}

#[tokio::test]
async fn list_has_exactly_the_held_locks() {
    let server = RedisServer::start();
    let locks = client(&server);
    let mut guards = Vec::new();
    for name in ["a*1", "a*2", "ab", "b", "a*gone"] {
        guards.push(hold(&locks, name).await);
    }
    hold(&locks, "a*released").await.release().await.unwrap();
    guards.push(share(&locks, "a*read").await);
    guards.push(permit(&locks, "a*permit", 2).await);
    server.command(&["DEL", "a*gone"]);
    server.command(&["SET", "a*cache", "not a lock"]);
    server.command(&["HSET", "a*hash", "f", "v"]);
    let listed = async |prefix: &str, limit| {
        let keys = locks.list(prefix, limit).await.unwrap();
        let mut keys: Vec<String> = keys.iter().map(ToString::to_string).collect();
        keys.sort();
        keys
    };
    assert_eq!(
        listed("a*", 100).await,
        ["a*1", "a*2", "a*permit", "a*read"]
    );
    assert_eq!(listed("a*", 2).await.len(), 2);
    assert_eq!(listed("a*", 0).await.len(), 0);
    assert_eq!(listed("", 100).await.len(), 6);
}

#[tokio::test]
async fn large_foreign_values_do_not_stop_listing() {
    let server = RedisServer::start();
    let locks = client(&server);
    let _held = hold(&locks, "deploy").await;
    // Together these exceed the limit of one reply.
    for number in 0..40 {
        let name = format!("cache {number}");
        server.command(&["SETRANGE", &name, "499999", "x"]);
    }
    assert_eq!(locks.list("", 100).await.unwrap(), [key("deploy")]);
}

#[tokio::test]
async fn thousand_locks_are_listed_once_each() {
    let server = RedisServer::start();
    let locks = client_at(&format!("{}?prefix=app:", server.url()));
    let taken = (0..1000).map(async |number| hold(&locks, &format!("lock {number}")).await);
    let guards = futures_util::future::join_all(taken).await;
    let owner = guards[0].owner().to_string();
    server.command(&["SET", "lock other", &owner]);
    let mut listed = locks.list("lock ", usize::MAX).await.unwrap();
    listed.sort();
    listed.dedup();
    assert_eq!(listed.len(), 1000);
    assert!(listed.contains(&key("lock 999")));
}
