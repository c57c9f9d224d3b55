//! Many clients in one runtime, which opened their connections there.

use std::time::Duration;

use leasehold::clock::{Clock as _, SystemClock, within};
use leasehold::store::background;
use leasehold::{Client, ReleaseOutcome};
use leasehold_testkit::servers::{LIMIT, RedisSet};

use crate::support::quorum;

#[tokio::test]
async fn release_succeeds_while_other_clients_end() {
    const CLIENTS: usize = 16;
    let servers = RedisSet::start(5);
    quorum(&servers).init().await.unwrap();
    for round in 0..4 {
        let holder = Client::new(quorum(&servers));
        let guard = holder.lock("x").wait(LIMIT).acquire().await;
        let guard = guard.expect("a free lock");
        let mut waiting = Vec::new();
        for _ in 1..CLIENTS {
            let waiter = Client::new(quorum(&servers));
            waiting.push(background::spawn(async move {
                let limit = SystemClock.now() + Duration::from_secs(1);
                // A waiter may get the lock at the end, if the machine stalls.
                drop(within(&SystemClock, limit, waiter.lock("x").acquire()).await);
            }));
        }
        // At about this time all waiters are cut off, and their clients end.
        SystemClock
            .sleep_until(SystemClock.now() + Duration::from_secs(1))
            .await;
        let ended = guard.release().await;
        assert_eq!(
            ended.expect("five healthy servers"),
            ReleaseOutcome::Released,
            "round {round}"
        );
        for waiter in waiting {
            waiter.await.unwrap();
        }
    }
}
