use leasehold::{Attempt, Claim, Fence, Renewal};

use super::cancellation::{MANY, up_to};
use super::scene::{
    LONG, PATIENCE, Scene, busy, granted, granted_in_time, held, now, released, short_ttl,
};

/// A fence far above all that will be granted by itself.
fn far(claim: &Claim) -> Fence {
    Fence::new(claim.proposal.as_micros() + 1_000_000_000_000).expect("a fence")
}

pub(crate) async fn m6_a_healed_lease_stands_like_a_granted_one(scene: &Scene) {
    let (store, member) = (scene.open(), scene.harness.member());
    let claims: Vec<_> = (0..100).map(|_| scene.claim(&scene.key(), LONG)).collect();
    let leases: Vec<_> = claims.iter().map(|claim| held(claim, far(claim))).collect();
    member.heal(&leases).await.expect("an answer");
    for (claim, lease) in claims.iter().zip(&leases) {
        let attempt = store.acquire(&scene.claim(&claim.key, LONG)).await;
        assert!(
            matches!(&attempt, Ok(Attempt::Busy(busy)) if busy.holder == Some(claim.owner)),
            "{attempt:?}"
        );
        let answers = member.renew(std::slice::from_ref(lease)).await;
        assert!(matches!(answers[..], [Renewal::Renewed]), "{answers:?}");
        released(&store, claim).await;
        let next = scene.claim(&claim.key, LONG);
        assert!(
            granted(&store, &next).await > lease.fence,
            "the counter is at least the fence of the lease that was put back"
        );
        released(&store, &next).await;
    }
    member.heal(&[]).await.expect("an answer");
}

pub(crate) async fn m6_healing_changes_nothing_where_the_key_is_not_free(scene: &Scene) {
    let (store, member) = (scene.open(), scene.harness.member());
    let (taken, own, free) = (scene.key(), scene.key(), scene.key());
    let others = scene.claim(&taken, LONG);
    granted(&store, &others).await;
    let mine = scene.claim(&own, LONG);
    granted(&store, &mine).await;
    let (late, back) = (scene.claim(&taken, LONG), scene.claim(&free, LONG));
    let leases = [&late, &mine, &back].map(|claim| held(claim, far(claim)));
    member.heal(&leases).await.expect("an answer");
    busy(&store, &scene.claim(&free, LONG)).await;
    for (holder, lease) in [(&others, &leases[0]), (&mine, &leases[1])] {
        busy(&store, &scene.claim(&holder.key, LONG)).await;
        released(&store, holder).await;
        let next = scene.claim(&holder.key, LONG);
        assert!(
            granted(&store, &next).await < lease.fence,
            "the counter of a key that was not free stays as it was"
        );
        released(&store, &next).await;
    }
    released(&store, &back).await;
}

pub(crate) async fn m6_a_reader_is_not_put_back(scene: &Scene) {
    let (store, member) = (scene.open(), scene.harness.member());
    let reader = scene.shared(&scene.key(), LONG);
    let lease = held(&reader, far(&reader));
    member
        .heal(std::slice::from_ref(&lease))
        .await
        .expect("an answer");
    let next = scene.claim(&reader.key, LONG);
    assert!(granted(&store, &next).await < lease.fence);
    released(&store, &next).await;
}

pub(crate) async fn m6_a_healed_lease_ends_by_itself_and_not_before(scene: &Scene) {
    let (store, member) = (scene.open(), scene.harness.member());
    let (key, ttl, asked) = (scene.key(), short_ttl(&store), now());
    let claim = scene.claim(&key, ttl);
    let leases = [held(&claim, far(&claim))];
    member.heal(&leases).await.expect("an answer");
    let (next, waited) = granted_in_time(scene, &store, &key).await;
    let lived = asked.elapsed();
    assert!(lived >= ttl.mul_f64(0.95), "free again after {lived:?}");
    assert!(waited < PATIENCE);
    released(&store, &next).await;
}

pub(crate) async fn m6_a_healing_dropped_at_any_await_point_leaves_nothing_after_its_release(
    scene: &Scene,
) {
    let (store, member) = (scene.open(), scene.harness.member());
    for awaits in 0..MANY {
        let key = scene.key();
        let claim = scene.claim(&key, LONG);
        let leases = [held(&claim, far(&claim))];
        let ended = up_to(awaits, member.heal(&leases)).await;
        // On the same member, as whoever heals releases there; repeated until it is answered.
        let began = now();
        while let Err(error) = member.release(&claim).await {
            assert!(began.elapsed() < PATIENCE, "{error}");
        }
        let (next, _) = granted_in_time(scene, &store, &key).await;
        released(&store, &next).await;
        if ended.is_some() {
            return;
        }
    }
    panic!("the healing did not end after {MANY} await points");
}
