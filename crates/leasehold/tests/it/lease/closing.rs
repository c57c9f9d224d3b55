//! What remains of a client that was closed.

use std::time::Duration;

use futures_util::FutureExt as _;
use leasehold::store::background;
use leasehold::{Error, ErrorKind, LostReason, Mode, ReleaseOutcome};
use leasehold_testkit::Fault;

use crate::fixture::{Fixture, TTL};

const LIMIT: Duration = Duration::from_secs(5);

fn is_closed<T>(answer: Result<T, Error>) -> bool {
    answer.is_err_and(|error| error.kind() == ErrorKind::Closed)
}

#[tokio::test(start_paused = true)]
async fn close_ends_waits_before_it_releases() {
    let fixture = Fixture::new();
    let lock = fixture.client.lock("x");
    let guard = lock.acquire().await.unwrap();
    // The caller never polls it again.
    let mut unpolled = Box::pin(lock.acquire());
    assert!(unpolled.as_mut().now_or_never().is_none());
    fixture.settle().await;
    assert_eq!(fixture.waiters(guard.key()).await.len(), 1);

    fixture.client.clone().close(LIMIT).await.unwrap();
    let other = fixture.other_client().lock("x");
    assert!(other.try_acquire().await.unwrap().is_some());
    assert!(is_closed(unpolled.await));
}

#[tokio::test(start_paused = true)]
async fn close_wakes_a_wait() {
    let fixture = Fixture::new();
    let lock = fixture.client.lock("x");
    let _guard = lock.acquire().await.unwrap();
    let waiting = background::spawn(lock.acquire());
    fixture.settle().await;
    fixture.client.clone().close(LIMIT).await.unwrap();
    fixture.settle().await;
    assert!(waiting.is_finished());
    assert!(is_closed(waiting.await.unwrap()));
}

#[tokio::test(start_paused = true)]
async fn close_wakes_a_pause() {
    let fixture = Fixture::new();
    let began = fixture.now();
    let pause = fixture.client.pause(100 * TTL);
    let (paused, _) = tokio::join!(pause, fixture.client.clone().close(LIMIT));
    assert!(is_closed(paused));
    assert!(fixture.now().since(began) < TTL);
}

#[tokio::test(start_paused = true)]
async fn closed_client_loses_new_and_renewed_guards() {
    let fixture = Fixture::new();
    let renewed = fixture.client.lock("renewed").acquire().await.unwrap();
    fixture.pass(TTL).await;
    let new = fixture.client.lock("new").acquire().await.unwrap();
    let ends = [renewed.ended(), new.ended()];
    fixture.client.clone().close(LIMIT).await.unwrap();
    for end in ends {
        assert_eq!(end.now_or_never(), Some(Some(LostReason::Closed)));
    }
    for guard in [renewed, new] {
        assert!(fixture.holders(guard.key()).await.is_empty());
        assert_eq!(guard.release().await.unwrap(), ReleaseOutcome::WasLost);
    }
}

#[tokio::test(start_paused = true)]
async fn closed_client_refuses_every_call() {
    let fixture = Fixture::new();
    let client = fixture.client.clone();
    let handle = client.lock("x").acquire().await.unwrap();
    let handle = handle.into_handle().unwrap();
    fixture.client.clone().close(LIMIT).await.unwrap();
    let lock = client.lock("y");
    assert!(is_closed(lock.acquire().await));
    assert!(is_closed(
        lock.clone().mode(Mode::Shared).try_acquire().await
    ));
    assert!(is_closed(client.semaphore("z", 2).acquire().await));
    assert!(is_closed(client.lock_all(["a", "b"]).acquire().await));
    assert!(is_closed(client.holders("y").await));
    assert!(is_closed(client.health().await));
    assert!(is_closed(client.record("y").read().await));
    assert!(is_closed(client.once("r").result().await));
    assert!(is_closed(client.adopt(&handle).await));
    assert!(is_closed(client.pause(TTL).await));
    // A handle outlives the client that made it.
    let other = fixture.other_client();
    assert!(other.adopt(&handle).await.unwrap().is_valid());
}

#[tokio::test(start_paused = true)]
async fn grant_after_a_close_is_given_back() {
    let fixture = Fixture::new();
    fixture.store.set(Fault::Slow(Duration::from_millis(100)));
    let lock = fixture.client.lock("x");
    let (granted, closed) = tokio::join!(lock.try_acquire(), fixture.client.clone().close(LIMIT));
    assert!(is_closed(granted));
    closed.unwrap();
    fixture.pass(Duration::from_secs(1)).await;
    let other = fixture.other_client().lock("x");
    assert!(other.try_acquire().await.unwrap().is_some());
}

#[tokio::test(start_paused = true)]
async fn close_keeps_a_lock_delay() {
    let fixture = Fixture::new();
    let lock = fixture.client.lock("x").lock_delay(TTL);
    let guard = lock.acquire().await.unwrap();
    fixture.client.clone().close(LIMIT).await.unwrap();
    assert_eq!(guard.lost().now_or_never(), Some(LostReason::Closed));
    let other = fixture.other_client().lock("x");
    assert!(other.try_acquire().await.unwrap().is_none());
    fixture.pass(2 * TTL).await;
    assert!(other.try_acquire().await.unwrap().is_some());
}

#[tokio::test(start_paused = true)]
async fn close_of_a_frozen_store_ends_in_time() {
    let fixture = Fixture::new();
    let lock = fixture.client.lock("x");
    let guard = lock.acquire().await.unwrap();
    let mut unpolled = Box::pin(lock.acquire());
    assert!(unpolled.as_mut().now_or_never().is_none());
    fixture.settle().await;
    fixture.store.set(Fault::Frozen);
    let began = fixture.now();
    let error = fixture.client.clone().close(LIMIT).await.unwrap_err();
    assert!(error.is_unreachable(), "{error}");
    assert!(fixture.now().since(began) <= LIMIT + Duration::from_millis(1));
    assert!(!guard.is_valid());
}

#[tokio::test(start_paused = true)]
async fn flush_keeps_held_locks() {
    let fixture = Fixture::new();
    let guard = fixture.client.lock("x").acquire().await.unwrap();
    fixture.client.flush(LIMIT).await.unwrap();
    assert!(guard.is_valid());
    assert_eq!(fixture.holders(guard.key()).await.len(), 1);
}
