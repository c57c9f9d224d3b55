//! The loss of one of several locks.

use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt as _;
use leasehold::{ErrorKind, Guard, LostReason, ReleaseOutcome};
use leasehold_testkit::StoreCall;

use super::{assert_nothing_left, hold, start};
use crate::fixture::{Fixture, TTL, is_free, take};

/// Frees the lock in its holder's name, as an operator does by deleting it at the servers.
async fn delete(fixture: &Fixture, name: &str) {
    let requests = fixture
        .store
        .calls()
        .into_iter()
        .rev()
        .find_map(|call| match call {
            StoreCall::Acquire(request) if request.key.as_str() == name => Some(request),
            _ => None,
        });
    let request = requests.expect("a request");
    fixture
        .apart
        .release(&Arc::new(request))
        .await
        .expect("an answer");
}

#[tokio::test(start_paused = true)]
async fn one_loss_loses_the_whole_set() {
    let fixture = Fixture::new();
    let guards = fixture
        .client
        .lock_all(["a", "b", "c"])
        .acquire()
        .await
        .unwrap();
    let mut lost = Box::pin(guards.lost());
    fixture.pass(TTL * 2).await;
    assert!(guards.is_valid() && lost.as_mut().now_or_never().is_none());
    guards.ensure(TTL / 2).unwrap();
    delete(&fixture, "b").await;
    let (key, reason) = lost.await;
    assert_eq!((key.as_str(), reason), ("b", LostReason::Gone));
    assert!(!guards.is_valid());
    assert_eq!(guards.remaining(), Duration::ZERO);
    let error = guards.ensure(Duration::ZERO).unwrap_err();
    assert_eq!(
        (error.kind(), error.key().unwrap().as_str()),
        (ErrorKind::Lost, "b")
    );
    fixture.pass(TTL * 2).await;
    for other in ["a", "c"] {
        assert!(guards.guard(other).unwrap().is_valid());
        assert!(!is_free(&fixture.other_client(), other).await);
    }
    let ended = guards.release().await;
    let ended: Vec<_> = ended.into_iter().map(|(_, end)| end.unwrap()).collect();
    assert_eq!(
        ended,
        [
            ReleaseOutcome::Released,
            ReleaseOutcome::WasLost,
            ReleaseOutcome::Released
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn one_loss_cancels_the_body_of_the_set() {
    let fixture = Fixture::new();
    let set = fixture.client.lock_all(["a", "b"]);
    let held = set.acquire().await.unwrap();
    let names = held.run(async |guards| guards.keys().len()).await;
    assert_eq!(names.unwrap(), 2);
    let guards = set.acquire().await.unwrap();
    let body = Arc::new(());
    let inside = Arc::clone(&body);
    let running = start(guards.run(async move |_| {
        let _inside = inside;
        std::future::pending::<()>().await;
    }));
    fixture.settle().await;
    delete(&fixture, "a").await;
    let error = running.await.unwrap().unwrap_err();
    assert!(error.is_lost(), "{error}");
    assert!(
        error.to_string().starts_with(r#"lock "a": lost: "#),
        "{error}"
    );
    assert_eq!(Arc::strong_count(&body), 1, "it was dropped");
    take(&fixture.client, "b").await;
}

#[tokio::test(start_paused = true)]
async fn lock_lost_while_waiting_is_acquired_again() {
    let fixture = Fixture::new();
    let other = fixture.other_client();
    let b = hold(&other, "b").await;
    let waiting = start(fixture.client.lock_all(["a", "b"]).acquire());
    fixture.settle().await;
    delete(&fixture, "a").await;
    fixture.pass(TTL).await;
    assert!(
        !is_free(&fixture.other_client(), "a").await,
        "it is held again"
    );
    b.release().await.unwrap();
    let guards = waiting.await.unwrap().unwrap();
    assert!(guards.is_valid());
}

#[tokio::test(start_paused = true)]
async fn max_hold_counts_while_waiting_for_others() {
    let fixture = Fixture::new();
    let other = fixture.other_client();
    let _b = hold(&other, "b").await;
    let set = fixture
        .client
        .lock_all(["a", "b"])
        .max_hold(Duration::from_secs(5));
    let asked = fixture.now();
    let error = set.acquire().await.unwrap_err();
    assert_eq!(
        (error.kind(), error.key().unwrap().as_str()),
        (ErrorKind::Lost, "a")
    );
    assert!(fixture.now().since(asked) < Duration::from_secs(6));
    assert_nothing_left(&fixture, &["a"]).await;
}

#[tokio::test(start_paused = true)]
async fn set_deadline_is_the_earliest_one() {
    let fixture = Fixture::new();
    let other = fixture.other_client();
    let b = hold(&other, "b").await;
    let waiting = start(fixture.client.lock_all(["a", "b"]).acquire());
    fixture.pass(Duration::from_secs(4)).await;
    b.release().await.unwrap();
    let guards = waiting.await.unwrap().unwrap();
    let deadlines: Vec<_> = guards.guards().filter_map(Guard::deadline).collect();
    assert!(deadlines[0] < deadlines[1]);
    assert_eq!(guards.deadline(), Some(deadlines[0]));
    assert_eq!(guards.remaining(), deadlines[0].since(fixture.now()));
    let moved = guards.deadline_moved(guards.deadline()).await;
    assert_eq!(moved, Some(deadlines[1]), "only the other one was renewed");
    assert!(guards.deadline_moved(moved).await > moved);
}
