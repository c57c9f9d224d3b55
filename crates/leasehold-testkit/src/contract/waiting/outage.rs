use std::time::Duration;

use leasehold::Client;
use leasehold::store::{LockRequest, Report, Store as _};

use super::observed::Observed;
use crate::contract::fixture::{Fixture, LONG, TIMEOUT, now, until};
use crate::faults::NetworkFault;

/// A waiter asks at least once in the limit of a request, and then the request takes as long. The rest is room for a
/// slow machine.
const LIMITS_MAX: u32 = 5;

/// Of the waiter. Its requests have a short limit.
const TTL: Duration = Duration::from_secs(6);

pub(crate) async fn w2_frozen_server_is_reported_and_survived(fixture: &Fixture) {
    let (holder, key) = (Client::new(fixture.open()), fixture.key());
    let held = holder.lock(&key).ttl(LONG).acquire().await;
    let held = held.expect("the lock");
    let store = Observed::new(fixture.place());
    let ttl = TTL.max(store.terms().ttl_min);
    let (reports, waiter) = (store.reports(), Client::new(store));
    let waiting = waiter.lock(&key).ttl(ttl).wait(TIMEOUT * 2).acquire();
    let outage = async {
        let is_busy = async || matches!(reports.last(), Some(Report::Busy(_)));
        until(fixture, "a report that it is busy", is_busy).await;
        fixture.set_network(NetworkFault::Frozen);
        let began = now();
        let is_away = async || matches!(reports.last(), Some(Report::Unavailable(_)));
        until(fixture, "a report of the outage", is_away).await;
        let took = began.elapsed();
        fixture.set_network(NetworkFault::None);
        // The answer may be lost with a connection that broke. The holder then releases in the background.
        let _ = held.release().await;
        took
    };
    let (guard, took) = futures_util::join!(waiting, outage);
    let most = LockRequest::limit_of(ttl) * LIMITS_MAX;
    assert!(took < most, "reported after {took:?}, not within {most:?}");
    guard
        .expect("granted after the outage")
        .release()
        .await
        .expect("a release");
}
