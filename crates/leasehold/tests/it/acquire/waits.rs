//! How long a wait takes, and what it leaves behind when it ends before the store's answer.

use std::time::Duration;

use leasehold::{Client, Effect, ErrorKind};
use leasehold_testkit::Fault;

use crate::fixture::{Fixture, TTL};

const MS: Duration = Duration::from_millis(1);

#[tokio::test(start_paused = true)]
async fn wait_ends_on_time_and_names_the_holder() {
    let fixture = Fixture::new();
    let _guard = fixture.client.lock("x").acquire().await.unwrap();
    for wait in [20 * MS, 150 * MS, 5_000 * MS] {
        let asked = fixture.now();
        let lock = fixture.client.lock("x").wait(wait);
        let error = lock.acquire().await.unwrap_err();
        assert!(error.is_busy(), "{error}");
        assert_eq!(error.effect(), Effect::None, "the attempt was released");
        let holder = fixture.client.id().to_string();
        assert!(error.to_string().contains(&holder), "{error}");
        assert_eq!(fixture.now().since(asked), wait);
    }
}

#[tokio::test(start_paused = true)]
async fn wait_ends_on_time_without_an_answer() {
    let fixture = Fixture::new();
    fixture.store.set(Fault::Slow(330 * MS));
    for (wait, ends) in [(20 * MS, 200 * MS), (220 * MS, 220 * MS)] {
        let asked = fixture.now();
        let lock = fixture.client.lock("x").wait(wait);
        let error = lock.acquire().await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unreachable, "{error}");
        assert!(error.to_string().contains("no answer within"), "{error}");
        assert_eq!(fixture.now().since(asked), ends);
    }
    // The attempt was granted after its caller had gone, and is freed.
    fixture.pass(1_000 * MS).await;
    let freed = fixture.client.lock("x").try_acquire().await.unwrap();
    assert!(freed.is_some());
}

#[tokio::test(start_paused = true)]
async fn shortest_wait_is_long_enough_for_an_answer() {
    let fixture = Fixture::new();
    fixture.store.set(Fault::Slow(130 * MS));
    let lock = fixture.client.lock("x").wait(MS / 1_000);
    let guard = lock.acquire().await.unwrap();
    assert!(lock.acquire().await.unwrap_err().is_busy());
    drop(guard);
}

#[tokio::test(start_paused = true)]
async fn try_with_a_wait_returns_none_at_its_end() {
    let fixture = Fixture::new();
    let lock = fixture.client.lock("x").wait(50 * MS);
    let guard = lock.try_acquire().await.unwrap().expect("a free lock");
    let asked = fixture.now();
    assert!(lock.try_acquire().await.unwrap().is_none());
    assert_eq!(fixture.now().since(asked), 50 * MS);
    let all = fixture.client.lock_all(["x", "y"]).wait(50 * MS);
    assert!(all.try_acquire().await.unwrap().is_none());
    assert_eq!(fixture.now().since(asked), 100 * MS);
    let (waited, ()) = tokio::join!(lock.clone().wait(TTL).try_acquire(), async {
        fixture.pass(10 * MS).await;
        drop(guard);
    });
    assert!(waited.unwrap().is_some());
}

#[tokio::test(start_paused = true)]
async fn client_has_defaults_for_its_locks() {
    let fixture = Fixture::new();
    let locks = Client::builder(fixture.store.clone())
        .env(fixture.env.clone())
        .on_current_runtime()
        .ttl(9_000 * MS)
        .wait(70 * MS)
        .build();
    let guard = locks.lock("x").acquire().await.unwrap();
    assert!(guard.remaining() < 9_000 * MS);
    let asked = fixture.now();
    assert!(locks.lock("x").try_acquire().await.unwrap().is_none());
    assert_eq!(fixture.now(), asked, "only a wait of its own counts");
    assert!(locks.lock("x").acquire().await.unwrap_err().is_busy());
    assert_eq!(fixture.now().since(asked), 70 * MS);
    let longer = locks.lock("y").ttl(TTL).acquire().await.unwrap();
    assert!(longer.remaining() > 9_000 * MS);
    let permits = locks.semaphore("z", 1);
    let _permit = permits.acquire().await.unwrap();
    assert!(permits.acquire().await.unwrap_err().is_busy());
}

#[tokio::test(start_paused = true)]
async fn short_wait_does_not_silence_a_slow_member() {
    let fixture = Fixture::new();
    let held = fixture.client.lock("held").acquire().await.unwrap();
    fixture.store.set(Fault::Slow(230 * MS));
    let began = fixture.now();
    while fixture.now().since(began) < 3 * TTL {
        let lock = fixture.client.lock("other").wait(20 * MS);
        assert!(lock.acquire().await.unwrap_err().is_unreachable());
        assert!(!held.is_in_doubt(), "a renewal failed");
    }
    let other = fixture.client.lock("another").try_acquire().await.unwrap();
    assert!(other.is_some());
}

#[tokio::test(start_paused = true)]
async fn wait_of_zero_asks_once() {
    let fixture = Fixture::new();
    fixture.store.set(Fault::Slow(130 * MS));
    let lock = fixture.client.lock("x").wait(Duration::ZERO);
    let guard = lock.acquire().await.unwrap();
    let asked = fixture.now();
    let error = lock.acquire().await.unwrap_err();
    assert!(error.is_busy(), "{error}");
    let holder = fixture.client.id().to_string();
    assert!(error.to_string().contains(&holder), "{error}");
    assert_eq!(fixture.now().since(asked), 130 * MS);
    drop(guard);
}

#[tokio::test(start_paused = true)]
async fn store_that_is_not_ready_is_waited_for() {
    let fixture = Fixture::new();
    fixture.store.set(Fault::NotReady);
    let waiting = leasehold::store::background::spawn(fixture.client.lock("x").acquire());
    fixture.pass(10 * TTL).await;
    assert!(!waiting.is_finished());
    fixture.store.set(Fault::None);
    assert!(waiting.await.unwrap().unwrap().is_valid());
}

#[tokio::test(start_paused = true)]
async fn waiter_survives_an_outage_of_any_length() {
    let fixture = Fixture::new();
    let guard = fixture.client.lock("x").acquire().await.unwrap();
    let waiting = leasehold::store::background::spawn(fixture.client.lock("x").acquire());
    fixture.settle().await;
    for outage in [Fault::Unreachable, Fault::Frozen] {
        fixture.store.set(outage);
        fixture.pass(10 * TTL).await;
    }
    assert!(!guard.is_valid() && !waiting.is_finished());
    // An acquisition that begins during the outage waits too.
    let late = leasehold::store::background::spawn(fixture.client.lock("y").acquire());
    fixture.pass(10 * TTL).await;
    assert!(!late.is_finished());
    fixture.store.set(Fault::None);
    assert!(waiting.await.unwrap().unwrap().is_valid());
    assert!(late.await.unwrap().unwrap().is_valid());
}
