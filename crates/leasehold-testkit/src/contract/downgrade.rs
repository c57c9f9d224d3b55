use std::sync::Arc;

use leasehold::{Client, Ended, ErrorKind, Mode, Renewal, Sharing, Store};

use super::crowd::Crowd;
use super::scene::{LONG, Scene, busy, granted, held, released};

fn shares(store: &Arc<dyn Store>) -> bool {
    store.guarantees().sharing != Sharing::ExclusiveOnly
}

pub(crate) async fn r4_a_shared_renewal_makes_an_exclusive_lease_shared(scene: &Scene) {
    let (store, other, key) = (scene.open(), scene.open(), scene.key());
    if !shares(&store) {
        return;
    }
    let exclusive = scene.claim(&key, LONG);
    let fence = granted(&store, &exclusive).await;
    busy(&other, &scene.shared(&key, LONG)).await;
    let shared = exclusive.clone().with_mode(Mode::Shared);
    let lease = held(&shared, fence);
    for _ in 0..2 {
        let answers = store.renew(std::slice::from_ref(&lease)).await;
        assert!(matches!(answers[..], [Renewal::Renewed]), "{answers:?}");
    }
    busy(&other, &scene.claim(&key, LONG)).await;
    let reader = scene.shared(&key, LONG);
    assert!(granted(&other, &reader).await > fence);
    if let Some(inspection) = store.inspection() {
        let holders = inspection.holders(&key).await.expect("an answer");
        assert!(
            holders.iter().all(|holder| holder.mode == Mode::Shared),
            "{holders:?}"
        );
    }
    released(&other, &reader).await;
    busy(&other, &scene.claim(&key, LONG)).await;
    released(&store, &shared).await;
    let next = scene.claim(&key, LONG);
    granted(&other, &next).await;
    released(&other, &next).await;
}

pub(crate) async fn r4_a_late_message_of_the_exclusive_claim_takes_nothing_back(scene: &Scene) {
    let (store, other, key) = (scene.open(), scene.open(), scene.key());
    if !shares(&store) {
        return;
    }
    let exclusive = scene.claim(&key, LONG);
    let fence = granted(&store, &exclusive).await;
    let shared = exclusive.clone().with_mode(Mode::Shared);
    store.renew(&[held(&shared, fence)]).await;
    let reader = scene.shared(&key, LONG);
    granted(&other, &reader).await;
    store.renew(&[held(&exclusive, fence)]).await;
    let late = scene.shared(&key, LONG);
    granted(&other, &late).await;
    let answers = store.renew(&[held(&shared, fence)]).await;
    assert!(matches!(answers[..], [Renewal::Renewed]), "{answers:?}");
    for claim in [&reader, &late] {
        released(&other, claim).await;
    }
    busy(&other, &scene.claim(&key, LONG)).await;
    released(&store, &shared).await;
}

pub(crate) async fn r4_a_release_of_the_shared_claim_frees_either(scene: &Scene) {
    let (store, key) = (scene.open(), scene.key());
    if !shares(&store) {
        return;
    }
    let exclusive = scene.claim(&key, LONG);
    granted(&store, &exclusive).await;
    released(&store, &exclusive.clone().with_mode(Mode::Shared)).await;
    let next = scene.claim(&key, LONG);
    granted(&store, &next).await;
    released(&store, &next).await;
}

pub(crate) async fn r4_a_shared_renewal_takes_nothing_that_is_free_or_of_others(scene: &Scene) {
    let (store, key) = (scene.open(), scene.key());
    if !shares(&store) {
        return;
    }
    let old = scene.claim(&key, LONG);
    let fence = granted(&store, &old).await;
    released(&store, &old).await;
    let shared = held(&old.clone().with_mode(Mode::Shared), fence);
    let lost = async |what: &str| {
        let answers = store.renew(std::slice::from_ref(&shared)).await;
        assert!(
            matches!(answers[..], [Renewal::Lost(_)]),
            "{what}: {answers:?}"
        );
    };
    lost("free").await;
    let next = scene.claim(&key, LONG);
    granted(&store, &next).await;
    lost("held by a writer").await;
    busy(&store, &scene.shared(&key, LONG)).await;
    released(&store, &next).await;
    let reader = scene.shared(&key, LONG);
    granted(&store, &reader).await;
    lost("held by a reader").await;
    released(&store, &reader).await;
    let last = scene.claim(&key, LONG);
    granted(&store, &last).await;
    released(&store, &last).await;
}

/// While a lock becomes shared, writers try all the time, each through a store of its own.
pub(crate) async fn r4_no_writer_enters_while_a_lock_becomes_shared(scene: &Scene) {
    let (store, other) = (scene.open(), scene.open());
    if !shares(&store) {
        return;
    }
    for _ in 0..20 {
        let key = scene.key();
        let exclusive = scene.claim(&key, LONG);
        let fence = granted(&store, &exclusive).await;
        let shared = held(&exclusive.with_mode(Mode::Shared), fence);
        let renewing = store.renew(std::slice::from_ref(&shared));
        let trying = async {
            for _ in 0..10 {
                busy(&other, &scene.claim(&key, LONG)).await;
            }
        };
        let (answers, ()) = tokio::join!(renewing, trying);
        assert!(matches!(answers[..], [Renewal::Renewed]), "{answers:?}");
        released(&store, &shared.claim).await;
    }
}

/// What stores without a shared mode refuse.
pub(crate) async fn r4_a_guard_becomes_shared_or_says_that_it_cannot(scene: &Scene) {
    let (store, key) = (scene.open(), scene.key());
    let client = Client::new(scene.open());
    let lock = client.lock(&key).ttl(LONG);
    let guard = lock.acquire().await.expect("the lock");
    if shares(&store) {
        guard.downgrade().await.expect("a shared lock");
        assert_eq!(guard.mode(), Mode::Shared);
        let reader = scene.shared(&key, LONG);
        granted(&store, &reader).await;
        released(&store, &reader).await;
    } else {
        let refusal = guard.downgrade().await.expect_err("a refusal");
        assert_eq!(refusal.kind(), ErrorKind::Unsupported, "{refusal}");
        assert_eq!(guard.mode(), Mode::Exclusive);
    }
    assert_eq!(guard.release().await.expect("a release"), Ended::Released);
}

pub(crate) async fn r4_a_reader_that_waits_enters_beside_a_lock_that_became_shared(scene: &Scene) {
    if !shares(&scene.open()) {
        return;
    }
    let Some(crowd) = Crowd::in_turn(scene, 2) else {
        return;
    };
    let key = scene.key();
    let guard = crowd.lock(0, &key).acquire().await.expect("the lock");
    let reading = crowd.lock(1, &key).mode(Mode::Shared);
    let downgrading = async {
        crowd.until_waiting(&key, 1).await;
        guard.downgrade().await.expect("a shared lock");
    };
    let (entered, ()) = tokio::join!(reading.acquire(), downgrading);
    let entered = entered.expect("a grant while the other one holds");
    for guard in [guard, entered] {
        assert_eq!(guard.release().await.expect("a release"), Ended::Released);
    }
}
