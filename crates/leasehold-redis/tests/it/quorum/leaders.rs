//! Leaders on several servers, as observers see them.

use std::time::Duration;

use leasehold::Client;
use leasehold::clock::{Clock as _, SystemClock};
use leasehold::store::background;
use leasehold_redis::RedisStore;
use leasehold_testkit::servers::{LIMIT, RedisServer};

use crate::support::{eventually, queued};

fn quorum_of(servers: &[RedisServer]) -> RedisStore {
    RedisStore::new(servers.iter().map(RedisServer::url)).unwrap()
}

#[tokio::test]
async fn resignation_reaches_a_server_that_missed_it() {
    let start = || RedisServer::builder().durable().start();
    let mut servers = [start(), start(), start()];
    let quorum = quorum_of(&servers);
    quorum.init().await.unwrap();
    let locks = Client::new(quorum);
    let lock = locks.lock("line");
    let first = lock.acquire().await.unwrap();
    let campaign = background::spawn(locks.election("line").value("a").campaign());
    queued(&servers[2], "line", 1).await;
    let next = background::spawn(lock.acquire());
    queued(&servers[2], "line", 2).await;
    first.release().await.unwrap();
    let leadership = campaign.await.unwrap().unwrap();
    let observer = Client::new(quorum_of(&servers)).election("line");
    let leader = observer.leader().await.unwrap().expect("a leader");
    assert_eq!(leader.value, "a");

    servers[2].kill();
    leadership.resign().await.unwrap();
    let resigned = SystemClock.now();
    let guard = next.await.unwrap().unwrap();
    servers[2].restart();
    // One of the two that answer missed it.
    servers[0].freeze();
    let observer = Client::new(quorum_of(&servers)).election("line");
    let mut looks = 0;
    // The shortest retention of a record is a second.
    while looks < 3 || SystemClock.now().since(resigned) < Duration::from_secs(2) {
        assert!(SystemClock.now().since(resigned) < LIMIT, "{looks} looks");
        let look = eventually("a look", async || observer.leader().await.ok()).await;
        assert!(look.is_none(), "{look:?} after {looks} looks");
        looks += 1;
    }
    servers[0].thaw();
    drop(guard);
}
