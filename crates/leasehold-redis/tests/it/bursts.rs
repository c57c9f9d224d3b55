//! A client begins many operations at once.

use futures_util::future::join_all;
use leasehold::{Client, Guard, ReleaseOutcome};
use leasehold_testkit::servers::{LIMIT, RedisServer, RedisSet};

use crate::support::{TTL, client, hold, quorum};

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
