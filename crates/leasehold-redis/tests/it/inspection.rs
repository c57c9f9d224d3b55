use std::time::Duration;

use leasehold::Client;
use leasehold::look::Pattern;
use leasehold_testkit::servers::RedisServer;

use crate::support::{client, client_at, hold, permit, share, start};

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

/// Returns the names of the locks that match, and whether the limit left any out.
async fn listed(locks: &Client, pattern: &str, limit: usize) -> (Vec<String>, bool) {
    let pattern = Pattern::new(pattern).unwrap();
    let listing = locks.list_locks(&pattern, limit).await.unwrap();
    let names = listing.locks.iter().map(|lock| lock.key.to_string());
    (names.collect(), listing.more)
}

#[tokio::test]
async fn list_has_exactly_the_held_locks() {
    let (server, locks) = start();
    let _held = (
        hold(&locks, "a1").await,
        hold(&locks, "b").await,
        hold(&locks, "gone").await,
        share(&locks, "a-read").await,
        permit(&locks, "a-permit", 2).await,
    );
    server.command(&["DEL", "gone"]);
    server.command(&["SET", "cache", "not a lock"]);
    server.command(&["HSET", "hash", "f", "v"]);
    let names = |names: &[&str]| names.iter().map(ToString::to_string).collect::<Vec<_>>();
    let all = names(&["a-permit", "a-read", "a1", "b"]);
    assert_eq!(listed(&locks, "*", 100).await, (all, false));
    let some = names(&["a-permit", "a-read", "a1"]);
    assert_eq!(listed(&locks, "a*", 100).await, (some, false));
    let first = names(&["a-permit", "a-read"]);
    assert_eq!(listed(&locks, "a*", 2).await, (first, true));
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
    let expected = (vec!["deploy".to_owned()], false);
    assert_eq!(listed(&locks, "*", 100).await, expected);
}

#[tokio::test]
async fn thousand_locks_are_listed_once_each() {
    let server = RedisServer::start();
    let locks = client_at(&format!("{}?prefix=app:", server.url()));
    let taken = (0..1000).map(async |number| hold(&locks, &format!("lock {number}")).await);
    let guards = futures_util::future::join_all(taken).await;
    let owner = guards[0].owner().to_string();
    server.command(&["SET", "lock other", &owner]);
    let (mut names, more) = listed(&locks, "lock *", 2000).await;
    names.dedup();
    assert_eq!((names.len(), more), (1000, false));
    assert!(names.contains(&"lock 999".to_owned()));
}
