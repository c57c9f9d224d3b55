//! Locks that are lost at a moment when no task looks: no answer arrives in between, and no timer
//! fires.

use std::time::Duration;

use futures_util::FutureExt as _;
use leasehold::store::{Permits, background};
use leasehold::{ErrorKind, LostReason, Mode};
use leasehold_testkit::Fault;

use crate::fixture::{Fixture, TTL};

/// The machine was suspended until all deadlines had passed. Its clock counts that time, but timers
/// fire later.
fn suspended(fixture: &Fixture) {
    let span = TTL - Duration::from_secs(2);
    fixture.env.clock.was_paused(span);
}

#[tokio::test(start_paused = true)]
async fn output_after_the_loss_is_dropped() {
    let fixture = Fixture::new();
    let body = async || {
        fixture.settle().await;
        suspended(&fixture);
        42
    };
    let guard = fixture.client.lock("a").acquire().await.unwrap();
    let error = guard.run(async |_| body().await).await.unwrap_err();
    assert_eq!(error.lost_reason(), Some(LostReason::Paused), "{error}");
    let guards = fixture.client.lock_all(["a", "b"]).acquire().await.unwrap();
    let error = guards.run(async |_| body().await).await.unwrap_err();
    assert!(error.is_lost());
    assert_eq!(error.key().unwrap().as_str(), "a");
}

#[tokio::test(start_paused = true)]
async fn set_restarts_if_its_first_lock_ended() {
    let fixture = Fixture::new();
    let last = fixture.client.lock("b").acquire().await.unwrap();
    let set = fixture.client.lock_all(["a", "b"]);
    let waiting = background::spawn(set.acquire());
    fixture.pass(Duration::from_secs(1)).await;
    suspended(&fixture);
    drop(last);
    let guards = waiting.await.unwrap().unwrap();
    assert!(guards.is_valid());
    assert_eq!(guards.keys().len(), 2);
}

#[tokio::test(start_paused = true)]
async fn incomplete_set_reports_its_loss_at_once() {
    let fixture = Fixture::new();
    let way = Duration::from_millis(100);
    fixture.store.set(Fault::Jittery(way));
    let names = ["a", "b", "c", "d", "e", "f", "g", "h"];
    let hold = Duration::from_millis(1);
    let set = fixture.client.lock_all(names).max_hold(hold);
    let guards = set.try_acquire().await.unwrap().expect("free locks");
    assert!(guards.lost().now_or_never().is_some());
}

#[tokio::test(start_paused = true)]
async fn lost_set_is_not_in_doubt() {
    let fixture = Fixture::new();
    let guards = fixture.client.lock_all(["a", "b"]).acquire().await.unwrap();
    fixture.store.set(Fault::Unreachable);
    fixture.pass(TTL / 2).await;
    assert!(guards.is_in_doubt());
    guards.guard("b").unwrap().give_up();
    assert!(guards.guard("a").unwrap().is_in_doubt());
    assert!(!guards.is_in_doubt() && !guards.is_valid());
}

#[tokio::test(start_paused = true)]
async fn impossible_lock_fails_the_set_at_once() {
    let fixture = Fixture::new();
    let other = fixture.other_client();
    let _busy = other.semaphore("a", 1).acquire().await.unwrap();
    let _differs = other.semaphore("b", 2).acquire().await.unwrap();
    let one = Mode::Permit(Permits::new(1).unwrap());
    let set = fixture.client.lock_all(["a", "b", "c"]).mode(one);
    let asked = fixture.now();
    let error = set.wait(TTL).acquire().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::PermitsDiffer);
    assert_eq!(error.key().unwrap().as_str(), "b");
    assert!(
        fixture.now().since(asked) < Duration::from_secs(1),
        "it waited for the first"
    );
}
