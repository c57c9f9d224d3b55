//! An exclusive lock that becomes a shared one while it is held.

use std::collections::HashSet;
use std::time::Duration;

use futures_util::FutureExt;
use leasehold::look::Owner;
use leasehold::store::AcquireError;
use leasehold::{Client, Effect, Guard, GuardState, Key, LostReason, Mode, ReleaseOutcome};
use leasehold_testkit::{Fault, StoreCall};

use crate::fixture::{Fixture, MARGIN, TTL, attempt, request};

async fn hold(client: &Client) -> Guard {
    let taken = client.lock("x").try_acquire().await.expect("an answer");
    taken.expect("a free lock")
}

async fn try_reading(client: &Client) -> Option<Guard> {
    let lock = client.lock("x").mode(Mode::Shared);
    lock.try_acquire().await.expect("an answer")
}

async fn is_writable(client: &Client) -> bool {
    let taken = client.lock("x").try_acquire().await;
    taken.expect("an answer").is_some()
}

fn key() -> Key {
    Key::new("x").expect("a valid name")
}

/// In which mode `owner` holds the lock.
async fn mode(fixture: &Fixture, owner: Owner) -> Option<Mode> {
    let holders = fixture.holders(&key()).await;
    let own = holders.iter().find(|it| it.owner == Some(owner));
    own.map(|it| it.mode)
}

fn renewals(fixture: &Fixture, mode: Mode) -> usize {
    fixture.count(|call| matches!(call, StoreCall::Renew(request) if request.mode == mode))
}

#[tokio::test(start_paused = true)]
async fn downgraded_lock_admits_readers_but_no_writer() {
    let fixture = Fixture::new();
    let other = fixture.other_client();
    let guard = hold(&fixture.client).await;
    let fence = guard.fence();
    assert_eq!(guard.mode(), Mode::Exclusive);
    assert!(try_reading(&other).await.is_none());
    fixture.pass(Duration::from_secs(5)).await;

    let asked = fixture.now();
    guard.downgrade().await.unwrap();
    assert_eq!((guard.mode(), guard.fence()), (Mode::Shared, fence));
    assert_eq!(guard.deadline(), Some(asked + TTL - MARGIN));
    assert_eq!(mode(&fixture, guard.owner()).await, Some(Mode::Shared));
    let reader = try_reading(&other).await.expect("readers join");
    assert!(!is_writable(&other).await);

    // It lives on like any reader, and beyond the other one.
    fixture.pass(TTL * 3).await;
    assert!(guard.is_valid() && reader.is_valid());
    assert_eq!(reader.release().await.unwrap(), ReleaseOutcome::Released);
    assert!(!is_writable(&other).await);
    assert_eq!(guard.release().await.unwrap(), ReleaseOutcome::Released);
    assert!(is_writable(&other).await);
}

#[tokio::test(start_paused = true)]
async fn downgrade_admits_waiting_readers_at_once() {
    let fixture = Fixture::new();
    let guard = hold(&fixture.client).await;
    let clients = [(); 3].map(|()| fixture.other_client());
    let mut waiting = Vec::new();
    for (client, mode) in clients
        .iter()
        .zip([Mode::Shared, Mode::Shared, Mode::Exclusive])
    {
        let asking = client.lock("x").mode(mode).acquire();
        waiting.push(leasehold::store::background::spawn(asking));
        fixture.settle().await;
    }
    fixture.pass(Duration::from_secs(3)).await;
    let writer = waiting.pop().unwrap();
    let asked = fixture.now();
    guard.downgrade().await.unwrap();
    for reading in waiting {
        let reader = reading.await.unwrap().unwrap();
        assert!(reader.is_valid() && guard.is_valid());
        drop(reader);
    }
    let took = fixture.now().since(asked);
    assert!(took < Duration::from_millis(50), "{took:?}");
    assert!(!writer.is_finished());
    guard.release().await.unwrap();
    writer.await.unwrap().unwrap().release().await.unwrap();
}

/// Those who wait behind a writer wait for it, as behind any reader.
#[tokio::test(start_paused = true)]
async fn a_writer_that_waits_keeps_later_readers_out() {
    let fixture = Fixture::new();
    let guard = hold(&fixture.client).await;
    let (first, second) = (fixture.other_client(), fixture.other_client());
    let writing = leasehold::store::background::spawn(first.lock("x").acquire());
    fixture.settle().await;
    let reading = {
        let lock = second.lock("x").mode(Mode::Shared);
        leasehold::store::background::spawn(lock.acquire())
    };
    fixture.settle().await;
    guard.downgrade().await.unwrap();
    fixture.pass(Duration::from_secs(10)).await;
    assert!(!writing.is_finished() && !reading.is_finished());
    guard.release().await.unwrap();
    let writer = writing.await.unwrap().unwrap();
    assert!(!reading.is_finished());
    writer.release().await.unwrap();
    reading.await.unwrap().unwrap().release().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn at_no_moment_could_a_writer_enter() {
    let fixture = Fixture::new();
    let guard = hold(&fixture.client).await;
    fixture.store.set(Fault::Late(Duration::from_millis(40)));
    let mut seen = HashSet::new();
    let mut answered = None;
    let mut downgrading = Box::pin(guard.downgrade());
    for _ in 0..50 {
        let answer = attempt(&*fixture.apart, &request(&fixture, "x")).await;
        assert!(matches!(answer, Err(AcquireError::Busy(_))), "{answer:?}");
        seen.insert(mode(&fixture, guard.owner()).await);
        tokio::select! {
            biased;
            outcome = &mut downgrading, if answered.is_none() => answered = Some(outcome),
            () = fixture.pass(Duration::from_millis(5)) => {}
        }
    }
    answered.expect("an answer").unwrap();
    assert_eq!(seen.len(), 2, "before and after: {seen:?}");
}

/// The renewer goes on by itself, and never again in exclusive mode.
#[tokio::test(start_paused = true)]
async fn later_renewals_complete_a_failed_downgrade() {
    let fixture = Fixture::new();
    let guard = hold(&fixture.client).await;
    fixture.store.set(Fault::Unreachable);
    guard.downgrade().await.unwrap_err();
    fixture.store.set(Fault::None);
    fixture.pass(Duration::from_secs(3)).await;
    assert_eq!(mode(&fixture, guard.owner()).await, Some(Mode::Shared));
    assert_eq!(guard.state(), GuardState::Held);
    assert_eq!(renewals(&fixture, Mode::Exclusive), 0);
}

/// A renewal in exclusive mode is answered after the downgrade. The lease is shared by then, so the answer
/// is that it is lost, which must not end the guard.
#[tokio::test(start_paused = true)]
async fn a_renewal_sent_before_may_be_answered_after() {
    let fixture = Fixture::new();
    let guard = hold(&fixture.client).await;
    fixture.store.set(Fault::Late(Duration::from_millis(400)));
    let sent = || renewals(&fixture, Mode::Exclusive);
    while sent() == 0 {
        fixture.pass(Duration::from_millis(50)).await;
    }
    fixture.store.set(Fault::None);
    guard.downgrade().await.unwrap();
    fixture.pass(Duration::from_secs(1)).await;
    assert_eq!(guard.state(), GuardState::Held);
    assert_eq!(mode(&fixture, guard.owner()).await, Some(Mode::Shared));
    fixture.pass(TTL * 2).await;
    assert!(guard.is_valid());
    assert_eq!(sent(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_downgrade_that_is_dropped_goes_on() {
    let fixture = Fixture::new();
    let other = fixture.other_client();
    let guard = hold(&fixture.client).await;
    fixture.store.set(Fault::Slow(Duration::from_millis(100)));
    assert!(guard.downgrade().now_or_never().is_none());
    assert_eq!(guard.mode(), Mode::Shared);
    fixture.pass(Duration::from_millis(200)).await;
    assert!(try_reading(&other).await.is_some());
    assert_eq!(guard.release().await.unwrap(), ReleaseOutcome::Released);
    assert!(is_writable(&fixture.client).await);
}

#[tokio::test(start_paused = true)]
async fn a_lost_guard_is_not_made_shared() {
    let fixture = Fixture::new();
    let guard = hold(&fixture.client).await;
    fixture.store.set(Fault::Unreachable);
    guard.lost().await;
    fixture.store.set(Fault::None);
    let error = guard.downgrade().await.unwrap_err();
    assert!(error.is_lost(), "{error}");

    guard.release().await.unwrap();
    let guard = hold(&fixture.client).await;
    fixture.memory.forget(&key());
    let error = guard.downgrade().await.unwrap_err();
    assert!(error.is_lost(), "{error}");
    assert_eq!(guard.lost().await, LostReason::Gone);
}

#[tokio::test(start_paused = true)]
async fn deadline_during_a_downgrade_loses_the_guard() {
    let fixture = Fixture::new();
    let guard = hold(&fixture.client).await;
    let deadline = guard.deadline().unwrap();
    fixture.store.set(Fault::Unreachable);
    let last = Duration::from_millis(500);
    fixture.pass(deadline.since(fixture.now()) - last).await;
    fixture.store.set(Fault::Slow(last * 2));
    let error = guard.downgrade().await.unwrap_err();
    assert!(error.is_lost(), "{error}");
    assert_eq!(fixture.now(), deadline);
}

#[tokio::test(start_paused = true)]
async fn a_reader_is_shared_already_and_sends_nothing() {
    let fixture = Fixture::new();
    let guard = try_reading(&fixture.client).await.expect("a free lock");
    guard.downgrade().await.unwrap();
    assert_eq!(renewals(&fixture, Mode::Shared), 0);
}

#[tokio::test(start_paused = true)]
async fn all_shares_have_one_mode() {
    let fixture = Fixture::new();
    let other = fixture.other_client();
    let guard = hold(&fixture.client).await;
    let inner = guard.reenter();
    guard.downgrade().await.unwrap();
    assert_eq!(inner.mode(), Mode::Shared);
    assert_eq!(guard.release().await.unwrap(), ReleaseOutcome::StillHeld);
    assert!(try_reading(&other).await.is_some());
    assert_eq!(inner.release().await.unwrap(), ReleaseOutcome::Released);
}

#[tokio::test(start_paused = true)]
async fn unanswered_downgrade_is_unknown_and_repeatable() {
    let fixture = Fixture::new();
    let (other, _) = fixture.client_apart();
    let guard = hold(&fixture.client).await;
    let deadline = guard.deadline();
    fixture.store.set(Fault::Unreachable);
    let error = guard.downgrade().await.unwrap_err();
    assert_eq!(error.effect(), Effect::Unknown, "{error}");
    assert!(error.to_string().contains(r#"lock "x""#), "{error}");
    assert_eq!(guard.state(), GuardState::InDoubt);
    assert_eq!(guard.mode(), Mode::Shared, "readers may be in");
    assert_eq!(guard.deadline(), deadline);
    guard.downgrade().await.unwrap_err();

    fixture.store.set(Fault::None);
    guard.downgrade().await.unwrap();
    assert_eq!(guard.state(), GuardState::Held);
    assert!(try_reading(&other).await.is_some());
    guard.downgrade().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn release_during_a_downgrade_leaves_nothing() {
    let fixture = Fixture::new();
    let guard = hold(&fixture.client).await;
    // The store hears of it, and its answer does not come.
    fixture.store.set(Fault::Slow(Duration::from_millis(100)));
    assert!(guard.downgrade().now_or_never().is_none());
    fixture.settle().await;
    guard.release().await.unwrap();
    fixture.store.set(Fault::None);
    fixture.pass(Duration::from_secs(2)).await;
    assert_eq!(fixture.holders(&key()).await, []);
}
