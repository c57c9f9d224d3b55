use std::time::Duration;

use leasehold::look::{BreakRecord, BrokenLease};
use leasehold::store::{LockRequest, Permits, ReleaseReply, RenewReply};
use leasehold::{Fence, Key, LostReason, Mode};

use crate::contract::fixture::{
    Fixture, LONG, OpenStore, TIMEOUT, admin, busy, granted, granted_in_time, held, inspection,
    now, released, short_ttl, until,
};
use crate::contract::waiting::crowd::Crowd;

fn record(fixture: &Fixture, request: &LockRequest, fence: Fence) -> BreakRecord {
    let by = fixture.client();
    BreakRecord::new(request.owner, Some(fence), (*by).clone(), fixture.wall())
}

fn at_once(fixture: &Fixture, request: &LockRequest, fence: Fence) -> BreakRecord {
    let mut record = record(fixture, request, fence);
    record.at_once = true;
    record
}

async fn broken(store: &OpenStore, request: &LockRequest, record: &BreakRecord) -> BrokenLease {
    let broken = admin(store).break_lease(&request.key, record).await;
    let broken = broken.expect("an answer");
    assert!(broken.existed, "the lease existed: {broken:?}");
    broken
}

async fn renewal(store: &OpenStore, request: &LockRequest, fence: Fence) -> RenewReply {
    let mut answers = store.renew(&[held(request, fence)]).await;
    answers.pop().expect("one answer")
}

async fn is_told(store: &OpenStore, request: &LockRequest, fence: Fence) {
    let answer = renewal(store, request, fence).await;
    assert!(
        matches!(answer, RenewReply::Lost(LostReason::Broken)),
        "{answer:?}"
    );
}

pub(crate) async fn b1_next_renewal_reports_the_break(fixture: &Fixture) {
    let (store, other, key) = (fixture.open(), fixture.open(), fixture.key());
    let ttl = short_ttl(&store);
    let request = fixture.request(&key, ttl);
    let fence = granted(&store, &request).await;
    assert!(matches!(
        renewal(&store, &request, fence).await,
        RenewReply::Renewed(_)
    ));
    broken(&other, &request, &record(fixture, &request, fence)).await;
    is_told(&store, &request, fence).await;
    let shared = request.clone().with_mode(Mode::Shared);
    is_told(&store, &shared, fence).await;
    let release = store.release(&request).await;
    assert!(matches!(release, Ok(ReleaseReply::WasLost)), "{release:?}");
    // The same holds when the lock is free, or belongs to the next holder.
    let (next, _) = granted_in_time(fixture, &other, &key).await;
    is_told(&store, &request, fence).await;
    released(&other, &next).await;
    is_told(&store, &request, fence).await;
}

pub(crate) async fn b2_broken_lock_stays_closed_until_lease_end(fixture: &Fixture) {
    let (store, other, key) = (fixture.open(), fixture.open(), fixture.key());
    let ttl = short_ttl(&store);
    let (request, began) = (fixture.request(&key, ttl), now());
    let fence = granted(&store, &request).await;
    while began.elapsed() < ttl / 3 {
        fixture.pause().await;
    }
    let asked = now();
    assert!(matches!(
        renewal(&store, &request, fence).await,
        RenewReply::Renewed(_)
    ));
    let left = broken(&other, &request, &record(fixture, &request, fence)).await;
    let left = left.closed_for.expect("a time");
    assert!(left <= ttl && left > ttl / 3, "{left:?}");
    busy(&other, &fixture.request(&key, LONG)).await;
    let holders = inspection(&other).holders(&key).await.expect("an answer");
    let [holder] = holders.as_slice() else {
        panic!("one holder: {holders:?}")
    };
    assert!(holder.broken && holder.remaining.is_some(), "{holder:?}");
    assert_eq!(
        (holder.owner, holder.fence),
        (Some(request.owner), Some(fence))
    );
    // Its own late messages neither extend it nor grant it again.
    is_told(&store, &request, fence).await;
    busy(&store, &request).await;
    // A client that has just begun knows only what the store shows.
    let late = fixture.open();
    let (next, _) = granted_in_time(fixture, &late, &key).await;
    let lived = asked.elapsed();
    assert!(lived >= ttl.mul_f64(0.95), "free again after {lived:?}");
    assert!(lived < ttl + TIMEOUT);
    let holders = inspection(&other).holders(&key).await.expect("an answer");
    assert!(!holders[0].broken, "{holders:?}");
    released(&late, &next).await;
}

/// The modes in which several clients hold a lock together, here at most two.
fn together() -> [Mode; 2] {
    [
        Mode::Shared,
        Mode::Permit(Permits::new(2).expect("a number")),
    ]
}

/// A request that the lease of one of two holders in `mode` excludes, while the other holder stays.
fn excluded(fixture: &Fixture, key: &Key, mode: Mode) -> LockRequest {
    let request = fixture.request(key, LONG);
    match mode {
        Mode::Permit(_) => request.with_mode(mode),
        Mode::Exclusive | Mode::Shared => request,
    }
}

pub(crate) async fn b2_broken_share_excludes_until_lease_end(fixture: &Fixture) {
    for mode in together() {
        let (store, other, key) = (fixture.open(), fixture.open(), fixture.key());
        let ttl = short_ttl(&store);
        let (request, began) = (fixture.request(&key, ttl).with_mode(mode), now());
        let fence = granted(&store, &request).await;
        let left = broken(&other, &request, &record(fixture, &request, fence)).await;
        assert!(left.closed_for.is_some_and(|left| left <= ttl), "{left:?}");
        busy(&other, &fixture.request(&key, LONG)).await;
        let holders = inspection(&other).holders(&key).await.expect("an answer");
        let shown: Vec<_> = holders
            .iter()
            .map(|holder| (holder.owner, holder.broken))
            .collect();
        assert_eq!(shown, [(Some(request.owner), true)], "{mode:?}");
        is_told(&store, &request, fence).await;
        let (next, _) = granted_in_time(fixture, &other, &key).await;
        let lived = began.elapsed();
        assert!(
            lived >= ttl.mul_f64(0.95),
            "{mode:?}: free again after {lived:?}"
        );
        released(&other, &next).await;
    }
}

pub(crate) async fn b3_other_holders_keep_their_share(fixture: &Fixture) {
    for mode in together() {
        let (store, other, key) = (fixture.open(), fixture.open(), fixture.key());
        let one = fixture.request(&key, LONG).with_mode(mode);
        let two = fixture.request(&key, LONG).with_mode(mode);
        let (fence, kept) = (granted(&store, &one).await, granted(&other, &two).await);
        broken(&other, &one, &record(fixture, &one, fence)).await;
        is_told(&store, &one, fence).await;
        let answer = renewal(&other, &two, kept).await;
        assert!(matches!(answer, RenewReply::Renewed(_)), "{answer:?}");
        broken(&other, &one, &at_once(fixture, &one, fence)).await;
        let answer = renewal(&other, &two, kept).await;
        assert!(matches!(answer, RenewReply::Renewed(_)), "{answer:?}");
        let holders = inspection(&other).holders(&key).await.expect("an answer");
        let shown: Vec<_> = holders
            .iter()
            .map(|holder| (holder.owner, holder.broken))
            .collect();
        assert_eq!(shown, [(Some(two.owner), false)], "{mode:?}");
        released(&other, &two).await;
    }
}

pub(crate) async fn b3_current_holder_keeps_the_lock(fixture: &Fixture) {
    let (store, other, key) = (fixture.open(), fixture.open(), fixture.key());
    let (gone, next) = (fixture.request(&key, LONG), fixture.request(&key, LONG));
    let fence = granted(&store, &gone).await;
    released(&store, &gone).await;
    // In a quorum, the last member may free it after the answer.
    store.flush().await;
    let later = granted(&store, &next).await;
    for record in [
        record(fixture, &gone, fence),
        at_once(fixture, &gone, fence),
    ] {
        let broken = admin(&other)
            .break_lease(&key, &record)
            .await
            .expect("an answer");
        assert!(!broken.existed && broken.closed_for.is_none(), "{broken:?}");
    }
    let answer = renewal(&store, &next, later).await;
    assert!(matches!(answer, RenewReply::Renewed(_)), "{answer:?}");
    busy(&other, &fixture.request(&key, LONG)).await;
    assert_eq!(
        admin(&other).last_break(&key).await.expect("an answer"),
        None
    );
    released(&store, &next).await;
}

pub(crate) async fn b4_lock_broken_at_once_is_free(fixture: &Fixture) {
    let (store, other, key) = (fixture.open(), fixture.open(), fixture.key());
    let request = fixture.request(&key, LONG);
    let fence = granted(&store, &request).await;
    let freed = broken(&other, &request, &at_once(fixture, &request, fence)).await;
    assert_eq!(freed.closed_for, None);
    let second = fixture.request(&key, LONG);
    let fence = granted(&other, &second).await;
    // A lock that is kept closed can be opened.
    broken(&other, &second, &record(fixture, &second, fence)).await;
    busy(&store, &fixture.request(&key, LONG)).await;
    broken(&other, &second, &at_once(fixture, &second, fence)).await;
    let third = fixture.request(&key, LONG);
    granted(&store, &third).await;
    released(&store, &third).await;
}

pub(crate) async fn b4_share_broken_at_once_is_over(fixture: &Fixture) {
    for mode in together() {
        let (store, other, key) = (fixture.open(), fixture.open(), fixture.key());
        let request = fixture.request(&key, LONG).with_mode(mode);
        let fence = granted(&store, &request).await;
        let freed = broken(&other, &request, &at_once(fixture, &request, fence)).await;
        assert_eq!(freed.closed_for, None);
        is_told(&store, &request, fence).await;
        let next = fixture.request(&key, LONG);
        assert!(granted(&other, &next).await > fence);
        released(&other, &next).await;
    }
}

pub(crate) async fn b4_lock_broken_at_once_is_handed_over(fixture: &Fixture) {
    let Some(crowd) = Crowd::in_turn(fixture, 1) else {
        return;
    };
    let (store, key) = (&crowd.store, fixture.key());
    let request = fixture.request(&key, LONG);
    let fence = granted(store, &request).await;
    let lock = crowd.lock(0, &key);
    let breaking = async {
        crowd.until_waiting(&key, 1).await;
        broken(store, &request, &at_once(fixture, &request, fence)).await;
    };
    let (guard, ()) = futures_util::join!(lock.acquire(), breaking);
    let guard = guard.expect("the lock");
    assert!(guard.fence() > fence);
    is_told(store, &request, fence).await;
    assert!(guard.is_valid());
    guard.release().await.expect("an answer");
}

pub(crate) async fn b5_broken_lease_never_returns(fixture: &Fixture) {
    let (store, other, key) = (fixture.open(), fixture.open(), fixture.key());
    let request = fixture.request(&key, LONG);
    let fence = granted(&store, &request).await;
    broken(&other, &request, &at_once(fixture, &request, fence)).await;
    is_told(&store, &request, fence).await;
    let holders = inspection(&other).holders(&key).await.expect("an answer");
    assert!(holders.is_empty(), "{holders:?}");
    let next = fixture.request(&key, LONG);
    let later = granted(&other, &next).await;
    assert!(later > fence, "{later} after {fence}");
    is_told(&store, &request, fence).await;
    let answer = renewal(&other, &next, later).await;
    assert!(matches!(answer, RenewReply::Renewed(_)), "{answer:?}");
    is_told(&store, &request, fence).await;
    released(&other, &next).await;
}

pub(crate) async fn b6_the_record_is_kept(fixture: &Fixture) {
    let (store, other, key) = (fixture.open(), fixture.open(), fixture.key());
    let request = fixture.request(&key, LONG);
    let fence = granted(&store, &request).await;
    assert_eq!(
        admin(&store).last_break(&key).await.expect("an answer"),
        None
    );
    let mut first = record(fixture, &request, fence);
    first.user = Some("änne".into());
    first.reason = Some("its host \"a\" is gone".into());
    broken(&other, &request, &first).await;
    let kept = admin(&store).last_break(&key).await.expect("an answer");
    assert_eq!(kept.as_ref(), Some(&first));
    let mut second = at_once(fixture, &request, fence);
    second.at = leasehold::clock::WallTime::from_micros(first.at.as_micros() + 1);
    broken(&other, &request, &second).await;
    let next = fixture.request(&key, LONG);
    granted(&store, &next).await;
    released(&store, &next).await;
    let kept = admin(&store).last_break(&key).await.expect("an answer");
    assert_eq!(kept, Some(second), "the last one, also afterwards");
    assert!(BreakRecord::KEPT >= Duration::from_secs(7 * 24 * 60 * 60));
}

pub(crate) async fn b7_release_opens_a_broken_lock(fixture: &Fixture) {
    for mode in [Mode::Exclusive].into_iter().chain(together()) {
        let (store, other, key) = (fixture.open(), fixture.open(), fixture.key());
        let request = fixture.request(&key, LONG).with_mode(mode);
        let second = fixture.request(&key, LONG).with_mode(mode);
        let fence = granted(&store, &request).await;
        let is_shared = mode != Mode::Exclusive;
        if is_shared {
            granted(&other, &second).await;
        }
        let began = now();
        let broken = broken(&other, &request, &record(fixture, &request, fence)).await;
        busy(&other, &excluded(fixture, &key, mode)).await;
        is_told(&store, &request, fence).await;
        let release = store.release(&request).await;
        assert!(matches!(release, Ok(ReleaseReply::WasLost)), "{release:?}");
        if let Mode::Permit(_) = mode {
            let third = excluded(fixture, &key, mode);
            until_granted(fixture, &other, &third).await;
            released(&other, &third).await;
        }
        if is_shared {
            released(&other, &second).await;
        }
        let next = fixture.request(&key, LONG);
        until_granted(fixture, &other, &next).await;
        let took = began.elapsed();
        let closed_for = broken.closed_for.expect("a time");
        assert!(
            took < closed_for,
            "{mode:?}: after {took:?} of {closed_for:?}"
        );
        is_told(&store, &request, fence).await;
        released(&other, &next).await;
    }
}

/// Asks until the request is granted: of a quorum, the last member may free the lock later.
async fn until_granted(fixture: &Fixture, store: &OpenStore, request: &LockRequest) {
    until(fixture, "the grant", async || {
        store.acquire(request).await.is_ok()
    })
    .await;
}
