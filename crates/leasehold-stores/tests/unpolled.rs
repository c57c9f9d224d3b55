//! Attempts that their callers keep and do not poll: they close no lock for long, on each store.
#![cfg(unix)]
#![allow(
    clippy::unwrap_used,
    reason = "in a test's helpers a failure is the test's failure"
)]

mod common;

use std::pin::pin;
use std::time::Duration;

use common::Place;
use futures_util::{FutureExt as _, poll};
use leasehold::clock::{Clock as _, SystemClock, within};
use leasehold::Client;

/// Other clients get the lock after a third of it.
const TTL: Duration = Duration::from_secs(12);
const LIMIT: Duration = Duration::from_secs(10);

/// Waits until the lock has this many waiters.
async fn queued(client: &Client, count: usize) {
    while client.waiters("a").await.map_or(0, |it| it.len()) < count {
        let soon = SystemClock.now() + Duration::from_millis(5);
        SystemClock.sleep_until(soon).await;
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
    tokio::select! {
        biased;
        _ = &mut unpolled => unreachable!("another client holds the lock"),
        () = queued(&holder, 1) => {}
    }
    passes(&second, "b").await;
    let mut next = pin!(second.lock("a").ttl(TTL).acquire());
    tokio::select! {
        biased;
        _ = &mut next => unreachable!("another client holds the lock"),
        () = queued(&holder, 2) => {}
    }
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
    let mut unpolled = pin!(first.lock("a").ttl(TTL).acquire());
    assert!(poll!(&mut unpolled).is_pending());
    let next = second.lock("a").ttl(TTL).wait(LIMIT).acquire();
    next.await.unwrap().release().await.unwrap();
    unpolled.await.unwrap().release().await.unwrap();
}

macro_rules! on_each_store {
    ($($name:ident = $place:expr;)+) => {$(
        mod $name {
            use super::*;

            #[tokio::test]
            async fn unpolled_waiter_passes_the_lock_on() {
                super::unpolled_waiter_passes_the_lock_on(&$place).await;
            }

            #[tokio::test]
            async fn unpolled_grant_passes_the_lock_on() {
                super::unpolled_grant_passes_the_lock_on(&$place).await;
            }
        }
    )+};
}

on_each_store! {
    files = Place::files();
    redis = Place::redis();
    redis_quorum = Place::quorum().await;
    postgres = Place::postgres().await;
    etcd = Place::etcd();
    zookeeper = Place::zookeeper();
}
