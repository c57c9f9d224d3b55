//! What attempts leave behind at members, and that it is freed.

use std::time::Duration;

use leasehold::{Attempt, Effect, Ended, Health as _, Inspection as _, Key, Store};
use leasehold_testkit::{Call, Fault};

use crate::scene::{Scene, TTL, take};

#[tokio::test(start_paused = true)]
async fn what_a_frozen_member_does_when_it_thaws_is_freed() {
    let scene = Scene::quorum(3);
    scene.members[0].set(Fault::Frozen);
    let guard = scene.client.lock("x").acquire().await.unwrap();
    guard.release().await.unwrap();
    scene.pass(Duration::from_secs(3)).await;
    scene.members[0].set(Fault::None);
    scene.pass(Duration::from_secs(5)).await;
    // The late request took the lock at m0 for its whole TTL, had nobody freed it.
    scene.members[1].set(Fault::Unreachable);
    let guard = scene.client.lock("x").try_acquire().await.unwrap();
    assert!(guard.is_some(), "m0 and m2 are free");
}

#[tokio::test(start_paused = true)]
async fn where_nothing_was_sent_nothing_is_freed() {
    let scene = Scene::quorum(3);
    let of = |name| {
        scene.count(2, |call| match call {
            Call::Acquire(claim) | Call::Release(claim) => claim.key.as_str() == name,
            _ => false,
        })
    };
    scene.members[2].set(Fault::Frozen);
    take(&scene.client, "x").await;
    scene.pass(Duration::from_secs(2)).await;
    // By now it counts as silent, and is asked for nothing more.
    take(&scene.client, "y").await;
    scene.members[2].set(Fault::None);
    scene.pass(TTL).await;
    assert!(of("x") >= 2, "what may have arrived is freed");
    assert_eq!(of("y"), 0);
}

#[tokio::test(start_paused = true)]
async fn an_unanswered_attempt_is_freed_once_more_before_its_ttl_is_over() {
    let scene = Scene::quorum(3);
    scene.members[0].set(Fault::Frozen);
    scene
        .client
        .lock("x")
        .acquire()
        .await
        .unwrap()
        .release()
        .await
        .unwrap();
    scene.pass(Duration::from_secs(2)).await;
    scene.members[0].set(Fault::None);
    scene.pass(TTL / 2).await;
    let releases = |scene: &Scene| scene.count(0, |call| matches!(call, Call::Release(_)));
    let early = releases(&scene);
    scene.pass(TTL / 2).await;
    assert_eq!(releases(&scene), early + 1, "once more, late");
}

#[tokio::test(start_paused = true)]
async fn an_attempt_without_a_majority_frees_what_it_got() {
    let scene = Scene::quorum(5);
    let other = scene.other_client();
    for cut in [0, 1, 2] {
        scene.members[cut].set(Fault::Unreachable);
    }
    assert!(
        other.lock("x").try_acquire().await.is_err(),
        "two votes are no lock"
    );
    for cut in [0, 1, 2] {
        scene.members[cut].set(Fault::None);
    }
    for cut in [3, 4] {
        scene.members[cut].set(Fault::Unreachable);
    }
    assert!(
        scene
            .client
            .lock("x")
            .try_acquire()
            .await
            .unwrap()
            .is_some()
    );
    let freed = scene.count(3, |call| matches!(call, Call::Release(_)));
    assert!(freed >= 1, "the votes of the failed attempt were freed");
}

#[tokio::test(start_paused = true)]
async fn what_was_granted_and_perhaps_not_freed_is_unknown() {
    let scene = Scene::quorum(3);
    scene.members[1].set(Fault::Unreachable);
    scene.members[2].set(Fault::Frozen);
    let lock = scene.client.lock("x");
    let (outcome, ()) = tokio::join!(lock.try_acquire(), async {
        scene.pass(Duration::from_millis(500)).await;
        // It has granted, and now it cannot be told that it was in vain.
        scene.members[0].set(Fault::Unreachable);
    });
    assert_eq!(outcome.unwrap_err().effect(), Effect::Unknown);

    scene.members[0].set(Fault::None);
    scene.members[2].set(Fault::Unreachable);
    scene.pass(Duration::from_secs(2)).await;
    let error = scene.client.lock("y").try_acquire().await.unwrap_err();
    assert_eq!(
        error.effect(),
        Effect::None,
        "all that was granted is freed"
    );
}

#[tokio::test(start_paused = true)]
async fn a_split_vote_frees_what_it_got_and_is_busy() {
    let scene = Scene::quorum(5);
    for held in [0, 1, 4] {
        let granted = scene.stores[held].acquire(&scene.claim("x")).await;
        assert!(matches!(granted, Ok(Attempt::Granted(_))));
    }
    assert!(
        scene
            .client
            .lock("x")
            .try_acquire()
            .await
            .unwrap()
            .is_none()
    );
    for got in [2, 3] {
        let left = scene.stores[got].holders(&Key::new("x").unwrap()).await;
        assert!(
            left.unwrap().is_empty(),
            "m{got}: the other client needs it"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn settling_waits_for_releases_that_can_be_answered_and_not_for_the_dead() {
    use leasehold::Store;
    let scene = Scene::quorum(5);
    let quorum = scene.store();
    scene.members[3].set(Fault::Slow(Duration::from_millis(40)));
    let claim = scene.claim("x");
    quorum.acquire(&claim).await.unwrap();
    quorum.release(&claim).await.unwrap();
    let asked = scene.now();
    quorum.settle().await;
    assert!(scene.now() > asked, "a slow member is waited for");
    assert!(
        scene.members[3]
            .holders(&claim.key)
            .await
            .unwrap()
            .is_empty()
    );
    scene.members[4].set(Fault::Frozen);
    let claim = scene.claim("y");
    quorum.acquire(&claim).await.unwrap();
    quorum.release(&claim).await.unwrap();
    let asked = scene.now();
    quorum.settle().await;
    assert!(
        scene.now().since(asked) <= Duration::from_millis(100),
        "a frozen one is not"
    );
}

#[tokio::test(start_paused = true)]
async fn a_member_that_breaks_off_is_one_that_failed_and_is_freed_all_the_same() {
    let scene = Scene::quorum(3);
    scene.members[0].set(Fault::Panics);
    let guard = scene.client.lock("x").acquire().await.unwrap();
    scene.members[0].set(Fault::None);
    assert_eq!(guard.release().await.unwrap(), Ended::Released);
    scene.pass(TTL).await;
    let freed = scene.count(0, |call| matches!(call, Call::Release(_)));
    assert_eq!(
        freed, 2,
        "at once, and once more: nobody knows how far it had got"
    );
}

#[tokio::test(start_paused = true)]
async fn an_attempt_that_members_broke_off_may_hold_at_them() {
    let scene = Scene::quorum(3);
    for member in &scene.members {
        member.set(Fault::Panics);
    }
    let error = scene.client.lock("x").try_acquire().await.unwrap_err();
    assert_eq!(error.effect(), Effect::Unknown, "{error}");
    let freed = scene.count(0, |call| matches!(call, Call::Release(_)));
    assert!(freed > 0, "nobody tried to free it");
}

/// It answers when the attempt is decided long since, and has granted nothing.
#[tokio::test(start_paused = true)]
async fn a_member_that_refuses_late_is_asked_to_free_nothing() {
    let scene = Scene::quorum(3);
    let guard = scene.client.lock("x").acquire().await.unwrap();
    scene.settle().await;
    let other = scene.other_client();
    scene.members[2].set(Fault::Late(LATE));
    assert!(other.lock("x").try_acquire().await.unwrap().is_none());
    let waits = leasehold::background::spawn(other.lock("x").acquire());
    scene.pass(LATE * 4).await;
    let releases = |call: &Call| matches!(call, Call::Release(_));
    assert_eq!(scene.count(2, releases), 0);
    scene.members[2].set(Fault::None);
    guard.release().await.unwrap();
    let guard = waits.await.unwrap().unwrap();
    guard.release().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_claim_that_was_refused_and_is_then_granted_is_freed_everywhere() {
    let scene = Scene::quorum(3);
    let guard = scene.client.lock("x").acquire().await.unwrap();
    scene.settle().await;
    let (quorum, claim) = (scene.store(), scene.claim("x"));
    quorum.members().await;
    // When it refuses, somebody waits for that already.
    scene.members[2].set(Fault::Late(LATE));
    let refused = quorum.acquire(&claim).await.unwrap();
    assert!(matches!(refused, Attempt::Busy(_)), "{refused:?}");
    scene.pass(LATE * 4).await;
    guard.release().await.unwrap();
    let granted = quorum.acquire(&claim).await.unwrap();
    assert!(matches!(granted, Attempt::Granted(_)), "{granted:?}");
    scene.pass(LATE * 4).await;
    quorum.release(&claim).await.unwrap();
    scene.pass(LATE * 4).await;
    for store in &scene.stores {
        assert_eq!(store.holders(&claim.key).await.unwrap(), []);
    }
}

/// It grants when others have refused, and the attempt is decided long since.
#[tokio::test(start_paused = true)]
async fn a_member_that_grants_late_is_asked_to_free_it() {
    let scene = Scene::quorum(3);
    let other = scene.other_client();
    scene.members[2].set(Fault::Unreachable);
    let guard = scene.client.lock("x").acquire().await.unwrap();
    scene.members[2].set(Fault::Late(LATE));
    assert!(other.lock("x").try_acquire().await.unwrap().is_none());
    scene.pass(LATE * 4).await;
    scene.members[2].set(Fault::None);
    let holders = scene.members[2].holders(&Key::new("x").unwrap()).await;
    assert_eq!(holders.unwrap(), []);
    guard.release().await.unwrap();
}

const LATE: Duration = Duration::from_millis(20);
