//! Whose answers count, and what is put back, with the real quorum over members in memory.

use std::time::Duration;

use leasehold::clock::WallTime;
use leasehold::{
    Attempt, Claim, ErrorKind, GuardState, Health as _, Inspection as _, Key, LostReason, Member,
    MemoryStore, Store,
};
use leasehold_testkit::{Call, Fault, FaultyMember};

use crate::scene::{Scene, TTL, WAIT, client, quorum_of, take};

const SECOND: Duration = Duration::from_secs(1);

async fn is_free_at(store: &MemoryStore, name: &str) -> bool {
    let holders = store.holders(&Key::new(name).expect("a name")).await;
    holders.expect("an answer").is_empty()
}

#[tokio::test(start_paused = true)]
async fn a_member_that_restarted_empty_does_not_count_until_its_wait_is_over() {
    let scene = Scene::quorum(3);
    take(&scene.client, "x").await;
    scene.stores[1].restart(false);
    take(&scene.client, "x").await;
    scene.settle().await;
    scene.members[2].set(Fault::Unreachable);
    let error = scene.client.lock("x").try_acquire().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NoQuorum);
    let text = error.to_string();
    assert!(
        text.contains("1 of 3 servers have a vote, 2 needed"),
        "{text}"
    );
    assert!(
        text.contains("m1: it restarted, lost data, or is new (no vote for 61s)"),
        "{text}"
    );
    assert!(text.contains("m2: connection refused"), "{text}");
    let failure = error
        .members()
        .iter()
        .find(|failure| failure.id.as_str() == "m1");
    assert_eq!(failure.unwrap().error.kind(), ErrorKind::Untrusted);
    assert!(
        is_free_at(&scene.stores[0], "x").await,
        "what was granted is freed"
    );
    scene.pass(WAIT).await;
    take(&scene.client, "x").await;
}

#[tokio::test(start_paused = true)]
async fn whoever_waits_without_limit_waits_for_members_to_count_again() {
    let scene = Scene::quorum(3);
    for member in [0, 1] {
        scene.stores[member].restart(false);
    }
    let began = scene.now();
    let guard = scene.client.lock("x").acquire().await.unwrap();
    let waited = scene.now().since(began);
    assert!(waited >= WAIT && waited < WAIT + 2 * SECOND, "{waited:?}");
    drop(guard);
}

#[tokio::test(start_paused = true)]
async fn two_holders_cannot_be_made_by_restarting_a_member() {
    let scene = Scene::quorum(3);
    scene.members[2].set(Fault::Unreachable);
    let guard = scene.client.lock("x").acquire().await.unwrap();
    scene.members[2].set(Fault::None);
    scene.stores[1].restart(false);
    let other = scene.other_client();
    for _ in 0..40 {
        assert!(
            other
                .lock("x")
                .try_acquire()
                .await
                .unwrap_or(None)
                .is_none()
                || !guard.is_valid()
        );
        scene.pass(2 * SECOND).await;
    }
}

/// Three members that have been durable since their last restart, and have a vote.
async fn durable_quorum() -> Scene {
    let scene = Scene::quorum(3);
    for store in &scene.stores {
        store.claim_durable(true);
        store.restart(true);
    }
    scene.client.health().await.expect("an answer");
    scene.pass(WAIT).await;
    for member in 0..3 {
        assert!(is_durable_by_card(&scene, member).await);
    }
    scene
}

async fn is_durable_by_card(scene: &Scene, member: usize) -> bool {
    let presence = scene.stores[member].presence().await.expect("an answer");
    presence.card.is_some_and(|card| card.durable)
}

#[tokio::test(start_paused = true)]
async fn rolled_back_durable_member_makes_no_second_holder() {
    let scene = durable_quorum().await;
    let before = scene.stores[1].snapshot();
    scene.stores[1].claim_durable(false);
    scene.other_client().health().await.unwrap();
    scene.settle().await;
    scene.members[2].set(Fault::Unreachable);
    let guard = scene.client.lock("x").acquire().await.unwrap();
    scene.members[2].set(Fault::None);
    scene.stores[1].claim_durable(true);
    scene.stores[1].restart_from(&before);
    let other = scene.other_client();
    for _ in 0..40 {
        let granted = other.lock("x").try_acquire().await.unwrap_or(None);
        assert!(granted.is_none() || !guard.is_valid());
        scene.pass(2 * SECOND).await;
    }
}

#[tokio::test(start_paused = true)]
async fn running_client_notices_durability_switched_off() {
    let scene = durable_quorum().await;
    let guard = scene.client.lock("x").acquire().await.unwrap();
    scene.stores[1].claim_durable(false);
    scene.pass(WAIT + TTL).await;
    assert!(!is_durable_by_card(&scene, 1).await);
    assert!(guard.is_valid() && !guard.is_in_doubt());
    let health = scene.client.health().await.unwrap();
    assert!(health[1].distrust.is_none(), "it forgot nothing");
}

#[tokio::test(start_paused = true)]
async fn a_restarted_minority_comes_back_into_play_without_the_holder_doing_anything() {
    let scene = Scene::quorum(3);
    let guard = scene.client.lock("x").acquire().await.unwrap();
    scene.stores[0].restart(false);
    scene.pass(TTL).await;
    assert!(
        is_free_at(&scene.stores[0], "x").await,
        "nothing is put back where it would not count"
    );
    scene.pass(WAIT).await;
    assert!(!is_free_at(&scene.stores[0], "x").await, "put back");
    scene.pass(TTL).await;
    // It counts now: without it there would be no majority.
    scene.members[1].set(Fault::Unreachable);
    scene.pass(3 * TTL).await;
    assert!(guard.is_valid() && !guard.is_in_doubt());
    let next = {
        scene.members[1].set(Fault::None);
        let fence = guard.fence();
        guard.release().await.unwrap();
        scene.settle().await;
        let next = scene.client.lock("x").acquire().await.unwrap();
        assert!(next.fence() > fence);
        next
    };
    drop(next);
}

#[tokio::test(start_paused = true)]
async fn a_lease_that_stands_on_a_member_that_forgot_does_not_renew_the_guard() {
    let scene = Scene::quorum(3);
    let guard = scene.client.lock("x").acquire().await.unwrap();
    scene.stores[2].restart(false);
    scene.members[1].set(Fault::Unreachable);
    // A late message of the holder's own takes the lock there again.
    let late = scene.stores[2].acquire(&attempt_at(&scene, 2)).await;
    assert!(matches!(late, Ok(Attempt::Granted(_))));
    scene.pass(TTL).await;
    assert_eq!(guard.state(), GuardState::Lost(LostReason::Unreachable));
}

#[tokio::test(start_paused = true)]
async fn a_lease_that_a_majority_forgot_is_lost_and_put_back_nowhere() {
    let scene = Scene::quorum(3);
    let guard = scene.client.lock("x").acquire().await.unwrap();
    let key = Key::new("x").unwrap();
    for forgets in [0, 1] {
        scene.stores[forgets].forget(&key);
    }
    assert_eq!(guard.lost().await, LostReason::Gone);
    scene.settle().await;
    for forgot in [0, 1] {
        assert!(is_free_at(&scene.stores[forgot], "x").await, "m{forgot}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_seal_by_other_data_than_those_that_granted_does_not_count() {
    let scene = Scene::quorum(3);
    scene.members[2].set(Fault::Unreachable);
    // One counter is ahead, so that the other one must be sealed.
    let mut ahead = scene.claim("x");
    ahead.proposal = WallTime::from_micros(ahead.proposal.as_micros() + 3_600_000_000);
    scene.stores[0].acquire(&ahead).await.unwrap();
    scene.stores[0].release(&ahead).await.unwrap();
    scene.members[0].set(Fault::Slow(Duration::from_millis(300)));
    let lock = scene.client.lock("x");
    let (outcome, ()) = tokio::join!(lock.try_acquire(), async {
        scene.pass(Duration::from_millis(100)).await;
        scene.members[1].set(Fault::Frozen);
        scene.pass(Duration::from_millis(300)).await;
        let asked = |call: &Call| matches!(call, Call::Seal(..));
        assert_eq!(scene.count(1, asked), 1, "it has granted, and is to seal");
        // It forgets, and a late message of the same attempt takes the lock there again.
        let claim = attempt_at(&scene, 1);
        scene.stores[1].restart(false);
        scene.stores[1].acquire(&claim).await.unwrap();
        // What it says of itself comes later than its seal.
        scene.members[1].set(Fault::Slow(Duration::from_millis(100)));
    });
    let error = outcome.unwrap_err();
    assert!(
        error.to_string().contains("m1: restarted or changed"),
        "{error}"
    );
}

/// The last attempt that reached a member.
fn attempt_at(scene: &Scene, member: usize) -> Claim {
    let calls = scene.members[member].calls().into_iter();
    let attempts = calls.filter_map(|call| match call {
        Call::Acquire(claim) => Some(claim),
        _ => None,
    });
    attempts.last().expect("an attempt")
}

#[tokio::test(start_paused = true)]
async fn what_was_put_back_is_freed_with_the_lock() {
    let scene = Scene::quorum(3);
    let guard = scene.client.lock("x").acquire().await.unwrap();
    let key = Key::new("x").unwrap();
    scene.stores[0].forget(&key);
    let heals = |scene: &Scene| scene.count(0, |call| matches!(call, Call::Heal(_)));
    while heals(&scene) == 0 {
        // So slow that the answer is still out when the lock is released.
        scene.members[0].set(Fault::Slow(Duration::from_millis(300)));
        scene.pass(Duration::from_millis(50)).await;
    }
    guard.release().await.unwrap();
    scene.pass(SECOND).await;
    for store in &scene.stores {
        assert!(is_free_at(store, "x").await);
    }
}

#[tokio::test(start_paused = true)]
async fn what_is_put_where_it_could_not_be_asked_for_is_freed_with_the_lock() {
    let scene = Scene::quorum(3);
    let elsewhere = [0, 1, 2].map(|n| MemoryStore::member(format!("m{n}"), scene.ambient.clone()));
    let members = elsewhere
        .each_ref()
        .map(|store| FaultyMember::new(store.clone(), scene.ambient.clone()));
    let limits = quorum_of(&members, &scene.ambient).max_ttl(Duration::from_secs(30));
    limits.init().await.unwrap();
    let own = scene.stores[2].snapshot();
    scene.stores[2].restart_from(&elsewhere[2].snapshot());
    let client = scene.other_client();
    let guard = client.lock("x").acquire().await.unwrap();
    assert!(is_free_at(&scene.stores[2], "x").await, "of other limits");
    scene.stores[2].restart_from(&own);
    while is_free_at(&scene.stores[2], "x").await {
        scene.pass(SECOND).await;
        // A member that stood in the way is looked at again when a lock is asked for.
        take(&client, "another").await;
        assert!(guard.is_valid());
    }
    guard.release().await.unwrap();
    scene.pass(SECOND).await;
    assert!(is_free_at(&scene.stores[2], "x").await);
}

#[tokio::test(start_paused = true)]
async fn flushed_data_are_noticed_by_the_very_answer_that_lacks_them() {
    let scene = Scene::quorum(3);
    take(&scene.client, "x").await;
    scene.stores[1].forget_everything();
    scene.members[2].set(Fault::Unreachable);
    let error = scene.client.lock("x").try_acquire().await.unwrap_err();
    assert!(error.to_string().contains("m1: "), "{error}");
    assert_eq!(error.members().len(), 2, "{error}");
    scene.settle().await;
    let health = scene.store().members().await;
    let distrust = health[1].distrust.as_ref().expect("out");
    assert!(
        distrust.counts_again.unwrap() > Duration::from_secs(59),
        "{distrust}"
    );
    assert!(health[0].distrust.is_none());
    assert!(health[2].presence.is_err());
}

#[tokio::test(start_paused = true)]
async fn empty_member_waits_until_a_silent_one_answers() {
    let scene = Scene::quorum(3);
    scene.pass(WAIT).await;
    scene.members[2].set(Fault::Unreachable);
    scene.stores[1].restart(false);
    let cold = scene.store();
    let cold = client(cold, &scene.ambient);
    for client in [&scene.client, &cold] {
        for _ in 0..2 {
            assert!(client.lock("x").try_acquire().await.is_err());
            scene.pass(WAIT).await;
        }
        let error = client.lock("x").try_acquire().await.unwrap_err();
        let text = error.to_string();
        let reason = "m1: lost its data, and with it the record of this quorum: it gets a new one \
                      when m2 answers, or by `leasehold members readmit m1`";
        assert!(text.contains(reason), "{text}");
    }
    // It was only silent: nothing but its next answer says that it is back.
    scene.members[2].set(Fault::None);
    take(&scene.client, "x").await;
    scene.pass(WAIT).await;
    scene.members[2].set(Fault::Unreachable);
    for client in [&scene.client, &cold] {
        drop(client.lock("x").wait(SECOND).acquire().await.unwrap());
    }
}
