use leasehold::ambient::SystemEntropy;
use leasehold::{Client, Ended, Owner, Release, Renewal};

use super::scene::{LONG, Scene, busy, free, granted, granted_in_time, held, released};

pub(crate) async fn f1_a_released_lock_is_granted_at_once(scene: &Scene) {
    let (store, other, key) = (scene.open(), scene.open(), scene.key());
    for _ in 0..10 {
        let claim = scene.claim(&key, LONG);
        granted(&store, &claim).await;
        released(&store, &claim).await;
        let next = scene.claim(&key, LONG);
        granted(&other, &next).await;
        released(&other, &next).await;
    }
}

pub(crate) async fn f1_a_dropped_guard_frees_the_lock(scene: &Scene) {
    let (store, client, key) = (scene.open(), Client::new(scene.open()), scene.key());
    let guard = client
        .lock(&key)
        .ttl(LONG)
        .acquire()
        .await
        .expect("the lock");
    busy(&store, &scene.claim(&key, LONG)).await;
    drop(guard);
    let (claim, _) = granted_in_time(scene, &store, &key).await;
    released(&store, &claim).await;
}

pub(crate) async fn f1_the_last_share_frees_the_lock(scene: &Scene) {
    let (store, client, key) = (scene.open(), Client::new(scene.open()), scene.key());
    let guard = client
        .lock(&key)
        .ttl(LONG)
        .acquire()
        .await
        .expect("the lock");
    let share = guard.share();
    assert_eq!(
        guard.release().await.expect("an answer"),
        Ended::StillShared
    );
    assert!(share.is_valid());
    busy(&store, &scene.claim(&key, LONG)).await;
    assert_eq!(share.release().await.expect("an answer"), Ended::Released);
    let claim = scene.claim(&key, LONG);
    granted(&store, &claim).await;
    released(&store, &claim).await;
}

pub(crate) async fn f2_a_stale_release_touches_nobody(scene: &Scene) {
    let (store, other, key) = (scene.open(), scene.open(), scene.key());
    let never = scene.claim(&key, LONG);
    assert!(
        matches!(store.release(&never).await, Ok(Release::WasLost)),
        "nothing to free"
    );
    let old = scene.claim(&key, LONG);
    granted(&store, &old).await;
    released(&store, &old).await;
    let holder = scene.claim(&key, LONG);
    let fence = granted(&other, &holder).await;
    // Another attempt of the very same client does not release it, either.
    let mut sibling = scene.claim(&key, LONG);
    sibling.owner = Owner::random(holder.owner.client(), &SystemEntropy);
    for stale in [&old, &never, &sibling, &old] {
        let outcome = store.release(stale).await;
        assert!(matches!(outcome, Ok(Release::WasLost)), "{outcome:?}");
    }
    busy(&store, &scene.claim(&key, LONG)).await;
    let answers = other.renew(&[held(&holder, fence)]).await;
    assert!(matches!(answers[..], [Renewal::Renewed]), "{answers:?}");
    released(&other, &holder).await;
}

pub(crate) async fn f4_what_was_released_is_free_everywhere_once_settled(scene: &Scene) {
    let (store, places) = (scene.open(), scene.harness.places());
    for _ in 0..10 {
        let key = scene.key();
        let claim = scene.claim(&key, LONG);
        granted(&store, &claim).await;
        released(&store, &claim).await;
        store.settle().await;
        for place in &places {
            free(scene, place, &key).await;
        }
    }
}
