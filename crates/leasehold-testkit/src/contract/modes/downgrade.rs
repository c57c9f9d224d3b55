use leasehold::store::{Progress, RenewReply, Report};
use leasehold::{Client, ErrorKind, Mode, ReleaseOutcome};

use crate::contract::fixture::{Fixture, LONG, OpenStore, busy, granted, held, released, until};
use crate::contract::waiting::crowd::Crowd;

fn shares(store: &OpenStore) -> bool {
    store.guarantees().shared
}

pub(crate) async fn r4_shared_renewal_downgrades_an_exclusive_lease(fixture: &Fixture) {
    let (store, other, key) = (fixture.open(), fixture.open(), fixture.key());
    if !shares(&store) {
        return;
    }
    let exclusive = fixture.request(&key, LONG);
    let fence = granted(&store, &exclusive).await;
    busy(&other, &fixture.shared(&key, LONG)).await;
    let shared = exclusive.clone().with_mode(Mode::Shared);
    let lease = held(&shared, fence);
    for _ in 0..2 {
        let answers = store.renew(std::slice::from_ref(&lease)).await;
        assert!(
            matches!(answers[..], [RenewReply::Renewed(_)]),
            "{answers:?}"
        );
    }
    busy(&other, &fixture.request(&key, LONG)).await;
    let reader = fixture.shared(&key, LONG);
    assert!(granted(&other, &reader).await > fence);
    if let Some(inspection) = store.inspection() {
        let holders = inspection.holders(&key).await.expect("an answer");
        assert!(
            holders.iter().all(|holder| holder.mode == Mode::Shared),
            "{holders:?}"
        );
    }
    released(&other, &reader).await;
    busy(&other, &fixture.request(&key, LONG)).await;
    released(&store, &shared).await;
    let next = fixture.request(&key, LONG);
    granted(&other, &next).await;
    released(&other, &next).await;
}

pub(crate) async fn r4_late_exclusive_message_undoes_nothing(fixture: &Fixture) {
    let (store, other, key) = (fixture.open(), fixture.open(), fixture.key());
    if !shares(&store) {
        return;
    }
    let exclusive = fixture.request(&key, LONG);
    let fence = granted(&store, &exclusive).await;
    let shared = exclusive.clone().with_mode(Mode::Shared);
    store.renew(&[held(&shared, fence)]).await;
    let reader = fixture.shared(&key, LONG);
    granted(&other, &reader).await;
    store.renew(&[held(&exclusive, fence)]).await;
    let late = fixture.shared(&key, LONG);
    granted(&other, &late).await;
    let answers = store.renew(&[held(&shared, fence)]).await;
    assert!(
        matches!(answers[..], [RenewReply::Renewed(_)]),
        "{answers:?}"
    );
    for request in [&reader, &late] {
        released(&other, request).await;
    }
    busy(&other, &fixture.request(&key, LONG)).await;
    released(&store, &shared).await;
}

pub(crate) async fn r4_shared_release_frees_either_mode(fixture: &Fixture) {
    let (store, key) = (fixture.open(), fixture.key());
    if !shares(&store) {
        return;
    }
    let exclusive = fixture.request(&key, LONG);
    granted(&store, &exclusive).await;
    released(&store, &exclusive.clone().with_mode(Mode::Shared)).await;
    let next = fixture.request(&key, LONG);
    granted(&store, &next).await;
    released(&store, &next).await;
}

pub(crate) async fn r4_shared_renewal_takes_no_lock(fixture: &Fixture) {
    let (store, key) = (fixture.open(), fixture.key());
    if !shares(&store) {
        return;
    }
    let old = fixture.request(&key, LONG);
    let fence = granted(&store, &old).await;
    released(&store, &old).await;
    let shared = held(&old.clone().with_mode(Mode::Shared), fence);
    let lost = async |what: &str| {
        let answers = store.renew(std::slice::from_ref(&shared)).await;
        assert!(
            matches!(answers[..], [RenewReply::Lost(_)]),
            "{what}: {answers:?}"
        );
    };
    lost("free").await;
    let next = fixture.request(&key, LONG);
    granted(&store, &next).await;
    lost("held by a writer").await;
    busy(&store, &fixture.shared(&key, LONG)).await;
    released(&store, &next).await;
    let reader = fixture.shared(&key, LONG);
    granted(&store, &reader).await;
    lost("held by a reader").await;
    released(&store, &reader).await;
    let last = fixture.request(&key, LONG);
    granted(&store, &last).await;
    released(&store, &last).await;
}

/// While a lock becomes shared, writers try all the time, each through a store of its own.
pub(crate) async fn r4_downgrade_admits_no_writer(fixture: &Fixture) {
    let (store, other) = (fixture.open(), fixture.open());
    if !shares(&store) {
        return;
    }
    for _ in 0..20 {
        let key = fixture.key();
        let exclusive = fixture.request(&key, LONG);
        let fence = granted(&store, &exclusive).await;
        let shared = held(&exclusive.with_mode(Mode::Shared), fence);
        let renewing = store.renew(std::slice::from_ref(&shared));
        let trying = async {
            for _ in 0..10 {
                busy(&other, &fixture.request(&key, LONG)).await;
            }
        };
        let (answers, ()) = tokio::join!(renewing, trying);
        assert!(
            matches!(answers[..], [RenewReply::Renewed(_)]),
            "{answers:?}"
        );
        released(&store, &shared.request).await;
    }
}

/// What stores without a shared mode refuse.
pub(crate) async fn r4_guard_downgrades_or_reports_failure(fixture: &Fixture) {
    let (store, key) = (fixture.open(), fixture.key());
    let client = Client::new(fixture.open());
    let lock = client.lock(&key).ttl(LONG);
    let guard = lock.acquire().await.expect("the lock");
    if shares(&store) {
        guard.downgrade().await.expect("a shared lock");
        assert_eq!(guard.mode(), Mode::Shared);
        let reader = fixture.shared(&key, LONG);
        granted(&store, &reader).await;
        released(&store, &reader).await;
    } else {
        let refusal = guard.downgrade().await.expect_err("a refusal");
        assert_eq!(refusal.kind(), ErrorKind::Unsupported, "{refusal}");
        assert_eq!(guard.mode(), Mode::Exclusive);
    }
    assert_eq!(
        guard.release().await.expect("a release"),
        ReleaseOutcome::Released
    );
}

/// Such a reader has no place in the queue.
pub(crate) async fn r4_barging_reader_joins_a_downgraded_lock(fixture: &Fixture) {
    let (store, other, key) = (fixture.open(), fixture.open(), fixture.key());
    if !shares(&store) {
        return;
    }
    let exclusive = fixture.request(&key, LONG);
    let fence = granted(&store, &exclusive).await;
    let shared = exclusive.with_mode(Mode::Shared);
    let reader = fixture.shared(&key, LONG).waiting(true).barging(true);
    let progress = Progress::new();
    let downgrading = async {
        until(fixture, "the reader waits", async || {
            matches!(progress.last(), Some(Report::Busy(_)))
        })
        .await;
        let answers = store.renew(&[held(&shared, fence)]).await;
        assert!(
            matches!(answers[..], [RenewReply::Renewed(_)]),
            "{answers:?}"
        );
    };
    let entering = other.acquire_with(&reader, &progress);
    let (entered, ()) = tokio::join!(entering, downgrading);
    let entered = entered.expect("a grant while the other one holds");
    let owner = entered.owner.unwrap_or(reader.owner);
    released(&other, &reader.with_owner(owner)).await;
    released(&store, &shared).await;
}

pub(crate) async fn r4_waiting_reader_joins_a_downgraded_lock(fixture: &Fixture) {
    if !shares(&fixture.open()) {
        return;
    }
    let Some(crowd) = Crowd::in_turn(fixture, 2) else {
        return;
    };
    let key = fixture.key();
    let guard = crowd.lock(0, &key).acquire().await.expect("the lock");
    let reading = crowd.lock(1, &key).mode(Mode::Shared);
    let downgrading = async {
        crowd.until_waiting(&key, 1).await;
        guard.downgrade().await.expect("a shared lock");
    };
    let (entered, ()) = tokio::join!(reading.acquire(), downgrading);
    let entered = entered.expect("a grant while the other one holds");
    for guard in [guard, entered] {
        assert_eq!(
            guard.release().await.expect("a release"),
            ReleaseOutcome::Released
        );
    }
}
