//! A client begins many operations at once.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use futures_util::future::join_all;
use leasehold::clock::{Clock as _, SystemClock};
use leasehold::{Client, Guard, ReleaseOutcome};
use leasehold_testkit::servers::{LIMIT, RedisServer, RedisSet};

use crate::support::{TTL, client, eventually, hold, quorum};

async fn release_all(guards: Vec<Guard>) {
    for outcome in join_all(guards.into_iter().map(Guard::release)).await {
        assert_eq!(outcome.unwrap(), ReleaseOutcome::Released);
    }
}

#[tokio::test]
async fn burst_on_one_server_succeeds() {
    let server = RedisServer::start();
    let client = client(&server);
    let all = (0..2_000).map(async |number| hold(&client, &format!("lock {number}")).await);
    let guards = join_all(all).await;
    release_all(guards).await;
}

#[tokio::test]
async fn burst_on_a_quorum_succeeds() {
    let servers = RedisSet::start(3);
    quorum(&servers).init().await.unwrap();
    let client = Client::new(quorum(&servers));
    let all = (0..1_500).map(async |number| {
        let lock = client.lock(format!("lock {number}")).ttl(TTL).wait(LIMIT);
        lock.acquire().await.unwrap()
    });
    let guards = join_all(all).await;
    release_all(guards).await;
}

/// How many locks a burst takes whose servers freeze meanwhile.
const BURST: usize = 10_000;

#[tokio::test]
async fn burst_outlasts_a_frozen_majority() {
    let servers = RedisSet::start(5);
    quorum(&servers).init().await.unwrap();
    let client = Client::new(quorum(&servers));
    let granted = AtomicUsize::new(0);
    let all = (0..BURST).map(async |number| {
        let lock = client.lock(format!("lock {number}")).ttl(TTL).wait(LIMIT);
        let guard = lock.acquire().await.unwrap();
        granted.fetch_add(1, Ordering::Relaxed);
        guard
    });
    let fault = async {
        eventually("a part is granted", async || {
            (granted.load(Ordering::Relaxed) > BURST / 10).then_some(())
        })
        .await;
        let majority = || servers.iter().take(3);
        majority().for_each(RedisServer::freeze);
        let end = SystemClock.now() + Duration::from_secs(2);
        SystemClock.sleep_until(end).await;
        majority().for_each(RedisServer::thaw);
    };
    let (guards, ()) = tokio::join!(join_all(all), fault);
    assert!(guards.iter().all(Guard::is_valid));
}
