use std::collections::HashSet;

use futures_util::future::join_all;
use leasehold::store::AcquireError;
use leasehold::{ErrorKind, Fence, Guard, Mode};

use super::fixture::{Fixture, LONG, TIMEOUT, busy, granted, now, refusal, released};
use super::waiting::crowd::Crowd;

pub(crate) async fn a1_an_exclusive_claim_excludes_all_others(fixture: &Fixture) {
    let (store, key) = (fixture.open(), fixture.key());
    let holder = fixture.request(&key, LONG);
    granted(&store, &holder).await;
    for _ in 0..3 {
        busy(&store, &fixture.request(&key, LONG)).await;
    }
    if store.guarantees().shared {
        busy(&store, &fixture.shared(&key, LONG)).await;
    }
    released(&store, &holder).await;
}

pub(crate) async fn a1_different_keys_do_not_touch_each_other(fixture: &Fixture) {
    let store = fixture.open();
    let base = fixture.key();
    let requests: Vec<_> = ["", "/", " ", "A", "a", "*", "[a]", "{tag}", "%2F", "é", "."]
        .iter()
        .map(|end| leasehold::Key::new(format!("{base}{end}")).expect("a valid name"))
        .map(|key| fixture.request(&key, LONG))
        .collect();
    for request in &requests {
        granted(&store, request).await;
    }
    for request in &requests {
        busy(&store, &fixture.request(&request.key, LONG)).await;
        released(&store, request).await;
    }
}

pub(crate) async fn a2_shared_claims_hold_together_or_are_refused(fixture: &Fixture) {
    let (store, other, key) = (fixture.open(), fixture.open(), fixture.key());
    let (one, two) = (fixture.shared(&key, LONG), fixture.shared(&key, LONG));
    if !store.guarantees().shared {
        let refusal = refusal(&store, &one).await;
        assert_eq!(refusal.kind(), ErrorKind::Unsupported, "{refusal}");
        return;
    }
    let first = granted(&store, &one).await;
    let second = granted(&other, &two).await;
    assert!(
        second > first,
        "each reader has a fence of its own, in order"
    );
    released(&store, &one).await;
    busy(&store, &fixture.request(&key, LONG)).await;
    released(&other, &two).await;
    let writer = fixture.request(&key, LONG);
    granted(&store, &writer).await;
    released(&store, &writer).await;
}

pub(crate) async fn a2_a_shared_claim_excludes_exclusive_ones(fixture: &Fixture) {
    let (store, key) = (fixture.open(), fixture.key());
    if !store.guarantees().shared {
        refusal(&store, &fixture.shared(&key, LONG)).await;
        return;
    }
    let reader = fixture.shared(&key, LONG);
    granted(&store, &reader).await;
    busy(
        &store,
        &fixture.request(&key, LONG).with_mode(Mode::Exclusive),
    )
    .await;
    released(&store, &reader).await;
}

pub(crate) async fn a2_concurrent_readers_have_distinct_fences(fixture: &Fixture) {
    const READERS: usize = 12;
    if !fixture.open().guarantees().shared {
        let reader = fixture.shared(&fixture.key(), LONG);
        refusal(&fixture.open(), &reader).await;
        return;
    }
    let (crowd, key) = (Crowd::new(fixture, 4), fixture.key());
    let read = async |number| {
        let lock = crowd.lock(number, &key).mode(Mode::Shared);
        lock.acquire().await.expect("the lock, with the others")
    };
    let guards = join_all((0..READERS).map(read)).await;
    let fences: HashSet<Fence> = guards.iter().map(Guard::fence).collect();
    assert_eq!(fences.len(), READERS, "{fences:?}");
    for guard in guards {
        guard.release().await.expect("a release");
    }
    let writer = crowd.lock(0, &key).acquire().await.expect("the lock");
    assert!(Some(&writer.fence()) > fences.iter().max());
    writer.release().await.expect("a release");
}

pub(crate) async fn a5_busy_answer_leaves_nothing(fixture: &Fixture) {
    let (store, key) = (fixture.open(), fixture.key());
    let holder = fixture.request(&key, LONG);
    granted(&store, &holder).await;
    let refused: Vec<_> = (0..5).map(|_| fixture.request(&key, LONG)).collect();
    for request in &refused {
        let asked = now();
        let answer = store.acquire(request).await;
        assert!(matches!(answer, Err(AcquireError::Busy(_))), "{answer:?}");
        assert!(
            asked.elapsed() < TIMEOUT,
            "busy does not wait for the holder"
        );
    }
    released(&store, &holder).await;
    // This would be busy if a refused request were still queued or half granted.
    let next = fixture.request(&key, LONG);
    granted(&store, &next).await;
    released(&store, &next).await;
}
