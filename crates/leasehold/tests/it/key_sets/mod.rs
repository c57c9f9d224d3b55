//! Several keys as one lock.

mod losing;

use std::collections::BTreeMap;
use std::future::Future;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::future::join_all;
use leasehold::clock::within;
use leasehold::store::background;
use leasehold::{Client, ErrorKind, Guard, Key, Mode, ReleaseOutcome};
use leasehold_testkit::{Fault, StoreCall};
use tokio::task::JoinHandle;

use crate::fixture::{Fixture, MARGIN, TTL, is_free};

const BUSY_FOR: Duration = Duration::from_millis(30);

async fn hold(client: &Client, name: &str) -> Guard {
    let guard = client.lock(name).try_acquire().await.expect("an answer");
    guard.expect("a free lock")
}

fn start<T: Send + 'static>(work: impl Future<Output = T> + Send + 'static) -> JoinHandle<T> {
    background::spawn(work)
}

/// That no member knows of a holder or a waiter of these locks.
async fn assert_nothing_left(fixture: &Fixture, names: &[&str]) {
    fixture.pass(Duration::from_millis(20)).await;
    for name in names {
        let key = Key::new(name).expect("a valid name");
        assert_eq!(fixture.holders(&key).await, [], "{name}");
        assert_eq!(fixture.waiters(&key).await, [], "{name}");
    }
}

#[tokio::test(start_paused = true)]
async fn names_are_sorted_and_deduplicated() {
    let fixture = Fixture::new();
    let set = fixture.client.lock_all(["b", "c", "a", "b"]).wait(TTL);
    let guards = set.acquire().await.unwrap();
    let names: Vec<_> = guards.keys().map(Key::as_str).collect();
    assert_eq!(names, ["a", "b", "c"]);
    for (key, fence) in guards.fences() {
        assert_eq!(guards.fence(key), Some(fence));
        assert_eq!(guards.guard(key).unwrap().fence(), fence);
        assert!(!is_free(&fixture.other_client(), key.as_str()).await);
    }
    assert!(guards.guard("d").is_none() && guards.fence("d").is_none());
    let ended = guards.release().await;
    let ended = ended
        .iter()
        .map(|(key, end)| (key.as_str(), end.clone().unwrap()));
    let released = |name| (name, ReleaseOutcome::Released);
    assert_eq!(ended.collect::<Vec<_>>(), ["a", "b", "c"].map(released));
    assert_nothing_left(&fixture, &["a", "b", "c"]).await;
}

#[tokio::test(start_paused = true)]
async fn missing_or_invalid_names_send_nothing() {
    let fixture = Fixture::new();
    let before = fixture.store.calls().len();
    let none = fixture.client.lock_all(Vec::<String>::new());
    for error in [
        none.acquire().await.unwrap_err(),
        none.ttl(TTL).try_acquire().await.unwrap_err(),
    ] {
        assert_eq!(error.kind(), ErrorKind::InvalidInput);
        assert!(error.to_string().contains("at least one name"), "{error}");
    }
    let bad = fixture.client.lock_all(["a", "leasehold:b"]);
    let error = bad.acquire().await.unwrap_err();
    assert!(error.to_string().contains("leasehold:b"), "{error}");
    let short = fixture
        .client
        .lock_all(["a", "b"])
        .ttl(Duration::from_millis(1));
    let error = short.acquire().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidInput);
    assert_eq!(fixture.store.calls().len(), before);
}

#[tokio::test(start_paused = true)]
async fn free_locks_take_one_round_trip() {
    let fixture = Fixture::new();
    let trip = Duration::from_millis(40);
    fixture.store.set(Fault::Slow(trip));
    let before = fixture.store.calls().len();
    let asked = fixture.now();
    let guards = fixture.client.lock_all(["d", "b", "a", "c"]);
    let guards = guards.acquire().await.unwrap();
    assert_eq!(fixture.now().since(asked), trip);
    let calls = fixture.store.calls().split_off(before);
    assert_eq!(calls.len(), 4, "{calls:?}");
    assert!(
        calls
            .iter()
            .all(|call| matches!(call, StoreCall::Acquire(_)))
    );
    assert_eq!(guards.deadline(), Some(asked + TTL - MARGIN));
    let asked = fixture.now();
    guards.release().await;
    assert_eq!(fixture.now().since(asked), trip);
}

#[tokio::test(start_paused = true)]
async fn set_of_one_waits_like_its_lock() {
    let fixture = Fixture::new();
    let first = hold(&fixture.client, "a").await;
    let before = fixture.store.calls().len();
    let waiting = start(fixture.other_client().lock_all(["a", "a"]).acquire());
    fixture.settle().await;
    let calls = fixture.store.calls().split_off(before);
    let as_a_lock = matches!(&calls[0], StoreCall::Acquire(request) if request.waits);
    assert!(
        as_a_lock,
        "its first attempt is part of the wait: {calls:?}"
    );
    first.release().await.unwrap();
    assert!(waiting.await.unwrap().unwrap().is_valid());
}

#[tokio::test(start_paused = true)]
async fn waiting_set_holds_only_earlier_locks() {
    let fixture = Fixture::new();
    let other = fixture.other_client();
    let (b, d) = (hold(&other, "b").await, hold(&other, "d").await);
    let set = fixture.client.lock_all(["e", "d", "c", "b", "a"]);
    let waiting = start(set.acquire());
    fixture.settle().await;
    let free = async |name| is_free(&fixture.other_client(), name).await;
    assert!(!free("a").await);
    assert!(free("c").await && free("e").await);
    b.release().await.unwrap();
    fixture.settle().await;
    assert!(!free("b").await && !free("c").await);
    assert!(free("e").await, "it waits for d");
    d.release().await.unwrap();
    let guards = waiting.await.unwrap().unwrap();
    assert_eq!(guards.keys().len(), 5);
    guards.release().await;
    assert_nothing_left(&fixture, &["a", "b", "c", "d", "e"]).await;
}

#[tokio::test(start_paused = true)]
async fn overlapping_sets_never_deadlock() {
    let fixture = Fixture::new();
    let counts: Arc<BTreeMap<&str, (AtomicU64, AtomicU64)>> = Arc::new(
        SETS.concat()
            .into_iter()
            .map(|key| (key, Default::default()))
            .collect(),
    );
    let last: Arc<Mutex<BTreeMap<Key, leasehold::Fence>>> = Arc::default();
    let tasks: Vec<_> = (0..24)
        .map(|number| {
            let client = if number % 2 == 0 {
                fixture.client.clone()
            } else {
                fixture.other_client()
            };
            let (counts, last) = (Arc::clone(&counts), Arc::clone(&last));
            let (env, names) = (fixture.env.clone(), SETS[number % SETS.len()]);
            start(async move {
                for _ in 0..5 {
                    let guards = client.lock_all(names).acquire().await.unwrap();
                    for (key, fence) in guards.fences() {
                        let before = last.lock().unwrap().insert(key.clone(), fence);
                        assert!(before < Some(fence), "{key}: {before:?} then {fence}");
                    }
                    let seen = names.map(|name| counts[name].0.load(Ordering::Relaxed));
                    for name in names {
                        assert_eq!(counts[name].1.fetch_add(1, Ordering::Relaxed), 0, "{name}");
                    }
                    let clock = &env.clock;
                    clock.sleep_until(clock.now() + BUSY_FOR).await;
                    for (name, seen) in names.into_iter().zip(seen) {
                        counts[name].0.store(seen + 1, Ordering::Relaxed);
                        counts[name].1.fetch_sub(1, Ordering::Relaxed);
                    }
                    guards.release().await;
                }
            })
        })
        .collect();
    let limit = fixture.now() + Duration::from_secs(600);
    let all = within(&*fixture.env.clock, limit, join_all(tasks)).await;
    for ended in all.expect("a deadlock") {
        ended.unwrap();
    }
    for (name, (count, _)) in &*counts {
        let sets = (0..24).filter(|number| SETS[number % SETS.len()].contains(name));
        assert_eq!(
            count.load(Ordering::Relaxed),
            sets.count() as u64 * 5,
            "{name}"
        );
    }
    assert_nothing_left(&fixture, &["a", "b", "c", "d", "e"]).await;
}

const SETS: [[&str; 3]; 6] = [
    ["a", "b", "c"],
    ["c", "b", "a"],
    ["b", "d", "e"],
    ["e", "c", "b"],
    ["d", "a", "e"],
    ["e", "d", "c"],
];

#[tokio::test(start_paused = true)]
async fn try_is_all_or_nothing_without_waiting() {
    let fixture = Fixture::new();
    let other = fixture.other_client();
    for taken in ["a", "b", "c"] {
        let guard = hold(&other, taken).await;
        let asked = fixture.now();
        let set = fixture.client.lock_all(["c", "a", "b"]);
        assert!(set.try_acquire().await.unwrap().is_none());
        assert_eq!(fixture.now(), asked);
        guard.release().await.unwrap();
        assert_nothing_left(&fixture, &["a", "b", "c"]).await;
    }
    let set = fixture.client.lock_all(["c", "a", "b"]);
    assert!(set.try_acquire().await.unwrap().is_some());
}

#[tokio::test(start_paused = true)]
async fn those_who_share_are_in_together() {
    let fixture = Fixture::new();
    let set = fixture.client.lock_all(["a", "b"]).mode(Mode::Shared);
    let (first, second) = (set.acquire().await.unwrap(), set.acquire().await.unwrap());
    let alone = fixture.client.lock_all(["b", "c"]);
    assert!(alone.try_acquire().await.unwrap().is_none());
    drop((first, second));
    assert!(alone.acquire().await.unwrap().is_valid());
}

#[tokio::test(start_paused = true)]
async fn shared_wait_names_the_missing_lock() {
    let fixture = Fixture::new();
    let other = fixture.other_client();
    let (b, _d) = (hold(&other, "b").await, hold(&other, "d").await);
    let wait = Duration::from_secs(10);
    let asked = fixture.now();
    let waiting = start(
        fixture
            .client
            .lock_all(["a", "b", "c", "d"])
            .wait(wait)
            .acquire(),
    );
    fixture.pass(Duration::from_secs(8)).await;
    b.release().await.unwrap();
    let error = waiting.await.unwrap().unwrap_err();
    let waited = fixture.now().since(asked);
    assert!(
        waited >= wait && waited < wait + Duration::from_secs(1),
        "{waited:?}"
    );
    assert!(error.is_busy());
    assert_eq!(error.key().unwrap().as_str(), "d");
    assert_nothing_left(&fixture, &["a", "b", "c"]).await;
}

#[tokio::test(start_paused = true)]
async fn dropped_set_wait_leaves_nothing_behind() {
    let fixture = Fixture::new();
    let other = fixture.other_client();
    for step in [0, 1, 25, 60, 100, 5_000] {
        let taken = hold(&other, "c").await;
        fixture.store.set(Fault::Slow(Duration::from_millis(20)));
        let waiting = start(fixture.client.lock_all(["a", "b", "c", "d"]).acquire());
        fixture.pass(Duration::from_millis(step)).await;
        waiting.abort();
        assert!(waiting.await.unwrap_err().is_cancelled());
        fixture.store.set(Fault::None);
        fixture.pass(Duration::from_millis(100)).await;
        taken.release().await.unwrap();
        assert_nothing_left(&fixture, &["a", "b", "c", "d"]).await;
    }
}

#[tokio::test(start_paused = true)]
async fn absent_store_is_retried_within_the_wait() {
    let fixture = Fixture::new();
    let set = fixture
        .client
        .lock_all(["a", "b"])
        .wait(Duration::from_secs(20));
    fixture.store.set(Fault::Unreachable);
    assert!(set.try_acquire().await.unwrap_err().is_unreachable());
    let waiting = start(set.acquire());
    fixture.pass(Duration::from_secs(5)).await;
    fixture.store.set(Fault::None);
    drop(waiting.await.unwrap().unwrap());
    assert_nothing_left(&fixture, &["a", "b"]).await;
}
