use leasehold::{Fence, Seal};

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
