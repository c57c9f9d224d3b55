//! A lock that stays closed for a while after an unclean end.

use std::time::Duration;

use futures_util::FutureExt;
use leasehold::clock::BootInstant;
use leasehold::store::LockRequest;
use leasehold::{Client, ErrorKind, Guard, LostReason, Mode, ReleaseOutcome};
use leasehold_testkit::{Fault, FaultyStore, StoreCall};

use crate::fixture::{Fixture, MARGIN, TTL};

const DELAY: Duration = Duration::from_secs(20);

/// How often a newcomer asks.
const STEP: Duration = Duration::from_millis(100);

/// A client with a way of its own to the store, which can be cut.
struct Holder {
    way: FaultyStore,
    client: Client,
}

impl Holder {
    fn new(fixture: &Fixture) -> Self {
        let (client, way) = fixture.client_apart();
        Self { way, client }
    }

    async fn hold(&self) -> Guard {
        let taken = self.client.lock("x").lock_delay(DELAY).try_acquire().await;
        taken.expect("an answer").expect("a free lock")
    }

    /// It sends nothing to the store from now on, as if its process were gone.
    fn cut_off(&self) {
        self.way.set(Fault::Unreachable);
    }

    fn releases(&self) -> usize {
        let is_release = |call: &StoreCall| matches!(call, StoreCall::Release(_));
        let calls = self.way.calls().into_iter();
        calls.filter(is_release).count()
    }

    fn renewed(&self) -> Vec<LockRequest> {
        let calls = self.way.calls().into_iter();
        let requests = calls.filter_map(|call| match call {
            StoreCall::Renew(request) => Some(request),
            _ => None,
        });
        requests.collect()
    }
}

/// Returns when a client that asks all the time gets the lock.
async fn open_again(fixture: &Fixture) -> BootInstant {
    let newcomer = fixture.other_client();
    loop {
        let taken = newcomer.lock("x").try_acquire().await.expect("an answer");
        if let Some(guard) = taken {
            let at = fixture.now();
            guard.release().await.expect("an answer");
            return at;
        }
        fixture.pass(STEP).await;
    }
}

fn assert_exactly(closed: Duration, expected: Duration) {
    assert!(
        closed >= expected && closed < expected + STEP,
        "closed for {closed:?} instead of {expected:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn death_closes_the_lock_for_ttl_and_delay() {
    let fixture = Fixture::new();
    let holder = Holder::new(&fixture);
    let taken = fixture.now();
    let _guard = holder.hold().await;
    holder.cut_off();
    assert_exactly(open_again(&fixture).await.since(taken), TTL + DELAY);
}

#[tokio::test(start_paused = true)]
async fn delay_counts_from_the_last_renewal() {
    let fixture = Fixture::new();
    let holder = Holder::new(&fixture);
    let guard = holder.hold().await;
    let mut deadline = guard.deadline();
    for _ in 0..20 {
        deadline = guard.deadline_moved(deadline).await;
    }
    let renewed = fixture.now();
    assert!(holder.renewed().iter().all(|it| it.ttl == TTL + DELAY));
    holder.cut_off();
    assert_exactly(open_again(&fixture).await.since(renewed), TTL + DELAY);
}

#[tokio::test(start_paused = true)]
async fn delay_changes_no_deadline_and_no_interval() {
    let fixture = Fixture::new();
    let holder = Holder::new(&fixture);
    let taken = fixture.now();
    let guard = holder.hold().await;
    assert_eq!(guard.deadline(), Some(taken + TTL - MARGIN));
    let moved = guard.deadline_moved(guard.deadline()).await;
    let first = fixture.now().since(taken);
    assert!(first <= TTL / 3 && first >= TTL / 10, "{first:?}");
    assert_eq!(moved, Some(fixture.now() + TTL - MARGIN));
    let moved = guard.deadline_moved(moved).await;
    assert_exactly(fixture.now().since(taken), first + TTL / 3);
    holder.cut_off();
    assert_eq!(guard.lost().await, LostReason::Unreachable);
    assert_eq!(Some(fixture.now()), moved);
}

#[tokio::test(start_paused = true)]
async fn delay_gives_a_slow_store_no_time() {
    let ttl = Duration::from_millis(2_700);
    let limit = ttl / 3;
    let fixture = Fixture::new();
    let holder = Holder::new(&fixture);
    // It knows its members already.
    drop(holder.hold().await);
    fixture.settle().await;
    holder.way.set(Fault::Frozen);
    let asked = fixture.now();
    let lock = holder.client.lock("y").ttl(ttl).lock_delay(DELAY);
    let error = lock.try_acquire().await.unwrap_err();
    assert!(error.is_unreachable(), "{error}");
    assert_eq!(fixture.now().since(asked), limit);
}

#[tokio::test(start_paused = true)]
async fn delay_gives_a_slow_renewal_no_time() {
    let ttl = Duration::from_millis(2_700);
    let limit = ttl / 3;
    let fixture = Fixture::new();
    let holder = Holder::new(&fixture);
    let lock = holder.client.lock("x").ttl(ttl).lock_delay(DELAY);
    let guard = lock.acquire().await.unwrap();
    holder.way.set(Fault::Frozen);
    fixture.pass(ttl / 3 + limit + STEP / 2).await;
    assert!(guard.is_in_doubt());
}

#[tokio::test(start_paused = true)]
async fn valid_guard_opens_the_lock_at_once() {
    let fixture = Fixture::new();
    let holder = Holder::new(&fixture);
    let guard = holder.hold().await;
    assert_eq!(guard.release().await.unwrap(), ReleaseOutcome::Released);
    assert_eq!(open_again(&fixture).await, fixture.now());
    drop(holder.hold().await);
    fixture.settle().await;
    let dropped = fixture.now();
    assert_eq!(open_again(&fixture).await, dropped);
}

#[tokio::test(start_paused = true)]
async fn lost_guard_does_not_open_the_lock() {
    for releases in [true, false] {
        let fixture = Fixture::new();
        let holder = Holder::new(&fixture);
        let taken = fixture.now();
        let guard = holder.hold().await;
        let inner = guard.reenter();
        holder.cut_off();
        guard.lost().await;
        holder.way.set(Fault::None);
        drop(inner);
        if releases {
            assert_eq!(guard.release().await.unwrap(), ReleaseOutcome::WasLost);
        } else {
            drop(guard);
        }
        assert_exactly(open_again(&fixture).await.since(taken), TTL + DELAY);
        assert_eq!(holder.releases(), 0);
    }
}

#[tokio::test(start_paused = true)]
async fn lost_body_leaves_the_lock_closed() {
    let fixture = Fixture::new();
    let holder = Holder::new(&fixture);
    let taken = fixture.now();
    let guard = holder.hold().await;
    holder.cut_off();
    let outcome = guard
        .run(async |_| std::future::pending::<()>().await)
        .await;
    assert!(outcome.unwrap_err().is_lost());
    assert_exactly(open_again(&fixture).await.since(taken), TTL + DELAY);
}

#[tokio::test(start_paused = true)]
async fn max_hold_is_an_unclean_end() {
    let fixture = Fixture::new();
    let holder = Holder::new(&fixture);
    let span = TTL / 2;
    let lock = holder.client.lock("x").lock_delay(DELAY).max_hold(span);
    let guard = lock.acquire().await.unwrap();
    let mut renewed = fixture.now();
    while guard.is_valid() {
        let before = holder.renewed().len();
        fixture.pass(STEP).await;
        if holder.renewed().len() > before {
            renewed = fixture.now();
        }
    }
    assert_eq!(guard.release().await.unwrap(), ReleaseOutcome::WasLost);
    let closed = open_again(&fixture).await.since(renewed);
    assert!(closed + STEP * 2 > TTL + DELAY, "{closed:?}");
}

#[tokio::test(start_paused = true)]
async fn unused_attempt_is_released_without_delay() {
    let fixture = Fixture::new();
    let holder = Holder::new(&fixture);
    holder.way.set(Fault::Slow(STEP));
    let asking = holder.client.lock("x").lock_delay(DELAY).acquire();
    assert!(asking.now_or_never().is_none(), "the store is slow");
    holder.way.set(Fault::None);
    fixture.pass(STEP).await;
    fixture.settle().await;
    let answered = fixture.now();
    assert_eq!(open_again(&fixture).await, answered);
}

#[tokio::test(start_paused = true)]
async fn waiter_is_granted_after_the_delay() {
    let fixture = Fixture::new();
    let holder = Holder::new(&fixture);
    let taken = fixture.now();
    let guard = holder.hold().await;
    let waiter = fixture.other_client();
    let waiting = leasehold::store::background::spawn(waiter.lock("x").acquire());
    fixture.settle().await;
    holder.cut_off();
    guard.lost().await;
    drop(guard);
    let next = waiting.await.unwrap().unwrap();
    let closed = fixture.now().since(taken);
    assert!(closed >= TTL + DELAY, "{closed:?}");
    assert!(closed < TTL + DELAY + Duration::from_secs(1), "{closed:?}");
    next.release().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn dead_readers_delay_keeps_writers_out() {
    let fixture = Fixture::new();
    let holder = Holder::new(&fixture);
    let taken = fixture.now();
    let lock = holder.client.lock("x").mode(Mode::Shared).lock_delay(DELAY);
    let _dead = lock.acquire().await.unwrap();
    holder.cut_off();
    let reader = fixture.client.lock("x").mode(Mode::Shared);
    drop(reader.try_acquire().await.unwrap().expect("readers join"));
    assert_exactly(open_again(&fixture).await.since(taken), TTL + DELAY);
}

#[tokio::test(start_paused = true)]
async fn dead_holders_permit_stays_taken_for_the_delay() {
    let fixture = Fixture::new();
    let holder = Holder::new(&fixture);
    let taken = fixture.now();
    let permits = holder.client.semaphore("x", 1).lock_delay(DELAY);
    let _dead = permits.acquire().await.unwrap();
    holder.cut_off();
    let waiting = fixture.client.semaphore("x", 1).acquire();
    drop(waiting.await.unwrap());
    let waited = fixture.now().since(taken);
    assert!(waited >= TTL + DELAY, "{waited:?}");
}

#[tokio::test(start_paused = true)]
async fn invalid_delay_names_its_bound_and_sends_nothing() {
    let fixture = Fixture::new();
    let asked = |ttl: u64, delay: Duration| {
        let lock = fixture.client.lock("x").ttl(Duration::from_secs(ttl));
        lock.lock_delay(delay)
    };
    for (lock, text) in [
        (
            asked(40, Duration::from_millis(86_360_001)),
            "TTL 40s and lock_delay 23h 59m 20s 1ms are too long; ",
        ),
        (asked(30, Duration::MAX), "at most 1day together"),
        (asked(86_401, DELAY), "TTL 1day 1s is out of bounds"),
    ] {
        let error = lock.acquire().await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidInput, "{error}");
        let said = error.to_string();
        assert!(said.contains(text), "{said} should say {text:?}");
    }
    assert_eq!(fixture.count(|_| true), 0);
    let lock = asked(40, Duration::from_secs(86_360));
    assert!(lock.try_acquire().await.unwrap().is_some());
}

#[tokio::test(start_paused = true)]
async fn give_up_loses_the_guard_at_once() {
    let fixture = Fixture::new();
    let holder = Holder::new(&fixture);
    let taken = fixture.now();
    let guard = holder.hold().await;
    let inner = guard.reenter();
    fixture.pass(STEP).await;
    guard.give_up();
    assert_eq!(inner.lost().await, LostReason::GivenUp);
    fixture.pass(TTL).await;
    assert_eq!(holder.renewed().len(), 0);
    drop(inner);
    assert_eq!(guard.release().await.unwrap(), ReleaseOutcome::WasLost);
    assert_exactly(open_again(&fixture).await.since(taken), TTL + DELAY);
}

#[tokio::test(start_paused = true)]
async fn give_up_without_a_delay_frees_at_drop() {
    let fixture = Fixture::new();
    let guard = fixture.client.lock("x").acquire().await.unwrap();
    guard.give_up();
    guard.release().await.unwrap();
    assert_eq!(open_again(&fixture).await, fixture.now());
}

#[tokio::test(start_paused = true)]
async fn incomplete_set_leaves_no_lock_closed() {
    let fixture = Fixture::new();
    let other = fixture.other_client();
    let b = other.lock("b").acquire().await.unwrap();
    let set = fixture.client.lock_all(["b", "x"]).lock_delay(DELAY);
    let second = fixture.client.lock_all(["x", "y"]).lock_delay(DELAY);
    drop(b);
    fixture.settle().await;
    let held = set.acquire().await.unwrap();
    held.give_up();
    drop(held);
    fixture.settle().await;
    assert!(second.try_acquire().await.unwrap().is_none(), "it was had");
    let y = other.lock("y").acquire().await.unwrap();
    let set = fixture.client.lock_all(["a", "y"]);
    let set = set.max_hold(TTL / 30).lock_delay(DELAY);
    assert!(set.acquire().await.unwrap_err().is_lost());
    fixture.settle().await;
    let a = other.lock("a").try_acquire().await.unwrap();
    assert!(a.is_some(), "nobody has worked under it");
    drop(y);
}
