//! Servers whose answers come late: they are slow, not silent.
#![cfg(unix)]
#![allow(
    clippy::unwrap_used,
    reason = "in a test's helpers a failure is the test's failure"
)]

mod common;

use std::time::Duration;

use common::Place;
use leasehold::clock::{Clock as _, SystemClock};
use leasehold_testkit::faults::{NetworkFault, Proxy};

/// As an answer after 2.5 s is to the usual TTL of 30 s.
const TTL: Duration = Duration::from_secs(12);
const LATE: Duration = Duration::from_secs(1);

async fn slow_answers_cost_no_lock(place: &Place) {
    let network = Proxy::to(place.port());
    let client = place.client_through(network.port());
    let guard = client.lock("held").ttl(TTL).acquire().await.unwrap();
    network.set(NetworkFault::SlowAnswers(LATE));
    let late = place.client_through(network.port());
    let new = late.lock("new").ttl(TTL).acquire().await.unwrap();
    new.release().await.unwrap();
    let first = guard.deadline();
    while guard.deadline() == first {
        guard.ensure(Duration::ZERO).unwrap();
        SystemClock.sleep_until(SystemClock.now() + LATE / 10).await;
    }
    guard.release().await.unwrap();
}

macro_rules! on_each_store {
    ($($name:ident = $place:expr;)+) => {$(
        #[tokio::test]
        async fn $name() {
            slow_answers_cost_no_lock(&$place).await;
        }
    )+};
}

on_each_store! {
    slow_answers_cost_no_lock_on_redis = Place::redis();
    slow_answers_cost_no_lock_on_postgres = Place::postgres().await;
    slow_answers_cost_no_lock_on_etcd = Place::etcd();
    slow_answers_cost_no_lock_on_zookeeper = Place::zookeeper();
}
