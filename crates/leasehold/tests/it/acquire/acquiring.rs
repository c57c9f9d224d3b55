//! Attempts, waits, and what is left of those that were broken off.

use std::time::Duration;

use leasehold::{Effect, ErrorKind, Mode};
use leasehold_testkit::{Fault, StoreCall};

use crate::fixture::{Fixture, TTL, is_free};

fn owners(fixture: &Fixture) -> Vec<leasehold::look::Owner> {
    let calls = fixture.store.calls();
    calls
        .into_iter()
        .filter_map(|call| match call {
            StoreCall::Acquire(request) => Some(request.owner),
            _ => None,
        })
        .collect()
}

#[tokio::test(start_paused = true)]
async fn ended_wait_names_the_holder() {
    let fixture = Fixture::new();
    let _guard = fixture.client.lock("x").acquire().await.unwrap();
    assert!(!is_free(&fixture.client, "x").await);
    let asked = fixture.now();
    let wait = Duration::from_secs(5);
    let error = fixture
        .client
        .lock("x")
        .wait(wait)
        .acquire()
        .await
        .unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Busy);
    assert!(error.is_retryable());
    let text = error.to_string();
    assert!(text.contains(r#"lock "x": still held by client"#), "{text}");
    assert!(text.contains(&fixture.client.id().to_string()), "{text}");
    assert_eq!(error.holder(), Some(fixture.client.id()));
    let waited = fixture.now().since(asked);
    assert!(
        waited >= wait && waited < wait + Duration::from_secs(1),
        "{waited:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn owner_changes_after_an_unknown_effect() {
    let fixture = Fixture::new();
    let (holder, _) = fixture.client_apart();
    let _guard = holder.lock("x").acquire().await.unwrap();
    let waiting = leasehold::store::background::spawn(fixture.client.lock("x").acquire());
    fixture.pass(10 * TTL).await;
    let before = owners(&fixture);
    assert_eq!(before.len(), 1, "one call for the whole wait");
    assert_eq!(before[0].client(), fixture.client.id());
    fixture.store.set(Fault::Unreachable);
    fixture.settle().await;
    fixture.store.set(Fault::None);
    fixture.pass(2 * TTL).await;
    let after = owners(&fixture);
    assert_ne!(after.last(), before.last(), "a late release frees nothing");
    waiting.abort();
}

#[tokio::test(start_paused = true)]
async fn slow_attempt_is_discarded_and_released() {
    let fixture = Fixture::new();
    let ttl = Duration::from_secs(3);
    fixture.store.set(Fault::Slow(Duration::from_millis(1_100)));
    let error = fixture
        .client
        .lock("x")
        .ttl(ttl)
        .try_acquire()
        .await
        .unwrap_err();
    assert_eq!(error.effect(), Effect::Unknown);
    assert!(error.to_string().contains("no answer within 1s"), "{error}");
    fixture.store.set(Fault::None);
    fixture.pass(Duration::from_millis(1_200)).await;
    assert!(
        fixture
            .client
            .lock("x")
            .try_acquire()
            .await
            .unwrap()
            .is_some(),
        "it was freed"
    );
}

#[tokio::test(start_paused = true)]
async fn a_store_that_comes_back_is_waited_for() {
    let fixture = Fixture::new();
    fixture.store.set(Fault::Unreachable);
    let lock = fixture.client.lock("x").wait(Duration::from_secs(20));
    let waiting = leasehold::store::background::spawn(lock.acquire());
    fixture.pass(Duration::from_secs(7)).await;
    fixture.store.set(Fault::None);
    assert!(waiting.await.unwrap().unwrap().is_valid());
}

#[tokio::test(start_paused = true)]
async fn absent_store_fails_within_wait_or_ttl() {
    let fixture = Fixture::new();
    fixture.store.set(Fault::Unreachable);
    for (lock, wait_policy) in [
        (
            fixture.client.lock("x").wait(Duration::from_secs(5)),
            Duration::from_secs(5),
        ),
        (fixture.client.lock("x"), TTL),
    ] {
        let asked = fixture.now();
        let error = lock.acquire().await.unwrap_err();
        assert!(error.is_unreachable() && !error.is_busy(), "{error}");
        let waited = fixture.now().since(asked);
        assert!(waited >= wait_policy, "{waited:?}");
        assert!(waited < wait_policy + Duration::from_secs(1), "{waited:?}");
    }
    let asked = fixture.now();
    assert!(
        fixture
            .client
            .lock("x")
            .try_acquire()
            .await
            .unwrap_err()
            .is_unreachable()
    );
    assert_eq!(fixture.now(), asked, "one attempt, no pause");
}

#[tokio::test(start_paused = true)]
async fn a_dropped_acquisition_stops_asking_and_holds_nothing() {
    let fixture = Fixture::new();
    let guard = fixture.client.lock("x").acquire().await.unwrap();
    let lock = fixture.client.lock("x");
    {
        let mut waiting = std::pin::pin!(lock.acquire());
        tokio::select! {
            biased;
            _ = &mut waiting => panic!("the lock is held"),
            () = fixture.pass(Duration::from_secs(2)) => {}
        }
    }
    fixture.pass(Duration::from_millis(100)).await;
    let asked = owners(&fixture).len();
    fixture.pass(Duration::from_secs(20)).await;
    assert_eq!(owners(&fixture).len(), asked, "nobody asks any more");
    drop(guard);
    fixture.pass(Duration::from_millis(1)).await;
    assert!(fixture.client.holders("x").await.unwrap().is_empty());
}

#[tokio::test(start_paused = true)]
async fn invalid_input_names_its_rule_and_sends_nothing() {
    let single = Fixture::new();
    let lock = |fixture: &Fixture| fixture.client.lock("x");
    let ms = Duration::from_millis;
    for (lock, text) in [
        (single.client.lock(""), "lock name is empty"),
        (single.client.lock("a\nb"), "control character"),
        (
            single.client.lock("x".repeat(600)),
            "600 bytes; the maximum is 512",
        ),
        (single.client.lock("leasehold:member_record"), "reserved"),
        (lock(&single).ttl(ms(99)), "TTL 99ms is out of bounds; "),
        (
            lock(&single).ttl(ms(86_400_001)),
            "TTL 1day 1ms is out of bounds; ",
        ),
        (lock(&single).max_hold(Duration::ZERO), "max_hold is zero"),
    ] {
        let error = lock.acquire().await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidInput, "{error}");
        assert_eq!(error.effect(), Effect::None);
        assert!(
            error.to_string().contains(text),
            "{error} should say {text:?}"
        );
    }
    assert!(single.store.calls().is_empty());
}

#[tokio::test(start_paused = true)]
async fn readers_share_and_keep_a_writer_out() {
    let fixture = Fixture::new();
    let readers = [
        fixture
            .client
            .lock("x")
            .mode(Mode::Shared)
            .acquire()
            .await
            .unwrap(),
        fixture
            .client
            .lock("x")
            .mode(Mode::Shared)
            .acquire()
            .await
            .unwrap(),
    ];
    assert!(readers[0].fence() < readers[1].fence());
    assert!(!is_free(&fixture.client, "x").await);
    drop(readers);
    assert!(fixture.client.lock("x").wait(TTL).acquire().await.is_ok());
}

#[tokio::test(start_paused = true)]
async fn wait_that_ends_returns_the_last_answer() {
    let fixture = Fixture::new();
    let (holder, _) = fixture.client_apart();
    let guard = holder.lock("x").acquire().await.unwrap();
    let lock = fixture.client.lock("x").wait(Duration::from_secs(3));
    let waiting = leasehold::store::background::spawn(lock.acquire());
    fixture.pass(Duration::from_secs(2)).await;
    fixture.store.set(Fault::Frozen);
    // The waiter is called, and asks in vain.
    guard.release().await.unwrap();
    let asked = fixture.now();
    let error = waiting.await.unwrap().unwrap_err();
    assert!(error.is_busy(), "{error}");
    let given_back = "what the attempt gets is given back";
    assert_eq!(error.effect(), Effect::None, "{given_back}");
    assert!(fixture.now().since(asked) < Duration::from_secs(2));
    let error = fixture
        .client
        .lock("x")
        .wait(Duration::from_millis(1))
        .acquire()
        .await
        .unwrap_err();
    assert!(
        error.is_unreachable(),
        "the only attempt was not answered: {error}"
    );
    fixture.store.set(Fault::None);
}

/// In real time, since it is about the client's own thread and its end.
#[test]
fn closing_a_client_frees_a_cancelled_attempt() {
    use std::future::Future;
    use std::task::{Context, Poll, Waker};

    use leasehold::Client;
    use leasehold::memory::MemoryStore;
    use leasehold_testkit::FaultyStore;

    let member = MemoryStore::new();
    let slow = FaultyStore::new(member.clone());
    slow.set(Fault::Slow(Duration::from_millis(20)));
    let client = Client::new(slow.clone());
    let mut asking = Box::pin(client.lock("x").try_acquire());
    let first = asking
        .as_mut()
        .poll(&mut Context::from_waker(Waker::noop()));
    assert!(matches!(first, Poll::Pending));
    let seen = Client::new(member);
    let is_free = || pollster::block_on(seen.holders("x")).unwrap().is_empty();
    while is_free() {
        std::thread::yield_now();
    }
    drop(asking);
    pollster::block_on(client.close(Duration::from_secs(30))).unwrap();
    assert!(is_free());
}

#[tokio::test(start_paused = true)]
async fn builders_know_the_name_of_their_lock() {
    let client = Fixture::new().client;
    let name = "invoices/7";
    let (lock, semaphore) = (client.lock(name), client.semaphore(name, 2));
    let (election, once) = (client.election(name), client.once(name));
    for key in [lock.key(), semaphore.key(), election.key(), once.key()] {
        assert_eq!(key.unwrap(), name);
    }
    let refused = client.lock("").key().unwrap_err().clone();
    assert_eq!(refused.kind(), ErrorKind::InvalidInput, "{refused}");
}
