use leasehold::env::SystemEntropy;
use leasehold::store::{Owner, Release, Renewal};
use leasehold::{Client, ReleaseOutcome};

use super::fixture::{Fixture, LONG, busy, free, granted, granted_in_time, held, released};

pub(crate) async fn f1_a_released_lock_is_granted_at_once(fixture: &Fixture) {
    let (store, other, key) = (fixture.open(), fixture.open(), fixture.key());
    for _ in 0..10 {
        let claim = fixture.claim(&key, LONG);
        granted(&store, &claim).await;
        released(&store, &claim).await;
        let next = fixture.claim(&key, LONG);
        granted(&other, &next).await;
        released(&other, &next).await;
    }
}

pub(crate) async fn f1_a_dropped_guard_frees_the_lock(fixture: &Fixture) {
    let (store, client, key) = (fixture.open(), Client::new(fixture.open()), fixture.key());
    let guard = client
        .lock(&key)
        .ttl(LONG)
        .acquire()
        .await
        .expect("the lock");
    busy(&store, &fixture.claim(&key, LONG)).await;
    drop(guard);
    let (claim, _) = granted_in_time(fixture, &store, &key).await;
    released(&store, &claim).await;
}

pub(crate) async fn f1_the_last_share_frees_the_lock(fixture: &Fixture) {
    let (store, client, key) = (fixture.open(), Client::new(fixture.open()), fixture.key());
    let guard = client
        .lock(&key)
        .ttl(LONG)
        .acquire()
        .await
        .expect("the lock");
    let inner = guard.reenter();
    assert_eq!(
        guard.release().await.expect("an answer"),
        ReleaseOutcome::StillHeld
    );
    assert!(inner.is_valid());
    busy(&store, &fixture.claim(&key, LONG)).await;
    assert_eq!(
        inner.release().await.expect("an answer"),
        ReleaseOutcome::Released
    );
    let claim = fixture.claim(&key, LONG);
    granted(&store, &claim).await;
    released(&store, &claim).await;
}

pub(crate) async fn f2_a_stale_release_touches_nobody(fixture: &Fixture) {
    let (store, other, key) = (fixture.open(), fixture.open(), fixture.key());
    let never = fixture.claim(&key, LONG);
    assert!(
        matches!(store.release(&never).await, Ok(Release::WasLost)),
        "nothing to free"
    );
    let old = fixture.claim(&key, LONG);
    granted(&store, &old).await;
    released(&store, &old).await;
    let holder = fixture.claim(&key, LONG);
    let fence = granted(&other, &holder).await;
    // Another attempt of the very same client does not release it, either.
    let mut sibling = fixture.claim(&key, LONG);
    sibling.owner = Owner::random(holder.owner.client(), &SystemEntropy);
    for stale in [&old, &never, &sibling, &old] {
        let outcome = store.release(stale).await;
        assert!(matches!(outcome, Ok(Release::WasLost)), "{outcome:?}");
    }
    busy(&store, &fixture.claim(&key, LONG)).await;
    let answers = other.renew(&[held(&holder, fence)]).await;
    assert!(matches!(answers[..], [Renewal::Renewed(_)]), "{answers:?}");
    released(&other, &holder).await;
}

pub(crate) async fn f4_released_lock_is_free_after_flush(fixture: &Fixture) {
    let (store, places) = (fixture.open(), fixture.harness.places());
    let places: Vec<_> = places
        .into_iter()
        .map(|place| fixture.session_of(place))
        .collect();
    for _ in 0..10 {
        let key = fixture.key();
        let claim = fixture.claim(&key, LONG);
        granted(&store, &claim).await;
        released(&store, &claim).await;
        store.flush().await;
        for place in &places {
            free(fixture, place, &key).await;
        }
    }
}
