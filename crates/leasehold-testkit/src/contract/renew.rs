use std::time::Duration;

use leasehold::store::{AcquireError, Expiry, RenewReply};
use leasehold::{Client, LostReason};

use super::fixture::{
    Fixture, LONG, OpenStore, busy, free, granted, held, now, released, short_ttl,
};

pub(crate) async fn r1_renewing_never_takes_a_lock(fixture: &Fixture) {
    let (store, key) = (fixture.open(), fixture.key());
    let request = fixture.request(&key, LONG);
    let fence = granted(&store, &request).await;
    released(&store, &request).await;
    let answers = store.renew(&[held(&request, fence)]).await;
    assert!(matches!(answers[..], [RenewReply::Lost(_)]), "{answers:?}");
    free(fixture, &store, &key).await;
}

pub(crate) async fn r1_renewing_never_takes_from_another_holder(fixture: &Fixture) {
    let (store, key) = (fixture.open(), fixture.key());
    let old = fixture.request(&key, LONG);
    let fence = granted(&store, &old).await;
    released(&store, &old).await;
    let holder = fixture.request(&key, LONG);
    let theirs = granted(&store, &holder).await;
    let answers = store.renew(&[held(&old, fence)]).await;
    let [RenewReply::Lost(reason)] = answers[..] else {
        panic!("{answers:?}")
    };
    assert!(
        matches!(reason, LostReason::Taken | LostReason::Gone),
        "{reason}"
    );
    let answers = store.renew(&[held(&holder, theirs)]).await;
    assert!(
        matches!(answers[..], [RenewReply::Renewed(_)]),
        "{answers:?}"
    );
    released(&store, &holder).await;
}

pub(crate) async fn r2_bad_claim_harms_no_other_in_batch(fixture: &Fixture) {
    let store = fixture.open();
    let requests: Vec<_> = (0..5)
        .map(|_| fixture.request(&fixture.key(), LONG))
        .collect();
    let mut batch = Vec::new();
    for request in &requests {
        batch.push(held(request, granted(&store, request).await));
    }
    released(&store, &requests[1]).await;
    fixture.harness.forget(&requests[3].key);
    let answers = store.renew(&batch).await;
    assert_eq!(
        answers.len(),
        batch.len(),
        "one answer per lease, in their order"
    );
    for (index, answer) in answers.iter().enumerate() {
        let stands = matches!(answer, RenewReply::Renewed(_));
        assert_eq!(
            stands,
            index != 1 && index != 3,
            "lease {index}: {answer:?}"
        );
    }
    for index in [0, 2, 4] {
        released(&store, &requests[index]).await;
    }
    assert!(store.renew(&[]).await.is_empty());
}

pub(crate) async fn r3_a_renewed_lease_outlives_its_first_ttl(fixture: &Fixture) {
    let store = fixture.open();
    for _ in 0..MACHINE_PAUSED_MAX {
        if outlived_its_first_ttl(fixture, &store).await {
            return;
        }
    }
    panic!("the machine stands still for seconds again and again");
}

/// Returns false if the machine stalled for so long that the lease ended. Then the test proves nothing.
async fn outlived_its_first_ttl(fixture: &Fixture, store: &OpenStore) -> bool {
    let (key, ttl) = (fixture.key(), short_ttl(store) * 2);
    let asked = now();
    let request = fixture.request(&key, ttl);
    let lease = held(&request, granted(store, &request).await);
    let mut renewed = asked;
    while asked.elapsed() < ttl.mul_f64(1.5) {
        let sent = now();
        let answers = store.renew(std::slice::from_ref(&lease)).await;
        if !matches!(answers[..], [RenewReply::Renewed(_)]) {
            assert!(
                renewed.elapsed() > ttl.mul_f64(0.9),
                "lost too early: {answers:?}"
            );
            return false;
        }
        renewed = sent;
        let other = store.acquire(&fixture.request(&key, ttl)).await;
        if !matches!(other, Err(AcquireError::Busy(_))) {
            assert!(
                renewed.elapsed() > ttl.mul_f64(0.9),
                "granted too early: {other:?}"
            );
            return false;
        }
        fixture.pause().await;
    }
    released(store, &request).await;
    true
}

/// How often to repeat a test that cannot continue because the machine stalled.
const MACHINE_PAUSED_MAX: usize = 10;

pub(crate) async fn r3_guard_outlives_its_first_ttl(fixture: &Fixture) {
    let (store, client, key) = (fixture.open(), Client::new(fixture.open()), fixture.key());
    // The TTL is long: the guard is lost if the machine stalls for most of it.
    let ttl = Duration::from_secs(12);
    let asked = now();
    let guard = client
        .lock(&key)
        .ttl(ttl)
        .acquire()
        .await
        .expect("the lock");
    let first = guard.deadline();
    assert_eq!(
        first.is_some(),
        store.guarantees().expiry != Expiry::WithProcess,
        "leases have a deadline"
    );
    if first.is_some() {
        let moved = guard.deadline_moved(first).await;
        assert!(moved > first, "a renewal moves the deadline forward");
        while asked.elapsed() < ttl {
            assert!(guard.is_valid());
            fixture.pause().await;
        }
    }
    assert!(guard.is_valid());
    busy(&store, &fixture.request(&key, ttl)).await;
    guard.release().await.expect("a release");
}
