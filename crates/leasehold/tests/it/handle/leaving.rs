//! Guards that are given up while their leases last: for how long, and what may happen in between.

use std::time::Duration;

use leasehold::blocking;
use leasehold::env::Env;
use leasehold::store::LeaseTerms;
use leasehold::store::background;
use leasehold::{Client, Effect, ErrorKind, MemoryStore, ReleaseOutcome};
use leasehold_testkit::{Fault, FaultyStore};

use super::handles::{STEP, closed_for, handle, hold, renewals};
use crate::fixture::{Fixture, MARGIN, TTL, is_free};

const SECOND: Duration = Duration::from_secs(1);

fn terms() -> LeaseTerms {
    LeaseTerms::single()
}

#[tokio::test(start_paused = true)]
async fn leave_for_adds_the_clock_tolerance() {
    let fixture = Fixture::new();
    let guard = hold(&fixture.client).await;
    let span = Duration::from_secs(45);
    guard.leave_for(span).await.unwrap();
    assert!(closed_for(&fixture).await >= terms().ttl_for(span));
}

#[tokio::test(start_paused = true)]
async fn leave_for_renews_a_short_lease() {
    let fixture = Fixture::new();
    let guard = hold(&fixture.client).await;
    // The lease is valid for that long by the store's clock, which may be fast.
    let span = TTL - SECOND;
    assert!(span > TTL - MARGIN);
    guard.leave_for(span).await.unwrap();
    assert!(renewals(&fixture) > 0);
    assert!(closed_for(&fixture).await >= terms().ttl_for(span));
}

#[tokio::test(start_paused = true)]
async fn no_delay_follows_what_was_left() {
    let fixture = Fixture::new();
    let lock = fixture.client.lock("x").lock_delay(5 * SECOND);
    let span = Duration::from_secs(40);
    lock.acquire().await.unwrap().leave_for(span).await.unwrap();
    let closed = closed_for(&fixture).await;
    assert!(
        closed >= span && closed < span * 10 / 9 + SECOND,
        "{closed:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn max_hold_does_not_end_leave_for() {
    let fixture = Fixture::new();
    let lock = fixture.client.lock("x").max_hold(10 * SECOND);
    let guard = lock.acquire().await.unwrap();
    fixture.pass(Duration::from_millis(9_900)).await;
    fixture.store.set(Fault::Slow(Duration::from_millis(200)));
    let span = Duration::from_secs(40);
    guard.leave_for(span).await.unwrap();
    fixture.store.set(Fault::None);
    assert!(closed_for(&fixture).await >= span);
}

#[tokio::test(start_paused = true)]
async fn handle_delay_reduces_the_longest_ttl() {
    let fixture = Fixture::new();
    let lock = fixture.client.lock("x").lock_delay(20 * SECOND);
    let handle = lock.acquire().await.unwrap().into_handle().unwrap();
    let long = handle.clone().with_ttl(86_381 * SECOND);
    let error = fixture.client.renew(&long).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidInput);
    assert!(error.to_string().contains("100ms to 86380s"), "{error}");
    assert_eq!(renewals(&fixture), 0, "nothing was sent");
    let most = handle.with_ttl(86_380 * SECOND);
    assert!(fixture.client.renew(&most).await.is_ok());
}

#[tokio::test(start_paused = true)]
async fn renewal_with_an_unanswered_request_is_unknown() {
    let fixture = Fixture::new();
    let handle = handle(&fixture.client).await;
    fixture.store.set(Fault::Slow(5 * SECOND));
    let renewing = background::spawn(fixture.client.renew(&handle));
    fixture.pass(2 * SECOND).await;
    fixture.store.set(Fault::Unreachable);
    let error = renewing.await.unwrap().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unreachable, "{error}");
    assert_eq!(error.effect(), Effect::Unknown);
}

#[tokio::test(start_paused = true)]
async fn passed_deadline_without_answers_is_reported() {
    let fixture = Fixture::new();
    let handle = handle(&fixture.client).await;
    let left = handle.deadline().unwrap().since(fixture.now());
    fixture.pass(left - SECOND).await;
    fixture.store.set(Fault::Unreachable);
    let error = fixture.client.renew(&handle).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Lost, "{error}");
    assert!(error.to_string().contains("renewals failed"), "{error}");
}

/// A client with a thread of its own, of a store that answers later than a client that is dropped waits.
fn client_of_a_slow_store() -> (Client, FaultyStore) {
    let store = MemoryStore::new();
    let slow = FaultyStore::new(store, Env::default());
    (Client::new(slow.clone()), slow)
}

const LATE: Fault = Fault::Slow(Duration::from_millis(900));

#[tokio::test]
async fn last_guard_of_a_client_supports_leave_for() {
    let (client, store) = client_of_a_slow_store();
    let guard = hold(&client).await;
    drop(client);
    store.set(LATE);
    guard.leave_for(Duration::from_secs(50)).await.unwrap();
}

#[tokio::test]
async fn dropped_client_finishes_renewals_and_releases() {
    let (client, store) = client_of_a_slow_store();
    let handle = handle(&client).await;
    store.set(LATE);
    let renewal = client.renew(&handle);
    drop(client);
    let handle = renewal.await.unwrap();
    store.set(Fault::None);
    let client = Client::new(store.clone());
    store.set(LATE);
    let release = client.release(&handle);
    drop(client);
    assert_eq!(release.await.unwrap(), ReleaseOutcome::Released);
}

#[tokio::test]
async fn closing_a_client_waits_for_its_releases() {
    let (client, store) = client_of_a_slow_store();
    let guard = hold(&client).await;
    store.set(LATE);
    drop(guard);
    client.close().await.unwrap();
    let another = Client::new(store.clone());
    assert!(another.lock("x").try_acquire().await.unwrap().is_some());
}

#[test]
fn closing_a_client_ends_with_its_limit() {
    let store = FaultyStore::new(MemoryStore::new(), Env::default());
    let client = blocking::Client::new(store.clone());
    let guard = client.lock("x").try_acquire().unwrap().unwrap();
    store.set(Fault::Frozen);
    drop(guard);
    assert!(!client.clone().close(Duration::from_millis(1)).unwrap());
    store.set(Fault::None);
    assert!(client.close(Duration::from_secs(60)).unwrap());
}

#[tokio::test(start_paused = true)]
async fn leave_for_lasts_hardly_longer_than_its_span() {
    let fixture = Fixture::new();
    let guard = hold(&fixture.client).await;
    fixture.pass(Duration::from_secs(2)).await;
    let span = Duration::from_secs(45);
    guard.leave_for(span).await.unwrap();
    let closed = closed_for(&fixture).await;
    let most = span * 10 / 9 + SECOND;
    assert!(closed >= span && closed <= most, "{closed:?}");
}

#[tokio::test(start_paused = true)]
async fn leave_for_sends_nothing_for_a_long_lease() {
    let fixture = Fixture::new();
    let guard = hold(&fixture.client).await;
    guard.leave_for(Duration::from_secs(20)).await.unwrap();
    assert_eq!(renewals(&fixture), 0);
    let closed = closed_for(&fixture).await;
    assert!(closed >= TTL && closed < TTL + STEP, "{closed:?}");
}

#[tokio::test(start_paused = true)]
async fn leaving_has_the_limits_of_any_lease() {
    let fixture = Fixture::new();
    let error = hold(&fixture.client)
        .await
        .leave_for(Duration::from_secs(77_760))
        .await;
    let error = error.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidInput);
    assert!(
        error.to_string().contains("77760s: at most 77759.998s"),
        "{error}"
    );
    fixture.settle().await;
    assert!(is_free(&fixture.client, "x").await, "it is freed");
    let minute = Duration::from_secs(60);
    hold(&fixture.client).await.leave_for(minute).await.unwrap();
    assert!(closed_for(&fixture).await >= minute);
}

#[tokio::test(start_paused = true)]
async fn several_locks_are_left_at_the_same_time() {
    let fixture = Fixture::new();
    let guards = fixture.client.lock_all(["x", "y"]).acquire().await.unwrap();
    let span = Duration::from_secs(40);
    for (key, left) in guards.leave_for(span).await {
        assert!(left.is_ok(), "{key}: {left:?}");
    }
    assert!(closed_for(&fixture).await >= span - STEP);
}

#[tokio::test(start_paused = true)]
async fn leave_for_reports_a_dead_store() {
    let fixture = Fixture::new();
    let guard = hold(&fixture.client).await;
    fixture.store.set(Fault::Unreachable);
    let error = guard.leave_for(Duration::from_secs(50)).await.unwrap_err();
    assert_eq!(error.effect(), Effect::Unknown);
    fixture.store.set(Fault::None);
    assert!(!is_free(&fixture.client, "x").await);
}
