//! Many clients in one runtime, on which they opened their connections.

use std::time::Duration;

use leasehold::background;
use leasehold::clock::{Clock as _, SystemClock, within};
use leasehold::{Client, Ended, Quorum};
use leasehold_redis::RedisMember;
use leasehold_testkit::servers::{LIMIT, RedisSet};

async fn quorum(servers: &RedisSet) -> Quorum {
    let quorum = Quorum::new(RedisMember::all(servers.urls()).unwrap()).unwrap();
    // The first call of a client: where it is formed already, that is an error.
    let _ = quorum.init().await;
    quorum
}

#[tokio::test]
#[ignore = "One engine, one queue, one hand-over"] // tidy: it fails until that issue is done
async fn release_succeeds_while_other_clients_end() {
    const CLIENTS: usize = 16;
    let servers = RedisSet::start(5);
    quorum(&servers).await;
    for round in 0..4 {
        let holder = Client::new(quorum(&servers).await);
        let guard = holder.lock("x").wait(LIMIT).acquire().await;
        let guard = guard.expect("a free lock");
        let mut waiting = Vec::new();
        for _ in 1..CLIENTS {
            let waiter = Client::new(quorum(&servers).await);
            waiting.push(background::spawn(async move {
                let limit = SystemClock.now() + Duration::from_secs(1);
                let guard = within(&SystemClock, limit, waiter.lock("x").acquire()).await;
                assert!(guard.is_none(), "the lock is held");
            }));
        }
        // All waiters are cut off, and their clients end, at about this time.
        SystemClock
            .sleep_until(SystemClock.now() + Duration::from_secs(1))
            .await;
        let ended = guard.release().await;
        assert_eq!(
            ended.expect("five healthy servers"),
            Ended::Released,
            "round {round}"
        );
        for waiter in waiting {
            waiter.await.unwrap();
        }
    }
}
