use leasehold::env::SystemEntropy;
use leasehold::look::Owner;
use leasehold::store::{ReleaseReply, RenewReply};
use leasehold::{Client, ReleaseOutcome};

use super::fixture::{Fixture, LONG, busy, free, granted, granted_in_time, held, released};

pub(crate) async fn f1_a_released_lock_is_granted_at_once(fixture: &Fixture) {
    let (store, other, key) = (fixture.open(), fixture.open(), fixture.key());
    for _ in 0..10 {
        let request = fixture.request(&key, LONG);
        granted(&store, &request).await;
        released(&store, &request).await;
        let next = fixture.request(&key, LONG);
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
    busy(&store, &fixture.request(&key, LONG)).await;
    drop(guard);
    let (request, _) = granted_in_time(fixture, &store, &key).await;
    released(&store, &request).await;
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
    busy(&store, &fixture.request(&key, LONG)).await;
    assert_eq!(
        inner.release().await.expect("an answer"),
        ReleaseOutcome::Released
    );
    let request = fixture.request(&key, LONG);
    granted(&store, &request).await;
    released(&store, &request).await;
}

pub(crate) async fn f2_a_stale_release_touches_nobody(fixture: &Fixture) {
    let (store, other, key) = (fixture.open(), fixture.open(), fixture.key());
    let never = fixture.request(&key, LONG);
    assert!(
        matches!(store.release(&never).await, Ok(ReleaseReply::WasLost)),
        "nothing to free"
    );
    let old = fixture.request(&key, LONG);
    granted(&store, &old).await;
    released(&store, &old).await;
    let holder = fixture.request(&key, LONG);
    let fence = granted(&other, &holder).await;
    // Another attempt of the very same client does not release it, either.
    let mut sibling = fixture.request(&key, LONG);
    sibling.owner = Owner::random(holder.owner.client(), &SystemEntropy);
    for stale in [&old, &never, &sibling, &old] {
        let outcome = store.release(stale).await;
        assert!(matches!(outcome, Ok(ReleaseReply::WasLost)), "{outcome:?}");
    }
    busy(&store, &fixture.request(&key, LONG)).await;
    let answers = other.renew(&[held(&holder, fence)]).await;
    assert!(
        matches!(answers[..], [RenewReply::Renewed(_)]),
        "{answers:?}"
    );
    released(&other, &holder).await;
}

pub(crate) async fn f4_released_lock_is_free_after_flush(fixture: &Fixture) {
    let (store, locations) = (fixture.open(), fixture.harness.locations());
    let locations: Vec<_> = locations
        .into_iter()
        .map(|location| fixture.session_of(location))
        .collect();
    for _ in 0..10 {
        let key = fixture.key();
        let request = fixture.request(&key, LONG);
        granted(&store, &request).await;
        released(&store, &request).await;
        store.flush().await;
        for location in &locations {
            free(fixture, location, &key).await;
        }
    }
}
