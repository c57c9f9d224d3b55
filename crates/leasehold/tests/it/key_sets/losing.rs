//! The loss of one of several locks.

use std::sync::Arc;
use std::time::Duration;

use leasehold::store::Store as _;
use leasehold::{ErrorKind, Guard, LostReason, ReleaseOutcome};
use leasehold_testkit::Call;

use super::{assert_nothing_left, hold, is_free, start};
use crate::scene::{Scene, TTL, take};

/// Frees the lock in its holder's name, as an operator does by deleting it at the servers.
async fn delete(scene: &Scene, name: &str) {
    let claims = scene
        .store
        .calls()
        .into_iter()
        .rev()
        .find_map(|call| match call {
            Call::Acquire(claim) if claim.key.as_str() == name => Some(claim),
            _ => None,
        });
    let claim = claims.expect("a claim");
    scene.store.release(&claim).await.expect("an answer");
}

#[tokio::test(start_paused = true)]
async fn one_loss_loses_the_whole_set() {
    let scene = Scene::new();
    let guards = scene
        .client
        .lock_all(["a", "b", "c"])
        .acquire()
        .await
        .unwrap();
    let token = guards.lost_token();
    scene.pass(TTL * 2).await;
    assert!(guards.is_valid() && !token.is_cancelled());
    guards.ensure(TTL / 2).unwrap();
    delete(&scene, "b").await;
    let (key, reason) = guards.lost().await;
    assert_eq!((key.as_str(), reason), ("b", LostReason::Gone));
    assert!(token.is_cancelled() && !guards.is_valid());
    assert_eq!(guards.remaining(), Duration::ZERO);
    let error = guards.ensure(Duration::ZERO).unwrap_err();
    assert_eq!(
        (error.kind(), error.key().unwrap().as_str()),
        (ErrorKind::Lost, "b")
    );
    scene.pass(TTL * 2).await;
    for other in ["a", "c"] {
        assert!(guards.guard(other).unwrap().is_valid());
        assert!(!is_free(&scene, other).await);
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
    let scene = Scene::new();
    let set = scene.client.lock_all(["a", "b"]);
    let doubled = set.acquire().await.unwrap().run(async { 21 * 2 }).await;
    assert_eq!(doubled.unwrap(), 42);
    let guards = set.acquire().await.unwrap();
    let body = Arc::new(());
    let inside = Arc::clone(&body);
    let running = start(guards.run(async move {
        let _inside = inside;
        std::future::pending::<()>().await;
    }));
    scene.settle().await;
    delete(&scene, "a").await;
    let error = running.await.unwrap().unwrap_err();
    assert!(error.is_lost(), "{error}");
    assert!(
        error.to_string().starts_with(r#"lock "a": lost: "#),
        "{error}"
    );
    assert_eq!(Arc::strong_count(&body), 1, "it was dropped");
    take(&scene.client, "b").await;
}

#[tokio::test(start_paused = true)]
async fn lock_lost_while_waiting_is_acquired_again() {
    let scene = Scene::new();
    let other = scene.other_client();
    let b = hold(&other, "b").await;
    let waiting = start(scene.client.lock_all(["a", "b"]).acquire());
    scene.settle().await;
    delete(&scene, "a").await;
    scene.pass(TTL).await;
    assert!(!is_free(&scene, "a").await, "it is held again");
    b.release().await.unwrap();
    let guards = waiting.await.unwrap().unwrap();
    assert!(guards.is_valid());
}

#[tokio::test(start_paused = true)]
async fn max_hold_counts_while_waiting_for_others() {
    let scene = Scene::new();
    let other = scene.other_client();
    let _b = hold(&other, "b").await;
    let set = scene
        .client
        .lock_all(["a", "b"])
        .max_hold(Duration::from_secs(5));
    let asked = scene.now();
    let error = set.acquire().await.unwrap_err();
    assert_eq!(
        (error.kind(), error.key().unwrap().as_str()),
        (ErrorKind::Lost, "a")
    );
    assert!(scene.now().since(asked) < Duration::from_secs(6));
    assert_nothing_left(&scene, &["a"]).await;
}

#[tokio::test(start_paused = true)]
async fn set_deadline_is_the_earliest_one() {
    let scene = Scene::new();
    let other = scene.other_client();
    let b = hold(&other, "b").await;
    let waiting = start(scene.client.lock_all(["a", "b"]).acquire());
    scene.pass(Duration::from_secs(4)).await;
    b.release().await.unwrap();
    let guards = waiting.await.unwrap().unwrap();
    let deadlines: Vec<_> = guards.guards().filter_map(Guard::deadline).collect();
    assert!(deadlines[0] < deadlines[1]);
    assert_eq!(guards.deadline(), Some(deadlines[0]));
    assert_eq!(guards.remaining(), deadlines[0].since(scene.now()));
    let moved = guards.deadline_moved(guards.deadline()).await;
    assert_eq!(moved, Some(deadlines[1]), "only the other one was renewed");
    assert!(guards.deadline_moved(moved).await > moved);
}
