use std::cell::Cell;
use std::collections::HashSet;
use std::sync::Arc;

use futures_util::future::join_all;
use leasehold::{
    Attempt, Busy, Claim, Counting, Effect, Error, ErrorKind, Fence, Key, Mode, Permits, Sharing,
    Slot, Slots, Store,
};

use super::crowd::Crowd;
use super::scene::{LONG, Scene, busy, expires, granted, now, released, short_ttl};

pub(super) const THREE: u32 = 3;

pub(super) fn permits(count: u32) -> Permits {
    Permits::new(count).expect("a number of permits")
}

pub(super) fn slot(number: u32) -> Slot {
    Slot::new(number, permits(THREE)).expect("one of three")
}

pub(super) fn slots(numbers: &[u32]) -> Slots {
    numbers.iter().map(|number| slot(*number)).collect()
}

/// A claim of a client of its own on one of three permits.
fn wants(scene: &Scene, key: &Key) -> Claim {
    wants_of(scene, key, THREE)
}

fn wants_of(scene: &Scene, key: &Key, count: u32) -> Claim {
    scene
        .claim(key, LONG)
        .with_mode(Mode::Permit(permits(count)))
}

/// Whether the store offers permits. Where it does not, makes sure that it says so.
async fn offers(scene: &Scene, store: &Arc<dyn Store>) -> bool {
    if store.guarantees().counting == Counting::Permits {
        return true;
    }
    let refused = store.acquire(&wants(scene, &scene.key())).await;
    let error = refused.expect_err("a refusal");
    assert_eq!(error.kind(), ErrorKind::Unsupported, "{error}");
    assert_eq!(error.effect(), Effect::None, "{error}");
    false
}

/// Asks with fresh claims for as long as there are other permits to be had: members that must agree
/// are asked for one at a time.
async fn try_permit(store: &Arc<dyn Store>, fresh: impl Fn() -> Claim) -> Option<(Claim, Fence)> {
    for _ in 0..50 {
        let claim = fresh();
        match store.acquire(&claim).await.expect("an answer") {
            Attempt::Granted(grant) => return Some((claim, grant.fence)),
            Attempt::Busy(busy) if busy.free.is_empty() => return None,
            Attempt::Busy(_) => {}
        }
    }
    panic!("refused 50 times, each time in favour of others that are free")
}

async fn has_permit(scene: &Scene, store: &Arc<dyn Store>, key: &Key) -> (Claim, Fence) {
    let granted = try_permit(store, || wants(scene, key)).await;
    granted.expect("a free permit")
}

async fn is_full(scene: &Scene, store: &Arc<dyn Store>, key: &Key) {
    let granted = try_permit(store, || wants(scene, key)).await;
    assert!(granted.is_none(), "one too many: {granted:?}");
}

async fn refused(store: &Arc<dyn Store>, claim: &Claim) -> Error {
    store.acquire(claim).await.expect_err("a refusal")
}

/// A quorum may have decided before all members had answered, and does not know.
fn assert_no_effect(scene: &Scene, error: &Error) {
    if scene.suite.is_member {
        assert_eq!(error.effect(), Effect::None, "{error}");
    }
}

async fn refused_for_others(store: &Arc<dyn Store>, claim: &Claim) -> Busy {
    match store.acquire(claim).await {
        Ok(Attempt::Busy(busy)) => busy,
        other => panic!("{} should be busy: {other:?}", claim.key),
    }
}

pub(crate) async fn a8_as_many_hold_together_as_there_are_permits(scene: &Scene) {
    let (store, other, key) = (scene.open(), scene.open(), scene.key());
    if !offers(scene, &store).await {
        return;
    }
    let mut held = Vec::new();
    // Each with the handle that took it, which frees it: others need not know of it.
    for store in [&store, &other, &store] {
        held.push((store, has_permit(scene, store, &key).await));
    }
    is_full(scene, &store, &key).await;
    is_full(scene, &other, &key).await;
    let fences: Vec<Fence> = held.iter().map(|(_, (_, fence))| *fence).collect();
    assert!(fences.is_sorted_by(|one, two| one < two), "{fences:?}");
    for _ in 0..4 {
        let (its, (freed, _)) = held.remove(1);
        released(its, &freed).await;
        let (next, fence) = has_permit(scene, &other, &key).await;
        let is_earlier = |(_, (_, earlier)): &(_, (_, Fence))| *earlier < fence;
        assert!(held.iter().all(is_earlier), "{fence}");
        held.push((&other, (next, fence)));
        is_full(scene, &store, &key).await;
    }
    for (its, (claim, _)) in &held {
        released(its, claim).await;
    }
    let writer = scene.claim(&key, LONG);
    let (_, (_, last)) = held[2];
    assert!(granted(&store, &writer).await > last);
    released(&store, &writer).await;
}

pub(crate) async fn a8_a_permit_has_one_owner_and_an_owner_one_permit(scene: &Scene) {
    let (store, key) = (scene.open(), scene.key());
    if !offers(scene, &store).await || store.keeps_owner() {
        return;
    }
    let one = wants(scene, &key).with_slot(slot(1));
    let fence = granted(&store, &one).await;
    assert!(granted(&store, &one).await >= fence, "a resend");
    for _ in 0..3 {
        let again = wants(scene, &key).with_slot(slot(1));
        let busy = refused_for_others(&store, &again).await;
        assert_eq!(busy.free, slots(&[0, 2]));
    }
    let last = wants(scene, &key).with_slot(slot(2));
    granted(&store, &last).await;
    let first = has_permit(scene, &store, &key).await.0;
    is_full(scene, &store, &key).await;
    released(&store, &one).await;
    let taken = wants(scene, &key).with_slot(slot(0));
    let busy = refused_for_others(&store, &taken).await;
    assert_eq!(busy.free, slots(&[1]), "who was granted twice frees once");
    for claim in [&last, &first] {
        released(&store, claim).await;
    }
}

pub(crate) async fn a8_another_number_is_refused_while_one_is_held(scene: &Scene) {
    let (store, key) = (scene.open(), scene.key());
    if !offers(scene, &store).await {
        return;
    }
    let mut held = vec![has_permit(scene, &store, &key).await.0];
    for _ in 0..2 {
        for count in [1, 2, 4] {
            let error = refused(&store, &wants_of(scene, &key, count)).await;
            assert_eq!(error.kind(), ErrorKind::PermitsDiffer, "{error}");
            assert_no_effect(scene, &error);
            assert!(!error.is_retryable(), "{error}");
            let text = error.to_string();
            for named in ["3 permits".into(), format!("not {count}")] {
                assert!(text.contains(&named), "{named}: {text}");
            }
        }
        // Whether or not all are held.
        while let Some((claim, _)) = try_permit(&store, || wants(scene, &key)).await {
            held.push(claim);
        }
    }
    assert_eq!(held.len(), 3, "nobody who was refused has one");
    for claim in &held {
        released(&store, claim).await;
    }
    let (only, _) = try_permit(&store, || wants_of(scene, &key, 1))
        .await
        .expect("none is held: the number may change");
    let error = refused(&store, &wants(scene, &key)).await;
    assert_eq!(error.kind(), ErrorKind::PermitsDiffer, "{error}");
    released(&store, &only).await;
}

pub(crate) async fn a8_a_permit_that_does_not_exist_is_refused(scene: &Scene) {
    let (store, key) = (scene.open(), scene.key());
    if !offers(scene, &store).await || store.keeps_owner() {
        return;
    }
    let error = refused(&store, &wants_of(scene, &key, 2).with_slot(slot(2))).await;
    assert_eq!(error.kind(), ErrorKind::InvalidInput, "{error}");
    assert_no_effect(scene, &error);
    assert!(error.to_string().contains("permit 2 of 2"), "{error}");
    let writer = scene.claim(&key, LONG);
    granted(&store, &writer).await;
    released(&store, &writer).await;
}

pub(crate) async fn a8_permits_and_other_modes_keep_each_other_out(scene: &Scene) {
    let (store, key) = (scene.open(), scene.key());
    if !offers(scene, &store).await {
        return;
    }
    let modes = match store.guarantees().sharing {
        Sharing::ExclusiveOnly => &[Mode::Exclusive][..],
        _ => &[Mode::Exclusive, Mode::Shared],
    };
    for mode in modes {
        let other = || scene.claim(&key, LONG).with_mode(*mode);
        let (holder, _) = has_permit(scene, &store, &key).await;
        busy(&store, &other()).await;
        released(&store, &holder).await;
        let holder = other();
        granted(&store, &holder).await;
        let busy = refused_for_others(&store, &wants(scene, &key)).await;
        assert!(busy.free.is_empty(), "{mode}: {busy:?}");
        released(&store, &holder).await;
    }
}

pub(crate) async fn a8_leases_that_end_let_as_many_in(scene: &Scene) {
    let (store, key) = (scene.open(), scene.key());
    if !offers(scene, &store).await || !expires(store.guarantees()) {
        return;
    }
    let ttl = short_ttl(&store);
    let began = now();
    for _ in 0..THREE {
        let short = || {
            let mut claim = wants(scene, &key);
            claim.ttl = ttl;
            claim
        };
        try_permit(&store, short).await.expect("a free permit");
    }
    let full = try_permit(&store, || wants(scene, &key)).await;
    assert!(full.is_none() || began.elapsed() >= ttl, "{full:?}");
    let mut next: Vec<Claim> = full.into_iter().map(|(claim, _)| claim).collect();
    while next.len() < THREE as usize {
        match try_permit(&store, || wants(scene, &key)).await {
            Some((claim, _)) => next.push(claim),
            None => scene.pause().await,
        }
        assert!(began.elapsed() < super::scene::PATIENCE, "{}", next.len());
    }
    assert!(began.elapsed() >= ttl, "a lease ended before its time");
    is_full(scene, &store, &key).await;
    for claim in &next {
        released(&store, claim).await;
    }
}

pub(crate) async fn a8_contenders_never_hold_more_than_there_are(scene: &Scene) {
    const CONTENDERS: usize = 24;
    const SECTIONS: usize = 3;
    if !offers(scene, &scene.open()).await {
        return;
    }
    let (crowd, key) = (Crowd::new(scene, 4), scene.key());
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
            scene.pause().await;
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
