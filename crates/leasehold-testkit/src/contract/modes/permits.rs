use std::cell::Cell;
use std::collections::HashSet;

use futures_util::future::join_all;
use leasehold::store::{AcquireError, LockRequest, Permits};
use leasehold::{Effect, ErrorKind, Fence, Key, Mode};

use crate::contract::fixture::{
    Fixture, LONG, OpenStore, busy, expires, granted, now, refusal, released, short_ttl,
};
use crate::contract::waiting::crowd::Crowd;

pub(in crate::contract) const THREE: u32 = 3;

pub(in crate::contract) fn permits(count: u32) -> Permits {
    Permits::new(count).expect("a number of permits")
}

/// Returns a request on one of three permits, of a client of its own.
fn wants(fixture: &Fixture, key: &Key) -> LockRequest {
    wants_of(fixture, key, THREE)
}

fn wants_of(fixture: &Fixture, key: &Key, count: u32) -> LockRequest {
    fixture
        .request(key, LONG)
        .with_mode(Mode::Permit(permits(count)))
}

/// Returns whether the store offers permits. If not, checks that the store says so.
async fn offers(fixture: &Fixture, store: &OpenStore) -> bool {
    if store.guarantees().permits {
        return true;
    }
    let error = refusal(store, &wants(fixture, &fixture.key())).await;
    assert_eq!(error.kind(), ErrorKind::Unsupported, "{error}");
    assert_eq!(error.effect(), Effect::None, "{error}");
    false
}

async fn try_permit(store: &OpenStore, request: LockRequest) -> Option<(LockRequest, Fence)> {
    match store.acquire(&request).await {
        Ok(grant) => Some((request, grant.fence)),
        Err(AcquireError::Busy(_)) => None,
        Err(AcquireError::Failed(error)) => panic!("no answer: {error}"),
    }
}

async fn has_permit(fixture: &Fixture, store: &OpenStore, key: &Key) -> (LockRequest, Fence) {
    let granted = try_permit(store, wants(fixture, key)).await;
    granted.expect("a free permit")
}

async fn is_full(fixture: &Fixture, store: &OpenStore, key: &Key) {
    let granted = try_permit(store, wants(fixture, key)).await;
    assert!(granted.is_none(), "one too many: {granted:?}");
}

pub(crate) async fn a8_each_permit_has_one_holder(fixture: &Fixture) {
    let (store, other, key) = (fixture.open(), fixture.open(), fixture.key());
    if !offers(fixture, &store).await {
        return;
    }
    let mut held = Vec::new();
    // The handle that took a permit frees it; other handles need not know of it.
    for store in [&store, &other, &store] {
        held.push((store, has_permit(fixture, store, &key).await));
    }
    is_full(fixture, &store, &key).await;
    is_full(fixture, &other, &key).await;
    let fences: Vec<Fence> = held.iter().map(|(_, (_, fence))| *fence).collect();
    assert!(fences.is_sorted_by(|one, two| one < two), "{fences:?}");
    for _ in 0..4 {
        let (its, (freed, _)) = held.remove(1);
        released(its, &freed).await;
        let (next, fence) = has_permit(fixture, &other, &key).await;
        let is_earlier = |(_, (_, earlier)): &(_, (_, Fence))| *earlier < fence;
        assert!(held.iter().all(is_earlier), "{fence}");
        held.push((&other, (next, fence)));
        is_full(fixture, &store, &key).await;
    }
    for (its, (request, _)) in &held {
        released(its, request).await;
    }
    let writer = fixture.request(&key, LONG);
    let (_, (_, last)) = held[2];
    assert!(granted(&store, &writer).await > last);
    released(&store, &writer).await;
}

pub(crate) async fn a8_differing_permit_count_is_refused(fixture: &Fixture) {
    let (store, key) = (fixture.open(), fixture.key());
    if !offers(fixture, &store).await {
        return;
    }
    let mut held = vec![has_permit(fixture, &store, &key).await.0];
    for _ in 0..2 {
        for count in [1, 2, 4] {
            let error = refusal(&store, &wants_of(fixture, &key, count)).await;
            assert_eq!(error.kind(), ErrorKind::PermitsDiffer, "{error}");
            assert!(!error.is_retryable(), "{error}");
            let text = error.to_string();
            for named in ["3 permits".into(), format!("not {count}")] {
                assert!(text.contains(&named), "{named}: {text}");
            }
        }
        // This works whether or not all are held.
        while let Some((request, _)) = try_permit(&store, wants(fixture, &key)).await {
            held.push(request);
        }
    }
    assert_eq!(held.len(), 3, "nobody who was refused has one");
    for request in &held {
        released(&store, request).await;
    }
    let (only, _) = try_permit(&store, wants_of(fixture, &key, 1))
        .await
        .expect("none is held: the number may change");
    let error = refusal(&store, &wants(fixture, &key)).await;
    assert_eq!(error.kind(), ErrorKind::PermitsDiffer, "{error}");
    released(&store, &only).await;
}

pub(crate) async fn a8_permits_exclude_other_modes(fixture: &Fixture) {
    let (store, key) = (fixture.open(), fixture.key());
    if !offers(fixture, &store).await {
        return;
    }
    let modes = if store.guarantees().shared {
        &[Mode::Exclusive, Mode::Shared][..]
    } else {
        &[Mode::Exclusive]
    };
    for mode in modes {
        let other = || fixture.request(&key, LONG).with_mode(*mode);
        let (holder, _) = has_permit(fixture, &store, &key).await;
        busy(&store, &other()).await;
        released(&store, &holder).await;
        let holder = other();
        granted(&store, &holder).await;
        busy(&store, &wants(fixture, &key)).await;
        released(&store, &holder).await;
    }
}

pub(crate) async fn a8_leases_that_end_let_as_many_in(fixture: &Fixture) {
    let (store, key) = (fixture.open(), fixture.key());
    if !offers(fixture, &store).await || !expires(store.guarantees()) {
        return;
    }
    let ttl = short_ttl(&store);
    let began = now();
    for _ in 0..THREE {
        let short = || {
            let mut request = wants(fixture, &key);
            request.ttl = ttl;
            request
        };
        try_permit(&store, short()).await.expect("a free permit");
    }
    let full = try_permit(&store, wants(fixture, &key)).await;
    assert!(full.is_none() || began.elapsed() >= ttl, "{full:?}");
    let mut next: Vec<LockRequest> = full.into_iter().map(|(request, _)| request).collect();
    while next.len() < THREE as usize {
        match try_permit(&store, wants(fixture, &key)).await {
            Some((request, _)) => next.push(request),
            None => fixture.pause().await,
        }
        assert!(
            began.elapsed() < crate::contract::fixture::TIMEOUT,
            "{}",
            next.len()
        );
    }
    assert!(began.elapsed() >= ttl, "a lease ended before its time");
    is_full(fixture, &store, &key).await;
    for request in &next {
        released(&store, request).await;
    }
}

pub(crate) async fn a8_contenders_never_hold_more_than_there_are(fixture: &Fixture) {
    const CONTENDERS: usize = 24;
    const SECTIONS: usize = 3;
    if !offers(fixture, &fixture.open()).await {
        return;
    }
    let (crowd, key) = (Crowd::new(fixture, 4), fixture.key());
    let (inside, most) = (Cell::new(0), Cell::new(0));
    let contend = async |number| {
        let lock = crowd.lock(number, &key).mode(Mode::Permit(permits(THREE)));
        let mut fences = Vec::new();
        for _ in 0..SECTIONS {
            let guard = lock.acquire().await.expect("a permit");
            inside.set(inside.get() + 1);
            assert!(inside.get() <= THREE, "{} are inside", inside.get());
            most.set(most.get().max(inside.get()));
            fences.push(guard.fence());
            fixture.pause().await;
            inside.set(inside.get() - 1);
            guard.release().await.expect("a release");
        }
        fences
    };
    let fences = join_all((0..CONTENDERS).map(contend)).await.concat();
    assert!(most.get() > 1, "never two at once");
    let distinct: HashSet<Fence> = fences.into_iter().collect();
    assert_eq!(distinct.len(), CONTENDERS * SECTIONS);
    crowd.until_waiting(&key, 0).await;
}
