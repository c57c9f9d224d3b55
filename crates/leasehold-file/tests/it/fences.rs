use std::fs;

use leasehold::{ErrorKind, Fence, Mode};

use crate::world::World;

#[tokio::test]
async fn fences_exceed_the_last_and_the_proposal() {
    let mut world = World::new();
    assert_eq!(world.pass("deploy", 1000).await, 1001);
    assert_eq!(world.pass("deploy", 1000).await, 1002);
    // The counter outlives the store.
    world.store = world.another_store();
    assert_eq!(world.pass("deploy", 0).await, 1003);
    assert_eq!(world.pass("deploy", 5000).await, 5001);
    assert_eq!(world.pass("other", 0).await, 1);
}

#[tokio::test]
async fn a_resend_is_granted_the_same_fence() {
    let world = World::new();
    let (claim, first) = world.take("deploy", 7).await;
    assert_eq!(world.granted(&claim).await, first);
    let other_mode = claim.clone().with_mode(Mode::Shared);
    let error = world.refused(&other_mode).await;
    assert_eq!(error.kind(), ErrorKind::InvalidInput);
    let text = error.to_string();
    assert!(text.contains("needs an attempt of its own"), "{text}");
    world.released(&claim).await;
    assert_eq!(world.pass("deploy", 0).await, first.get() + 1);
    // Another client has the file that replaced a removed one.
    world.granted(&claim).await;
    fs::remove_file(world.lock_file("deploy")).unwrap();
    world.take("deploy", 100).await;
    world.busy(&claim).await;
}

#[tokio::test]
async fn the_greatest_fence_is_not_overrun() {
    let world = World::new();
    let last = Fence::MAX.get();
    let error = world.refused(&world.claim("deploy", last)).await;
    assert_eq!(error.kind(), ErrorKind::InvalidInput);
    assert_eq!(world.pass("deploy", last - 1).await, last);
    let error = world.refused(&world.writer()).await;
    assert_eq!(error.kind(), ErrorKind::Corrupt);
    assert!(error.to_string().contains("remove the file"), "{error}");
}
