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
use futures_util::future::{Either, select};
use futures_util::{FutureExt as _, poll};
use leasehold::Client;
use leasehold::clock::{Clock as _, SystemClock, within};
use leasehold::telemetry::LockEvents;
use leasehold_testkit::until_waiting;

/// Other clients get the lock after a third of it.
const TTL: Duration = Duration::from_secs(12);
const LIMIT: Duration = Duration::from_secs(10);

/// Polls `waiting` until its client says that it waits. From then on, the client watches whether it is polled.
async fn queue<T>(events: &mut LockEvents, waiting: Pin<&mut impl Future<Output = T>>) {
    let waits = pin!(until_waiting(events));
    let queued = select(waiting, waits);
    match within(&SystemClock, SystemClock.now() + LIMIT, queued).await {
        Some(Either::Right(_)) => {}
        Some(Either::Left(_)) => panic!("another client holds the lock"),
        None => panic!("it does not wait"),
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
    let [mut first_events, mut second_events] = [&first, &second].map(Client::events);
    let mut unpolled = pin!(first.lock("a").ttl(TTL).acquire());
    queue(&mut first_events, unpolled.as_mut()).await;
    let mut next = pin!(second.lock("a").ttl(TTL).acquire());
    queue(&mut second_events, next.as_mut()).await;
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
