//! Guards that are given up while their leases last: for how long, and what may happen in between.

use std::time::Duration;

use leasehold::blocking;
use leasehold::memory::MemoryStore;
use leasehold::store::background;
use leasehold::{Client, Effect, ErrorKind, ReleaseOutcome};
use leasehold_testkit::{Fault, FaultyStore};

use super::handles::{handle, hold, renewals};
use crate::fixture::Fixture;

const SECOND: Duration = Duration::from_secs(1);

#[tokio::test(start_paused = true)]
async fn handle_delay_reduces_the_longest_ttl() {
    let fixture = Fixture::new();
    let lock = fixture.client.lock("x").lock_delay(20 * SECOND);
    let handle = lock.acquire().await.unwrap().into_handle().unwrap();
    let long = handle.clone().with_ttl(86_381 * SECOND);
    let error = fixture.client.renew(&long).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidInput);
    assert!(
        error.to_string().contains("100ms to 23h 59m 40s"),
        "{error}"
    );
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
    let slow = FaultyStore::new(store);
    (Client::new(slow.clone()), slow)
}

const LATE: Fault = Fault::Slow(Duration::from_millis(900));

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
    client.close(60 * SECOND).await.unwrap();
    let another = Client::new(store.clone());
    assert!(another.lock("x").try_acquire().await.unwrap().is_some());
}

#[test]
fn closing_a_client_ends_with_its_limit() {
    let store = FaultyStore::new(MemoryStore::new());
    let client = blocking::Client::new(store.clone());
    let guard = client.lock("x").try_acquire().unwrap().unwrap();
    store.set(Fault::Frozen);
    drop(guard);
    let error = client.clone().close(Duration::from_millis(1)).unwrap_err();
    assert!(error.is_unreachable() && error.effect() == Effect::Unknown);
    let text = error.to_string();
    assert!(text.contains("did not confirm a release"), "{text}");
    store.set(Fault::None);
    client.close(60 * SECOND).unwrap();
}
