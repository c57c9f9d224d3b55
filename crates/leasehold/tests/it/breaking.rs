//! Locks that an operator breaks, as clients see it.

use std::time::Duration;

use leasehold::clock::within;
use leasehold::look::{BreakOptions, BreakOutcome, BreakRecord};
use leasehold::store::{Held, Permits, RenewReply, background};
use leasehold::{Fence, Guard, Key, LostReason, Mode};
use leasehold_testkit::Fault;

use crate::fixture::{Fixture, TTL, attempt, request};

/// Why this guard is lost, which it is within a TTL.
async fn lost(fixture: &Fixture, guard: &Guard) -> LostReason {
    let (clock, limit) = (&*fixture.env.clock, fixture.now() + TTL);
    let lost = within(clock, limit, guard.lost()).await;
    lost.expect("the guard is lost within a TTL")
}

#[tokio::test(start_paused = true)]
async fn error_of_a_look_names_the_lock() {
    let fixture = Fixture::new();
    fixture.store.set(Fault::Unreachable);
    let client = &fixture.client;
    let errors = [
        client.holders("x").await.map(drop).unwrap_err(),
        client.waiters("x").await.map(drop).unwrap_err(),
        client.last_break("x").await.map(drop).unwrap_err(),
    ];
    for error in errors {
        assert_eq!(error.key().map(Key::as_str), Some("x"), "{error:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn force_release_needs_the_current_fence() {
    let fixture = Fixture::new();
    let operator = fixture.other_client();
    let guard = fixture.client.lock("x").ttl(TTL).acquire().await.unwrap();
    fixture.settle().await;
    let other = Fence::new(guard.fence().get() - 1).unwrap();
    let refused = operator
        .break_lock("x", other, BreakOptions::at_once())
        .await;
    let Ok(BreakOutcome::HeldBy(shown)) = refused else {
        panic!("{refused:?}")
    };
    assert_eq!(shown[0].fence, Some(guard.fence()));
    assert_eq!(operator.last_break("x").await.unwrap(), None);
    fixture.pass(TTL).await;
    assert!(guard.is_valid(), "it is renewed as before");

    let how = BreakOptions::at_its_end().because("a test").unwrap();
    let done = operator.break_lock("x", guard.fence(), how).await.unwrap();
    let BreakOutcome::Done(broken, record) = done else {
        panic!("{done:?}")
    };
    assert_eq!((broken.members, record.fence), (1, Some(guard.fence())));
    let closed_for = broken.closed_for.expect("a time");
    assert!(closed_for > TTL / 2 && closed_for <= TTL, "{closed_for:?}");
    let broken_at = fixture.now();
    assert_eq!(lost(&fixture, &guard).await, LostReason::Broken);
    let told_after = fixture.now().since(broken_at);
    assert!(
        told_after <= TTL / 3 + Duration::from_secs(1),
        "{told_after:?}"
    );
    assert_eq!(operator.last_break("x").await.unwrap(), Some(*record));

    let next = operator.lock("x").acquire().await.unwrap();
    let closed = fixture.now().since(broken_at);
    assert!(
        closed >= closed_for,
        "granted after {closed:?}, and closed for {closed_for:?}"
    );
    assert!(
        closed <= closed_for + Duration::from_millis(100),
        "the wait ends with it: granted after {closed:?}, and closed for {closed_for:?}"
    );
    assert!(next.fence() > guard.fence());
    next.release().await.unwrap();
    let nobody = operator.break_lock("x", guard.fence(), BreakOptions::at_once());
    assert_eq!(nobody.await.unwrap(), BreakOutcome::Free);
}

#[tokio::test(start_paused = true)]
async fn one_of_several_holders_is_broken() {
    let fixture = Fixture::new();
    let operator = fixture.other_client();
    for mode in [Mode::Shared, Mode::Permit(Permits::new(2).unwrap())] {
        let one = fixture.client.lock("x").mode(mode).ttl(TTL);
        let two = operator.lock("x").mode(mode).ttl(TTL);
        let (one, two) = (one.acquire().await.unwrap(), two.acquire().await.unwrap());
        fixture.settle().await;
        let done = operator.break_lock("x", one.owner(), BreakOptions::at_its_end());
        let BreakOutcome::Done(broken, record) = done.await.unwrap() else {
            panic!("it is broken")
        };
        assert!(broken.closed_for.is_some());
        assert_eq!(record.owner, one.owner());
        assert_eq!(lost(&fixture, &one).await, LostReason::Broken);
        assert!(two.is_valid());
        two.release().await.unwrap();
        // The guard that was broken still counts, until its owner releases it.
        assert!(operator.lock("x").try_acquire().await.unwrap().is_none());
        one.release().await.unwrap();
        let next = operator.lock("x").try_acquire().await.unwrap();
        next.expect("the lock").release().await.unwrap();
    }
}

/// The operator was shown the exclusive lease, and it is shared when the break arrives.
#[tokio::test(start_paused = true)]
async fn lease_is_broken_although_it_was_downgraded() {
    let fixture = Fixture::new();
    let (operator, slow) = fixture.client_apart();
    slow.set(Fault::Slow(Duration::from_secs(1)));
    let guard = fixture.client.lock("x").ttl(TTL).acquire().await.unwrap();
    let broken = operator.break_lock("x", guard.fence(), BreakOptions::at_its_end());
    let meanwhile = async {
        fixture.pass(Duration::from_millis(500)).await;
        guard.downgrade().await
    };
    let (broken, shared) = tokio::join!(broken, meanwhile);
    shared.unwrap();
    assert!(matches!(broken.unwrap(), BreakOutcome::Done(..)));
    assert_eq!(lost(&fixture, &guard).await, LostReason::Broken);
}

#[tokio::test(start_paused = true)]
async fn immediate_force_release_grants_a_waiter() {
    let fixture = Fixture::new();
    let (operator, waiter) = (fixture.other_client(), fixture.other_client());
    let guard = fixture.client.lock("x").ttl(TTL).acquire().await.unwrap();
    let waits = background::spawn(async move { waiter.lock("x").acquire().await });
    fixture.pass(Duration::from_secs(5)).await;
    let broken_at = fixture.now();
    let done = operator.break_lock("x", guard.fence(), BreakOptions::at_once());
    let BreakOutcome::Done(broken, record) = done.await.unwrap() else {
        panic!("it is broken")
    };
    assert_eq!((broken.closed_for, record.at_once), (None, true));
    let limit = broken_at + TTL;
    let next = within(&*fixture.env.clock, limit, waits).await;
    let next = next.expect("the lock in time").unwrap().unwrap();
    let took = fixture.now().since(broken_at);
    assert!(took <= Duration::from_millis(20), "{took:?}");
    assert!(next.fence() > guard.fence());
    assert_eq!(lost(&fixture, &guard).await, LostReason::Broken);
    assert!(next.is_valid());
}

#[tokio::test(start_paused = true)]
async fn force_release_record_is_kept_a_week() {
    let fixture = Fixture::new();
    let request = request(&fixture, "x");
    let store = &fixture.apart;
    let admin = store.admin().unwrap();
    let grant = attempt(&**store, &request).await.unwrap();
    let by = (*request.client).clone();
    let record = BreakRecord::new(
        request.owner,
        Some(grant.fence),
        by,
        fixture.env.clock.wall(),
    );
    admin.break_lease(&request.key, &record).await.unwrap();
    fixture.pass(BreakRecord::KEPT - TTL).await;
    assert_eq!(admin.last_break(&request.key).await.unwrap(), Some(record));
    fixture.pass(TTL * 2).await;
    assert_eq!(admin.last_break(&request.key).await.unwrap(), None);
}

#[tokio::test(start_paused = true)]
async fn store_remembers_sixteen_force_releases() {
    let fixture = Fixture::new();
    let store = &fixture.apart;
    let admin = store.admin().unwrap();
    let mut leases = Vec::new();
    for _ in 0..20 {
        let request = request(&fixture, "x");
        let grant = attempt(&**store, &request).await.unwrap();
        let by = (*request.client).clone();
        let now = fixture.env.clock.wall();
        let mut record = BreakRecord::new(request.owner, Some(grant.fence), by, now);
        record.at_once = true;
        let broken = admin.break_lease(&request.key, &record).await.unwrap();
        assert!(broken.existed);
        leases.push(Held {
            request: request.into(),
            fence: grant.fence,
        });
    }
    let answers = store.renew(&leases).await;
    let broken = answers
        .iter()
        .map(|answer| matches!(answer, RenewReply::Lost(LostReason::Broken)));
    let remembered: Vec<bool> = broken.collect();
    assert_eq!(remembered, [vec![false; 4], vec![true; 16]].concat());
}
