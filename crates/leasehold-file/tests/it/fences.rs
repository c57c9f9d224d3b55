use std::fs;

use leasehold::store::Store;
use leasehold::{ErrorKind, Fence};

use crate::world::{World, fence, held, wall};

#[tokio::test]
async fn fences_exceed_the_last_and_the_proposal() {
    let world = World::new();
    assert_eq!(world.pass("deploy", 1000).await, 1001);
    assert_eq!(world.pass("deploy", 1000).await, 1002);
    assert_eq!(world.pass("deploy", 0).await, 1003);
    assert_eq!(world.pass("deploy", 5000).await, 5001);
    assert_eq!(world.pass("other", 0).await, 1);
}

#[tokio::test]
async fn the_counter_outlives_the_store() {
    let mut world = World::new();
    let before = world.pass("deploy", wall()).await;
    world.store = world.another_store();
    assert_eq!(world.pass("deploy", 0).await, before + 1);
}

#[tokio::test]
async fn fences_grow_after_file_loss() {
    let world = World::new();
    let before = world.pass("deploy", wall()).await;
    fs::remove_file(world.lock_file("deploy")).unwrap();
    assert!(world.pass("deploy", wall()).await > before);
    let before = world.pass("deploy", wall()).await;
    fs::write(world.lock_file("deploy"), "").unwrap();
    assert!(world.pass("deploy", wall()).await > before);
}

#[tokio::test]
async fn a_resend_is_granted_the_same_fence() {
    let world = World::new();
    let (claim, first) = world.take("deploy", 7).await;
    assert_eq!(fence(world.store.acquire(&claim).await), first);
    assert_eq!(fence(world.store.clone().acquire(&claim).await), first);
    let upgrade = claim.clone().with_mode(leasehold::Mode::Shared);
    let error = world.store.acquire(&upgrade).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidInput);
    assert!(
        error.to_string().contains("needs an attempt of its own"),
        "{error}"
    );
    world.store.release(&claim).await.unwrap();
    assert_eq!(world.pass("deploy", 0).await, first.get() + 1);
}

#[tokio::test]
async fn resent_claim_after_file_removal_is_granted() {
    let world = World::new();
    let (claim, first) = world.take("deploy", 7).await;
    fs::remove_file(world.lock_file("deploy")).unwrap();
    let (_other, _) = world.take("deploy", 100).await;
    assert!(crate::world::is_busy(world.store.acquire(&claim).await));
    let lost = world.store.renew(&[held(&claim, first)]).await;
    assert!(
        matches!(lost[..], [leasehold::store::Renewal::Lost(_)]),
        "{lost:?}"
    );
}

#[tokio::test]
async fn shared_holders_have_distinct_fences() {
    let world = World::new();
    let mut fences = Vec::new();
    let stores: Vec<_> = (0..8).map(|_| world.another_store()).collect();
    let claims: Vec<_> = stores.iter().map(|_| world.shared("deploy", 10)).collect();
    let mut running = tokio::task::JoinSet::new();
    for (store, claim) in stores.iter().cloned().zip(claims) {
        running.spawn(async move { fence(store.acquire(&claim).await).get() });
    }
    while let Some(drawn) = running.join_next().await {
        fences.push(drawn.unwrap());
    }
    fences.sort_unstable();
    assert_eq!(fences, (11..19).collect::<Vec<_>>());
}

#[tokio::test]
async fn the_greatest_fence_is_not_overrun() {
    let world = World::new();
    let last = Fence::MAX.get();
    let error = world
        .store
        .acquire(&world.claim("deploy", last))
        .await
        .unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidInput);
    assert_eq!(world.pass("deploy", last - 1).await, last);
    let error = world
        .store
        .acquire(&world.claim("deploy", 0))
        .await
        .unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Corrupt);
    assert!(error.to_string().contains("remove the file"), "{error}");
}
