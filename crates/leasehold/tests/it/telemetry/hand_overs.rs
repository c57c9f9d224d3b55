//! What is a hand-over, and what is none.

use std::time::Duration;

use leasehold::telemetry::{ATTEMPTS, CONTENDED, HAND_OVER};
use leasehold::{Attempt, Claim, Release, Store as _, background};
use leasehold_testkit::Fault;

use super::told::Told;

/// A quorum whose members all have a lease of `x` that nobody renews.
async fn held_by_the_dead() -> (Told, Claim) {
    let told = Told::quorum(3);
    let dead = told.scene.claim("x");
    for member in &told.scene.members {
        let attempt = member.acquire(&dead).await.unwrap();
        assert!(matches!(attempt, Attempt::Granted(_)), "{attempt:?}");
    }
    (told, dead)
}

#[tokio::test(start_paused = true)]
async fn a_lock_whose_lease_ran_out_is_handed_over_by_nobody() {
    let (told, _) = held_by_the_dead().await;
    let guard = told.scene.client.lock("x").acquire().await.unwrap();
    assert_eq!(told.sum(&CONTENDED, ""), 1.0);
    assert!(told.spans(&HAND_OVER, "").is_empty());
    drop(guard);
}

#[tokio::test(start_paused = true)]
async fn a_word_that_led_to_a_refusal_is_no_hand_over() {
    let (told, dead) = held_by_the_dead().await;
    let waiting = background::spawn(told.scene.client.lock("x").acquire());
    told.scene.settle().await;
    let refused = told.sum(&ATTEMPTS, "busy");
    let free = async |member: usize| {
        let released = told.scene.members[member].release(&dead).await;
        assert_eq!(released.unwrap(), Release::Released);
    };
    // It is the waiter's turn at one member alone.
    free(0).await;
    told.scene.pass(Duration::from_millis(100)).await;
    assert!(told.sum(&ATTEMPTS, "busy") > refused, "nobody was told");
    assert!(told.spans(&HAND_OVER, "").is_empty());
    free(1).await;
    free(2).await;
    let guard = waiting.await.unwrap().unwrap();
    assert_eq!(told.spans(&HAND_OVER, "").len(), 1);
    drop(guard);
}

/// No word is waited for there: it is timed from the release.
#[tokio::test(start_paused = true)]
async fn a_hand_over_within_a_client_is_timed_too() {
    let told = Told::quorum(3);
    let lock = told.scene.client.lock("x");
    let guard = lock.acquire().await.unwrap();
    let waiting = background::spawn(lock.acquire());
    told.scene.settle().await;
    let way = Duration::from_millis(30);
    for member in &told.scene.members {
        member.set(Fault::Late(way));
    }
    guard.release().await.unwrap();
    drop(waiting.await.unwrap().unwrap());
    let [hand_over] = told.spans(&HAND_OVER, "")[..] else {
        panic!("one hand-over: {:?}", told.all_counts())
    };
    assert_eq!(hand_over, way);
}
