//! Attempts that their callers keep and do not poll: they close no lock for long, on each store.
#![cfg(unix)]
#![allow(
    clippy::unwrap_used,
    reason = "in a test's helpers a failure is the test's failure"
)]

mod common;

use std::pin::{Pin, pin};
use std::time::Duration;

use common::Place;
use futures_util::{FutureExt as _, poll};
use leasehold::Client;
use leasehold::clock::{Clock as _, SystemClock, within};

/// Other clients get the lock after a third of it.
const TTL: Duration = Duration::from_secs(12);
const LIMIT: Duration = Duration::from_secs(10);

/// Polls `waiting` until the lock has this many waiters.
async fn queue<T>(
    place: &Place,
    client: &Client,
    count: usize,
    mut waiting: Pin<&mut impl Future<Output = T>>,
) {
    let end = SystemClock.now() + LIMIT;
    loop {
        let soon = SystemClock.now() + Duration::from_millis(50);
        let granted = within(&SystemClock, soon, waiting.as_mut()).await;
        assert!(granted.is_none(), "another client holds the lock");
        let waiters = match place {
            // Lock files do not show their waiters. If this one queues late, the test checks less.
            Place::Files(_) => count,
            _ => place.waiters(client, "a").await,
        };
        if waiters == count {
            // Its client watches it once it has polled the answer, which may come later than this look.
            let later = SystemClock.now() + Duration::from_secs(1);
            let granted = within(&SystemClock, later, waiting.as_mut()).await;
            assert!(granted.is_none(), "another client holds the lock");
            return;
        }
        assert!(SystemClock.now() < end, "{count} waiters did not queue up");
    }
}

/// Takes the lock and releases it, on a client that may have to connect.
async fn passes(client: &Client, name: &str) {
    let guard = client.lock(name).ttl(TTL).wait(LIMIT).acquire().await;
    guard.unwrap().release().await.unwrap();
}

async fn unpolled_waiter_passes_the_lock_on(place: &Place) {
    let [holder, first, second] = [(); 3].map(|()| place.client());
    let guard = holder.lock("a").ttl(TTL).acquire().await.unwrap();
    let mut unpolled = pin!(first.lock("a").ttl(TTL).acquire());
    queue(place, &holder, 1, unpolled.as_mut()).await;
    let mut next = pin!(second.lock("a").ttl(TTL).acquire());
    queue(place, &holder, 2, next.as_mut()).await;
    guard.release().await.unwrap();
    let next = within(&SystemClock, SystemClock.now() + LIMIT, next);
    let next = next.await.expect("the lock in time").unwrap();
    // Once it is polled again, it waits as before.
    assert!(unpolled.as_mut().now_or_never().is_none());
    next.release().await.unwrap();
    unpolled.await.unwrap().release().await.unwrap();
}

async fn unpolled_grant_passes_the_lock_on(place: &Place) {
    let [first, second] = [(); 2].map(|()| place.client());
    passes(&first, "b").await;
    // The grant may come too early, while the caller polls.
    let mut unpolled = loop {
        let mut attempt = Box::pin(first.lock("a").ttl(TTL).acquire());
        if granted_meanwhile(&second, attempt.as_mut()).await {
            break attempt;
        }
    };
    let next = second.lock("a").ttl(TTL).wait(LIMIT).acquire();
    next.await.unwrap().release().await.unwrap();
    unpolled.as_mut().await.unwrap().release().await.unwrap();
}

/// Polls `attempt` until the lock is held. Returns whether it can still be polled.
async fn granted_meanwhile<T>(
    observer: &Client,
    mut attempt: Pin<&mut impl Future<Output = T>>,
) -> bool {
    let end = SystemClock.now() + LIMIT;
    while poll!(&mut attempt).is_pending() {
        assert!(SystemClock.now() < end, "the lock is free");
        if !observer.holders("a").await.unwrap().is_empty() {
            return true;
        }
    }
    false
}

macro_rules! on_each_store {
    ($($name:ident = $place:expr;)+) => {$(
        #[tokio::test]
        async fn $name() {
            unpolled_waiter_passes_the_lock_on(&$place).await;
        }
    )+};
}

on_each_store! {
    unpolled_waiter_of_files = Place::files();
    unpolled_waiter_of_redis = Place::redis();
    unpolled_waiter_of_a_quorum = Place::quorum().await;
    unpolled_waiter_of_postgres = Place::postgres().await;
    unpolled_waiter_of_etcd = Place::etcd();
    unpolled_waiter_of_zookeeper = Place::zookeeper();
}

/// Elsewhere, a lease that nothing renews ends by itself.
#[tokio::test]
async fn unpolled_grant_of_files() {
    unpolled_grant_passes_the_lock_on(&Place::files()).await;
}

#[tokio::test]
async fn unpolled_grant_of_zookeeper() {
    unpolled_grant_passes_the_lock_on(&Place::zookeeper()).await;
}
