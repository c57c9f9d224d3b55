//! The status of a server.

use std::time::Duration;

use leasehold::ErrorKind;
use leasehold::clock::{Clock, SystemClock};
use leasehold::member::MemberStatus;
use leasehold_redis::RedisMember;
use leasehold_testkit::servers::RedisServer;

use crate::support::{configure, eventually, member};

async fn status(store: &RedisMember) -> MemberStatus {
    store.status().await.unwrap()
}

fn set(server: &RedisServer, name: &str, value: &str) {
    configure(server, &["CONFIG", "SET", name, value]);
}

#[tokio::test]
async fn fresh_server_tells_its_run_time_and_age() {
    let mut server = RedisServer::start();
    let store = member(&server);
    let first = status(&store).await;
    assert!(first.clock.distance(SystemClock.wall()) < Duration::from_secs(60));
    assert!(first.uptime < Duration::from_secs(60));
    assert!(!first.durable);
    assert_eq!((first.unfit, first.member_record), (None, None));
    let grown = eventually("the uptime grows", async || {
        let uptime = status(&store).await.uptime;
        (uptime >= first.uptime + Duration::from_secs(1)).then_some(uptime)
    });
    grown.await;
    server.restart();
    let second = eventually("the server is back", async || store.status().await.ok()).await;
    assert_ne!(second.run, first.run);
}

#[tokio::test]
async fn durable_server_writes_before_it_answers() {
    let server = RedisServer::builder()
        .durable()
        .acl("ann", "on >word ~* +@all -config")
        .start();
    let store = member(&server);
    assert!(status(&store).await.durable);
    for (name, weaker, strong) in [
        ("appendfsync", "everysec", "always"),
        ("no-appendfsync-on-rewrite", "yes", "no"),
        ("appendonly", "no", "yes"),
    ] {
        set(&server, name, weaker);
        assert!(!status(&store).await.durable, "{name} {weaker}");
        set(&server, name, strong);
        assert!(status(&store).await.durable, "{name} {strong}");
    }
    let url = format!("redis://ann:word@127.0.0.1:{}", server.port());
    assert!(!status(&RedisMember::new(url).unwrap()).await.durable);
}

#[tokio::test]
async fn server_that_may_evict_locks_is_unfit() {
    let server = RedisServer::start();
    let store = member(&server);
    set(&server, "maxmemory-policy", "volatile-lru");
    assert_eq!(status(&store).await.unfit, None, "no limit, no eviction");
    set(&server, "maxmemory", "100mb");
    for policy in ["volatile-lru", "allkeys-random"] {
        set(&server, "maxmemory-policy", policy);
        let unfit = status(&store).await.unfit.unwrap();
        assert!(unfit.contains(policy), "{unfit}");
        // This includes connections that are opened then.
        let unfit = status(&member(&server)).await.unfit.unwrap();
        assert!(unfit.contains(policy), "{unfit}");
    }
    set(&server, "maxmemory-policy", "noeviction");
    assert_eq!(status(&store).await.unfit, None);
}

#[tokio::test]
async fn primary_that_became_a_replica_is_unfit() {
    let (server, primary) = (RedisServer::start(), RedisServer::start());
    let store = member(&server);
    assert_eq!(status(&store).await.unfit, None);
    let port = primary.port().to_string();
    server.command(&["REPLICAOF", "127.0.0.1", &port]);
    let unfit = status(&store).await.unfit.unwrap();
    assert!(unfit.contains("is a replica"), "{unfit}");
    let error = member(&server).status().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unreachable, "{error}");
}
