//! Redlock over members that freeze, vanish and come back.

use std::time::Duration;

use leasehold::{Attempt, Effect, Ended, ErrorKind, Key, Quorum, Store};
use leasehold_testkit::{Call, Fault};

use crate::scene::{QUORUM_MARGIN, Scene, TTL};

#[tokio::test(start_paused = true)]
async fn two_dead_or_frozen_of_five_cost_no_time() {
    let scene = Scene::quorum(5);
    scene.members[1].set(Fault::Frozen);
    scene.members[4].set(Fault::Unreachable);
    let asked = scene.now();
    for _ in 0..10 {
        let guard = scene
            .client
            .lock("x")
            .try_acquire()
            .await
            .unwrap()
            .expect("a free lock");
        assert_eq!(guard.deadline(), Some(asked + TTL - QUORUM_MARGIN));
        assert_eq!(scene.now(), asked, "no time passed");
        assert_eq!(guard.release().await.unwrap(), Ended::Released);
    }
    assert_eq!(scene.now(), asked, "no time passed");
}

#[tokio::test(start_paused = true)]
async fn three_frozen_of_five_are_named_each_with_its_reason_within_the_limit() {
    let scene = Scene::quorum(5);
    for frozen in [0, 2, 3] {
        scene.members[frozen].set(Fault::Frozen);
    }
    let asked = scene.now();
    let error = scene.client.lock("x").try_acquire().await.unwrap_err();
    assert_eq!(
        scene.now().since(asked),
        Duration::from_secs(1),
        "a member's limit"
    );
    assert_eq!(error.kind(), ErrorKind::NoQuorum);
    let text = error.to_string();
    assert!(
        text.contains("2 of 5 members count, 3 are needed"),
        "{text}"
    );
    for id in ["m0", "m2", "m3"] {
        assert!(
            text.contains(&format!("{id}: no answer within 1s")),
            "{text}"
        );
    }
    assert_eq!(error.members().len(), 3);

    let asked = scene.now();
    let wait = Duration::from_millis(400);
    let error = scene
        .client
        .lock("y")
        .wait(wait)
        .acquire()
        .await
        .unwrap_err();
    assert_eq!(
        error.members().len(),
        3,
        "silent members are named too: {error}"
    );
    assert!(
        error.to_string().contains("has not answered for"),
        "{error}"
    );
    assert!(scene.now().since(asked) < wait * 2);
}

#[tokio::test(start_paused = true)]
async fn the_wait_bounds_even_the_first_silence() {
    let scene = Scene::quorum(5);
    for frozen in 0..3 {
        scene.members[frozen].set(Fault::Frozen);
    }
    let asked = scene.now();
    let wait = Duration::from_millis(300);
    let error = scene
        .client
        .lock("x")
        .wait(wait)
        .acquire()
        .await
        .unwrap_err();
    assert_eq!(error.members().len(), 3, "{error}");
    assert!(scene.now().since(asked) < Duration::from_millis(500));
}

#[tokio::test(start_paused = true)]
async fn a_frozen_member_counts_again_once_a_probe_gets_through() {
    let scene = Scene::quorum(3);
    scene.members[0].set(Fault::Frozen);
    drop(scene.client.lock("x").acquire().await.unwrap());
    scene.pass(Duration::from_secs(5)).await;
    let before = scene.members[0].calls().len();
    drop(scene.client.lock("y").acquire().await.unwrap());
    scene.pass(Duration::from_secs(1)).await;
    assert_eq!(
        scene.members[0].calls().len(),
        before,
        "a silent member is not asked"
    );
    scene.members[0].set(Fault::None);
    scene.pass(Duration::from_secs(2)).await;
    scene.members[1].set(Fault::Frozen);
    assert!(
        scene
            .client
            .lock("z")
            .try_acquire()
            .await
            .unwrap()
            .is_some()
    );
}

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
async fn members_that_disagree_on_the_counter_are_sealed() {
    let scene = Scene::quorum(3);
    let seals = |scene: &Scene| {
        (0..3)
            .map(|m| scene.count(m, |call| matches!(call, Call::Seal(..))))
            .sum::<usize>()
    };
    let first = scene.client.lock("x").acquire().await.unwrap();
    assert_eq!(
        seals(&scene),
        0,
        "the proposal brings fresh members level: one round"
    );
    let first_fence = first.fence();
    first.release().await.unwrap();
    // Seal a far greater number at one member alone, as a clock far ahead would have done.
    let far = leasehold::Fence::new(first_fence.get() + 1_000_000_000_000).unwrap();
    {
        use leasehold::{Member, Store};
        let claim = scene.claim("x");
        scene.members[0].acquire(&claim).await.unwrap();
        scene.members[0].seal(&claim, far).await.unwrap();
        scene.members[0].release(&claim).await.unwrap();
    }
    let before = seals(&scene);
    let second = scene.client.lock("x").acquire().await.unwrap();
    assert!(
        second.fence() > far,
        "greater than what one member of the majority knew"
    );
    assert!(
        seals(&scene) > before,
        "the members below it were asked to seal it"
    );
    let second_fence = second.fence();
    second.release().await.unwrap();
    scene.members[0].set(Fault::Unreachable);
    let third = scene.client.lock("x").acquire().await.unwrap();
    assert!(
        third.fence() > second_fence,
        "also without the member that knew it first"
    );
}

#[tokio::test(start_paused = true)]
async fn a_guard_lives_on_a_majority_and_dies_without_it() {
    let scene = Scene::quorum(5);
    let guard = scene.client.lock("x").acquire().await.unwrap();
    scene.members[0].set(Fault::Frozen);
    scene.members[1].set(Fault::Unreachable);
    scene.pass(TTL * 4).await;
    assert!(guard.is_valid(), "three of five renew it");
    scene.members[2].set(Fault::Frozen);
    let cut = scene.now();
    guard.lost().await;
    assert!(scene.now().since(cut) <= TTL - QUORUM_MARGIN);
}

#[tokio::test(start_paused = true)]
async fn sets_that_make_no_sense_are_refused() {
    use std::sync::Arc;
    let member = |id: &str| {
        let ambient = leasehold::ambient::Ambient::default();
        Arc::new(leasehold::MemoryStore::member(id, ambient)) as Arc<dyn leasehold::Member>
    };
    let refusal = |ids: &[&str]| {
        let error = Quorum::new(ids.iter().map(|id| member(id))).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidInput);
        error.to_string()
    };
    assert!(refusal(&[]).contains("0 members"));
    assert!(refusal(&["a", "b", "a"]).contains("member a is given twice"));
    let many: Vec<String> = (0..32).map(|n| n.to_string()).collect();
    let many: Vec<&str> = many.iter().map(String::as_str).collect();
    assert!(refusal(&many).contains("32 members: at most 31"));
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
async fn a_silent_member_is_sent_nothing_however_long_others_try() {
    let scene = Scene::quorum(5);
    for frozen in 0..3 {
        scene.members[frozen].set(Fault::Frozen);
    }
    let wait = Duration::from_secs(60);
    let error = scene
        .client
        .lock("x")
        .wait(wait)
        .acquire()
        .await
        .unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NoQuorum, "{error}");
    let attempts = scene.count(4, |call| matches!(call, Call::Acquire(_)));
    assert!(
        attempts > 100,
        "{attempts} attempts at a member that answers"
    );
    let sent = scene.members[0].calls().len();
    assert!(sent < 10, "{sent} requests at a member that does not");
}

#[tokio::test(start_paused = true)]
async fn a_fence_that_could_not_be_sealed_on_a_majority_is_no_grant() {
    let scene = Scene::quorum(3);
    let ahead = scene.claim("x");
    let fence = leasehold::Fence::new(ahead.proposal.as_micros() + 1_000_000_000).unwrap();
    {
        use leasehold::{Member, Store};
        scene.members[0].acquire(&ahead).await.unwrap();
        scene.members[0].seal(&ahead, fence).await.unwrap();
        scene.members[0].release(&ahead).await.unwrap();
    }
    scene.members[2].set(Fault::Unreachable);
    // Its far greater fence comes when the member that must seal it is gone.
    scene.members[0].set(Fault::Slow(Duration::from_millis(100)));
    let attempt = leasehold::background::spawn(scene.client.lock("x").try_acquire());
    scene.pass(Duration::from_millis(50)).await;
    scene.members[1].set(Fault::Unreachable);
    let error = attempt.await.unwrap().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NoQuorum, "{error}");
    let seals = scene.count(1, |call| matches!(call, Call::Seal(..)));
    assert_eq!(seals, 1, "it was asked to");
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
