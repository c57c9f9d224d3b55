//! Crowds of waiters for one lock, in one client and in many: all are served, in order, also after an outage.
#![cfg(unix)]
#![allow(
    clippy::unwrap_used,
    reason = "in a test's helpers a failure is the test's failure"
)]

mod common;

use std::sync::Mutex;
use std::time::Duration;

use common::{Place, number};
use futures_util::future::join_all;
use leasehold::clock::{Clock as _, SystemClock};
use leasehold::{Client, Effect, Guard};

/// How many waiters begin together. Among these the order is chance.
const BATCH: usize = 50;

/// Nothing takes that long on a machine that works.
const LIMIT: Duration = Duration::from_secs(120);

/// Waits until the lock has this many waiters.
async fn queued(place: &Place, client: &Client, count: usize) {
    let end = SystemClock.now() + LIMIT;
    while place.waiters(client, "crowd").await < count {
        assert!(SystemClock.now() < end, "{count} waiters did not queue up");
        SystemClock
            .sleep_until(SystemClock.now() + Duration::from_millis(5))
            .await;
    }
}

/// Returns the length of the longest part of `batches` that is in order, if the others are left out.
fn in_order(batches: &[usize]) -> usize {
    let mut ends: Vec<usize> = Vec::new();
    for batch in batches {
        let place = ends.partition_point(|end| end <= batch);
        match ends.get_mut(place) {
            Some(end) => *end = *batch,
            None => ends.push(*batch),
        }
    }
    ends.len()
}

/// Lets `waiters` of each of `clients` wait for a lock that is held, freezes the servers, and releases it. Each waiter
/// releases the lock at once.
async fn crowd_is_served(place: &Place, clients: usize, waiters: usize, frozen: Duration) {
    let holder = place.client();
    let guard = holder.lock("crowd").acquire().await.unwrap();
    let clients: Vec<Client> = (0..clients).map(|_| place.client()).collect();
    for client in &clients {
        // A client learns the clock of Redis by its first request. While it connects, it knows the clock only roughly.
        let lock = client.lock("first").acquire().await.unwrap();
        lock.release().await.unwrap();
    }
    let (total, served) = (clients.len() * waiters, Mutex::new(Vec::new()));
    // After an outage, a client may not be connected yet. It then repeats the release.
    let release = async |guard: Guard| {
        if let Err(error) = guard.release().await {
            let is_repeated = !frozen.is_zero() && error.effect() == Effect::Unknown;
            assert!(is_repeated, "{error}");
        }
    };
    let wait = async |number: usize| {
        let lock = clients[number % clients.len()].lock("crowd").wait(LIMIT);
        let guard = lock.acquire().await.unwrap();
        served.lock().unwrap().push(number / BATCH);
        release(guard).await;
    };
    let (begin, begun) = tokio::sync::watch::channel(0);
    let all = join_all((0..total).map(async |number| {
        let is_turn = |batch: &usize| *batch >= number / BATCH;
        begun.clone().wait_for(is_turn).await.unwrap();
        wait(number).await;
    }));
    let releasing = async {
        for batch in 0..total.div_ceil(BATCH) {
            begin.send_replace(batch);
            queued(place, &holder, total.min((batch + 1) * BATCH)).await;
        }
        if !frozen.is_zero() {
            place.freeze();
            SystemClock.sleep_until(SystemClock.now() + frozen).await;
            place.thaw();
        }
        release(guard).await;
    };
    tokio::join!(all, releasing);
    let served = served.into_inner().unwrap();
    // Redis orders waiters by its clock, which each client knows to within a round trip. An outage costs places, and the
    // client asks for them again.
    let late = served.len() - in_order(&served);
    assert!(late <= total / 20, "{late} not in order: {served:?}");
    assert_eq!(place.waiters(&holder, "crowd").await, 0);
}

macro_rules! on_each_store {
    ($($name:ident = $place:expr;)+) => {$(
        mod $name {
            use super::*;

            #[tokio::test]
            async fn waiters_of_one_client_are_served() {
                let waiters = number("LEASEHOLD_TEST_CROWD", 600);
                crowd_is_served(&$place, 1, waiters, Duration::ZERO).await;
            }

            #[tokio::test]
            async fn waiters_of_many_clients_are_served() {
                let waiters = number("LEASEHOLD_TEST_CROWD", 600) / 50;
                crowd_is_served(&$place, 50, waiters, Duration::ZERO).await;
            }

            #[tokio::test]
            async fn waiters_outlast_frozen_servers() {
                let waiters = number("LEASEHOLD_TEST_CROWD", 600);
                let frozen = number("LEASEHOLD_TEST_FROZEN_SECONDS", 3);
                crowd_is_served(&$place, 1, waiters, Duration::from_secs(frozen as u64)).await;
            }
        }
    )+};
}

on_each_store! {
    redis = Place::redis();
    redis_quorum = Place::quorum().await;
    postgres = Place::postgres().await;
    etcd = Place::etcd();
    zookeeper = Place::zookeeper();
}
