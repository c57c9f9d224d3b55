//! Locks that are held while no process keeps them.

use std::time::Duration;

use leasehold::clock::BootInstant;
use leasehold::handle::Handle;
use leasehold::memory::MemoryStore;
use leasehold::store::exact_span;
use leasehold::store::{LeaseTerms, Permits, background};
use leasehold::{Client, Effect, ErrorKind, Guard, Key, LostReason, ReleaseOutcome};
use leasehold_testkit::{Fault, FaultyStore, StoreCall};

use crate::fixture::{Fixture, MARGIN, TTL, client, is_free};

const SECOND: Duration = Duration::from_secs(1);
const MINUTE: Duration = Duration::from_secs(60);
pub(crate) const STEP: Duration = Duration::from_millis(100);

pub(crate) async fn hold(client: &Client) -> Guard {
    let taken = client.lock("x").try_acquire().await;
    taken.expect("an answer").expect("a free lock")
}

pub(crate) async fn handle(client: &Client) -> Handle {
    hold(client).await.into_handle().expect("a handle")
}

/// Returns how long it takes from now until a client that asks all the time gets the lock.
pub(crate) async fn closed_for(fixture: &Fixture) -> Duration {
    let (began, newcomer) = (fixture.now(), fixture.other_client());
    until_free(fixture, &newcomer, began).await
}

/// Time is virtual: without a bound, the wait for a lock that stays closed would never end.
async fn until_free(fixture: &Fixture, newcomer: &Client, began: BootInstant) -> Duration {
    while !is_free(newcomer, "x").await {
        fixture.pass(STEP).await;
        let closed = fixture.now().since(began);
        assert!(closed < 10 * MINUTE, "it stays closed");
    }
    fixture.now().since(began)
}

pub(crate) fn renewals(fixture: &Fixture) -> usize {
    fixture.count(|call| matches!(call, StoreCall::Renew(_)))
}

#[tokio::test(start_paused = true)]
async fn detached_lease_ends_after_its_ttl() {
    let fixture = Fixture::new();
    let guard = hold(&fixture.client).await;
    let deadline = guard.deadline();
    let handle = guard.into_handle().unwrap();
    assert_eq!(handle.deadline(), deadline);
    let closed = closed_for(&fixture).await;
    assert!(closed >= TTL && closed < TTL + STEP, "{closed:?}");
    assert_eq!(renewals(&fixture), 0);
}

#[tokio::test(start_paused = true)]
async fn handle_has_the_last_renewed_lease() {
    let fixture = Fixture::new();
    let first = hold(&fixture.client).await;
    let waiting = background::spawn(fixture.client.lock("x").acquire());
    fixture.pass(SECOND).await;
    first.release().await.unwrap();
    let guard = waiting.await.unwrap().unwrap();
    let mut deadline = guard.deadline();
    for _ in 0..5 {
        deadline = guard.deadline_moved(deadline).await;
    }
    let handle = guard.into_handle().unwrap();
    assert_eq!(handle.deadline(), deadline);
    let before = renewals(&fixture);
    assert_eq!(closed_for(&fixture).await.as_secs(), TTL.as_secs());
    assert_eq!(renewals(&fixture), before);
}

#[tokio::test(start_paused = true)]
async fn handle_renewal_counts_from_sending() {
    let fixture = Fixture::new();
    let mut handle = handle(&fixture.client).await;
    let fence = handle.fence();
    for _ in 0..4 {
        fixture.pass(Duration::from_secs(20)).await;
        let (sent, other) = (fixture.now(), fixture.other_client());
        fixture.store.set(Fault::Slow(Duration::from_millis(40)));
        handle = other.renew(&handle).await.unwrap();
        fixture.store.set(Fault::None);
        assert_eq!(handle.deadline(), Some(sent + TTL - MARGIN));
        assert_eq!(handle.fence(), fence);
        assert!(!is_free(&fixture.client, "x").await);
    }
    assert_eq!(
        fixture.client.release(&handle).await.unwrap(),
        ReleaseOutcome::Released
    );
    assert!(is_free(&fixture.client, "x").await);
}

#[tokio::test(start_paused = true)]
async fn passed_handle_deadline_is_final() {
    let fixture = Fixture::new();
    let handle = handle(&fixture.client).await;
    fixture
        .pass(handle.deadline().unwrap().since(fixture.now()))
        .await;
    assert!(!is_free(&fixture.client, "x").await, "the lease stands");
    let error = fixture.client.renew(&handle).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Lost);
    assert_eq!(error.effect(), Effect::None);
    assert!(fixture.client.adopt(&handle).await.is_err());
    assert_eq!(renewals(&fixture), 0, "nothing was sent");
    assert_eq!(
        fixture.client.release(&handle).await.unwrap(),
        ReleaseOutcome::Released
    );
}

#[tokio::test(start_paused = true)]
async fn late_confirmation_revives_no_handle() {
    let fixture = Fixture::new();
    let handle = handle(&fixture.client).await;
    let deadline = handle.deadline().unwrap();
    fixture.pass(deadline.since(fixture.now()) - SECOND).await;
    fixture.store.set(Fault::Slow(Duration::from_millis(1_500)));
    let error = fixture.client.renew(&handle).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Lost);
    assert!(fixture.now() > deadline);
}

#[tokio::test(start_paused = true)]
async fn old_handle_copy_keeps_its_deadline() {
    let fixture = Fixture::new();
    let old = handle(&fixture.client).await;
    fixture.pass(Duration::from_secs(20)).await;
    let renewed = fixture.client.renew(&old).await.unwrap();
    fixture.pass(Duration::from_secs(10)).await;
    let error = fixture.client.renew(&old).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Lost);
    assert!(fixture.client.renew(&renewed).await.is_ok());
}

#[tokio::test(start_paused = true)]
async fn old_handle_does_not_affect_the_next_holder() {
    let fixture = Fixture::new();
    let handle = handle(&fixture.client).await;
    let other = fixture.other_client();
    // Before its deadline: an operator freed it.
    fixture.memory.forget(&Key::new("x").unwrap());
    let next = hold(&other).await;
    let error = fixture.client.renew(&handle).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Lost);
    assert!(error.to_string().contains("another client"), "{error}");
    let ended = fixture.client.release(&handle).await.unwrap();
    assert_eq!(ended, ReleaseOutcome::WasLost);
    fixture.pass(2 * TTL).await;
    assert!(next.is_valid());
}

#[tokio::test(start_paused = true)]
async fn handle_of_another_store_is_refused_there() {
    let fixture = Fixture::new();
    let handle = handle(&fixture.client).await;
    let store = FaultyStore::new(MemoryStore::new());
    let elsewhere = client(store.called("elsewhere"), &fixture.env);
    let renewed = elsewhere.renew(&handle).await.map(drop);
    let released = elsewhere.release(&handle).await.map(drop);
    for error in [renewed.unwrap_err(), released.unwrap_err()] {
        assert_eq!(error.kind(), ErrorKind::InvalidInput);
        let text = error.to_string();
        assert!(
            text.contains("memory") && text.contains("elsewhere"),
            "{text}"
        );
    }
    assert!(is_free(&elsewhere, "x").await);
    assert!(!is_free(&fixture.client, "x").await);
}

#[tokio::test(start_paused = true)]
async fn silent_store_leaves_the_handle_unchanged() {
    let fixture = Fixture::new();
    let handle = handle(&fixture.client).await;
    let all = |fault| fixture.store.set(fault);
    all(Fault::Unreachable);
    let began = fixture.now();
    let error = fixture.client.renew(&handle).await.unwrap_err();
    assert_eq!(error.effect(), Effect::Unknown, "{error}");
    assert!(error.is_retryable(), "{error}");
    let tried = fixture.now().since(began);
    assert!(tried >= 3 * SECOND && tried < 6 * SECOND, "{tried:?}");
    all(Fault::None);
    assert!(fixture.client.renew(&handle).await.is_ok());
}

#[tokio::test(start_paused = true)]
async fn an_adopted_handle_is_a_guard_like_any() {
    let fixture = Fixture::new();
    let granted = hold(&fixture.client).await;
    let (owner, fence) = (granted.owner(), granted.fence());
    let handle = granted.into_handle().unwrap();
    fixture.pass(Duration::from_secs(20)).await;
    let other = fixture.other_client();
    let guard = other.adopt(&handle).await.unwrap();
    assert_eq!((guard.owner(), guard.fence()), (owner, fence));
    fixture.pass(5 * TTL).await;
    assert!(guard.is_valid() && !guard.is_in_doubt());
    // Another copy of the handle can still free it.
    assert_eq!(
        fixture.client.release(&handle).await.unwrap(),
        ReleaseOutcome::Released
    );
    assert!(is_free(&fixture.client, "x").await);
    assert_eq!(guard.lost().await, LostReason::Gone);
}

/// Another process may release the lease meanwhile.
#[tokio::test(start_paused = true)]
async fn renewal_of_a_handle_allows_no_repair() {
    let fixture = Fixture::new();
    let handle = handle(&fixture.client).await;
    let _renewed = fixture.client.renew(&handle).await.unwrap();
    let calls = fixture.store.calls();
    let mut renewals = calls.iter().filter_map(|call| match call {
        StoreCall::Renew(request) => Some(request),
        _ => None,
    });
    assert!(!renewals.next_back().expect("a renewal").repairs);
}

#[tokio::test(start_paused = true)]
async fn permits_and_shared_locks_have_handles() {
    let fixture = Fixture::new();
    let two = leasehold::Mode::Permit(Permits::new(2).unwrap());
    for (mode, others) in [(two, 1), (leasehold::Mode::Shared, 3)] {
        let lock = fixture.client.lock("y").mode(mode);
        let handle = lock.acquire().await.unwrap().into_handle().unwrap();
        let text = handle.reveal();
        fixture.pass(Duration::from_secs(20)).await;
        let handle = fixture.client.renew(&text.parse().unwrap()).await.unwrap();
        fixture.pass(Duration::from_secs(20)).await;
        assert!(!is_free(&fixture.client, "y").await);
        let mut beside = Vec::new();
        for _ in 0..others {
            beside.push(lock.try_acquire().await.unwrap().expect("room"));
        }
        if mode == two {
            assert!(lock.try_acquire().await.unwrap().is_none());
        }
        assert_eq!(
            fixture.client.release(&handle).await.unwrap(),
            ReleaseOutcome::Released
        );
        drop(beside);
        fixture.settle().await;
    }
}

#[tokio::test(start_paused = true)]
async fn another_ttl_counts_from_the_next_renewal_on() {
    let fixture = Fixture::new();
    let handle = handle(&fixture.client).await;
    let longer = handle.clone().with_ttl(MINUTE);
    let sent = fixture.now();
    let renewed = fixture.client.renew(&longer).await.unwrap();
    let margin = MINUTE / 10 + Duration::from_millis(2);
    assert_eq!(renewed.deadline(), Some(sent + MINUTE - margin));
    let before = renewals(&fixture);
    for ttl in [Duration::from_millis(99), LeaseTerms::TTL_MAX + STEP] {
        let error = fixture.client.renew(&renewed.clone().with_ttl(ttl)).await;
        let error = error.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidInput);
        let text = error.to_string();
        assert!(
            text.contains(&exact_span(ttl).to_string()) && text.contains("100ms to 1day"),
            "{text}"
        );
    }
    assert_eq!(renewals(&fixture), before, "nothing was sent");
    // A shorter one brings the deadline in, and not the end of the lease.
    let short = renewed.with_ttl(SECOND);
    let short = fixture.client.renew(&short).await.unwrap();
    let margin = SECOND / 10 + Duration::from_millis(2);
    assert_eq!(short.deadline(), Some(sent + SECOND - margin));
    let closed = closed_for_single(&fixture).await;
    assert_eq!(closed.as_secs(), MINUTE.as_secs());
}

/// As [`closed_for`], of a store without a quorum around it.
async fn closed_for_single(fixture: &Fixture) -> Duration {
    until_free(fixture, &fixture.client, fixture.now()).await
}

#[tokio::test(start_paused = true)]
async fn the_longest_hold_ends_a_handle_too() {
    let fixture = Fixture::new();
    let hold = Duration::from_secs(40);
    let granted = fixture.now();
    let lock = fixture.client.lock("x").max_hold(hold);
    let handle = lock.acquire().await.unwrap().into_handle().unwrap();
    fixture.pass(Duration::from_secs(20)).await;
    let handle = fixture.client.renew(&handle).await.unwrap();
    assert_eq!(handle.deadline(), Some(granted + hold));
    let guard = fixture.client.adopt(&handle).await.unwrap();
    assert_eq!(guard.lost().await, LostReason::MaxHold);
    assert_eq!(fixture.now(), granted + hold);
}

#[tokio::test(start_paused = true)]
async fn lost_handle_with_a_delay_releases_nothing() {
    let fixture = Fixture::new();
    let lock = fixture.client.lock("x").lock_delay(Duration::from_secs(20));
    let handle = lock.acquire().await.unwrap().into_handle().unwrap();
    assert_eq!(handle.ttl(), TTL);
    let handle = fixture.client.renew(&handle).await.unwrap();
    fixture.pass(TTL).await;
    assert_eq!(
        fixture.client.release(&handle).await.unwrap(),
        ReleaseOutcome::WasLost
    );
    assert!(!is_free(&fixture.client, "x").await);
    assert_eq!(closed_for(&fixture).await.as_secs(), 20);
}

#[tokio::test(start_paused = true)]
async fn shares_and_lost_guards_make_no_handle() {
    let fixture = Fixture::new();
    let guard = hold(&fixture.client).await;
    let error = guard.reenter().into_handle().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidInput);
    fixture.pass(2 * TTL).await;
    assert!(guard.is_valid(), "the other guard is kept");
    guard.give_up();
    assert_eq!(guard.into_handle().unwrap_err().kind(), ErrorKind::Lost);
    fixture.settle().await;
    assert!(is_free(&fixture.client, "x").await);
}
