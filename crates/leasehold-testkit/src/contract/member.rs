use leasehold::{Claim, Counting, Fence, Mode, Seal, Sharing};

use super::permits::{THREE, permits};
use super::scene::{LONG, Scene, granted, released};

pub(crate) async fn m1_a_seal_needs_the_claim(scene: &Scene) {
    let (store, key) = (scene.open(), scene.key());
    let member = scene.harness.member();
    let holder = scene.claim(&key, LONG);
    let fence = granted(&store, &holder).await;
    let far = Fence::new(fence.get() + 1_000_000_000).expect("a fence");
    let stranger = scene.claim(&key, LONG);
    assert_eq!(
        member.seal(&stranger, far).await.expect("an answer").answer,
        Seal::NotHeld
    );
    released(&store, &holder).await;
    assert_eq!(
        member.seal(&holder, far).await.expect("an answer").answer,
        Seal::NotHeld
    );
    let next = scene.claim(&key, LONG);
    let after = granted(&store, &next).await;
    assert!(
        after > fence && after < far,
        "a refused seal changes nothing: {after}"
    );
    released(&store, &next).await;
}

pub(crate) async fn m2_a_sealed_fence_is_never_granted_again(scene: &Scene) {
    let (store, key) = (scene.open(), scene.key());
    let member = scene.harness.member();
    let holder = scene.claim(&key, LONG);
    let fence = granted(&store, &holder).await;
    let far = Fence::new(fence.get() + 1_000_000_000).expect("a fence");
    assert_eq!(
        member.seal(&holder, far).await.expect("an answer").answer,
        Seal::Sealed
    );
    let lower = Fence::new(far.get() - 5).expect("a fence");
    assert_eq!(
        member.seal(&holder, lower).await.expect("an answer").answer,
        Seal::Sealed
    );
    released(&store, &holder).await;
    let next = scene.claim(&key, LONG);
    assert!(
        granted(&store, &next).await > far,
        "a seal only ever raises the counter"
    );
    released(&store, &next).await;
}

pub(crate) async fn m13_of_claims_that_hold_together_one_has_a_fence(scene: &Scene) {
    let store = scene.open();
    let guarantees = store.guarantees();
    let shared = (guarantees.sharing != Sharing::ExclusiveOnly).then_some(Mode::Shared);
    let counted = (guarantees.counting == Counting::Permits).then(|| Mode::Permit(permits(THREE)));
    for mode in shared.into_iter().chain(counted) {
        let key = scene.key();
        let claim = || scene.claim(&key, LONG).with_mode(mode);
        let member = scene.harness.member();
        let seal = async |claim: &Claim, fence| {
            let sealed = member.seal(claim, fence).await;
            sealed.expect("an answer").answer
        };
        let (one, two) = (claim(), claim());
        let first = granted(&store, &one).await;
        let second = granted(&store, &two).await;
        for fence in [first, second] {
            assert_eq!(seal(&one, fence).await, Seal::Taken(second), "{mode}");
        }
        let far = Fence::new(second.get() + 1_000_000_000).expect("a fence");
        assert_eq!(seal(&claim(), far).await, Seal::NotHeld, "{mode}");
        assert_eq!(seal(&one, far).await, Seal::Sealed, "{mode}");
        for claim in [&one, &two] {
            assert_eq!(seal(claim, far).await, Seal::Taken(far), "{mode}: once");
        }
        let next = Fence::new(far.get() + 1).expect("a fence");
        assert_eq!(seal(&two, next).await, Seal::Sealed, "{mode}");
        let third = claim();
        assert!(granted(&store, &third).await > next, "{mode}");
        for claim in [&one, &two, &third] {
            released(&store, claim).await;
        }
    }
}
