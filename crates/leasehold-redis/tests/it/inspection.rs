use std::time::Duration;

use leasehold::store::Pattern;
use leasehold_testkit::servers::RedisServer;

use crate::support::{client, client_at, hold, key, permit, share, start};

#[tokio::test]
async fn readers_and_permits_are_named_one_by_one() {
    let (server, locks) = start();
    let other = client(&server);
    let guards = [
        share(&locks, "doc").await,
        share(&other, "doc").await,
        permit(&locks, "workers", 128).await,
        permit(&other, "workers", 128).await,
    ];
    let listing = locks.list_locks(&Pattern::all(), 9).await.unwrap();
    for (number, name) in ["doc", "workers"].into_iter().enumerate() {
        let holders = other.holders(name).await.unwrap();
        assert_eq!(holders.len(), 2);
        assert_eq!(listing.locks[number].holders.len(), 2);
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
    let (server, locks) = start();
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
    let (server, locks) = start();
    let _held = (
        hold(&locks, "a*1").await,
        hold(&locks, "ab").await,
        hold(&locks, "a*gone").await,
        share(&locks, "a*read").await,
        permit(&locks, "a*permit", 2).await,
    );
    server.command(&["DEL", "a*gone"]);
    server.command(&["SET", "a*cache", "not a lock"]);
    server.command(&["HSET", "a*hash", "f", "v"]);
    let listed = async |prefix: &str, limit| {
        let keys = locks.list(prefix, limit).await.unwrap();
        let mut keys: Vec<String> = keys.iter().map(ToString::to_string).collect();
        keys.sort();
        keys
    };
    assert_eq!(listed("a*", 100).await, ["a*1", "a*permit", "a*read"]);
    assert_eq!(listed("a*", 2).await.len(), 2);
    assert_eq!(listed("a*", 0).await.len(), 0);
    assert_eq!(listed("", 100).await.len(), 4);
}

#[tokio::test]
async fn large_foreign_values_do_not_stop_listing() {
    let (server, locks) = start();
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
