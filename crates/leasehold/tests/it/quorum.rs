//! Redlock over members that freeze, vanish and come back.

use std::time::Duration;

use leasehold::{Ended, ErrorKind, Quorum};
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
        text.contains("2 of 5 servers have a vote, 3 needed"),
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
    assert!(error.is_unreachable() && !error.is_busy(), "{error}");
    assert!(error.to_string().contains("no answer within the wait"));
    assert_eq!(scene.now().since(asked), wait);
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
    assert!(refusal(&[]).contains("at least one server"));
    assert!(refusal(&["a", "b", "a"]).contains("member a is given twice"));
    let many: Vec<String> = (0..32).map(|n| n.to_string()).collect();
    let many: Vec<&str> = many.iter().map(String::as_str).collect();
    assert!(refusal(&many).contains("32 servers is too large; the maximum is 31"));
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
