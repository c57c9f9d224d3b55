use leasehold::Mode;

use crate::flock::flock_gets;
use crate::helper::Helper;
use crate::world::{World, granted, permit, wait_for};

#[tokio::test]
async fn a_killed_process_frees_its_locks_at_once() {
    let world = World::new();
    for mode in [Mode::Exclusive, Mode::Shared] {
        let mut helper = Helper::start();
        let before = helper.take(&world, mode);
        world.busy(&world.writer()).await;
        helper.kill();
        // One attempt: its end was waited for, and the kernel has closed its files by then.
        let claim = world.writer();
        assert!(world.granted(&claim).await.get() > before);
        world.released(&claim).await;
    }
}

#[tokio::test]
async fn killed_holder_frees_only_its_permit() {
    let world = World::new();
    let mut helpers = [(); 3].map(|()| Helper::holding(&world, permit(3)));
    world.busy(&world.wants(permit(3))).await;
    let mut next = Vec::new();
    for helper in &mut helpers {
        helper.kill();
        next.push(world.wants(permit(3)));
        world.granted(next.last().unwrap()).await;
        world.busy(&world.wants(permit(3))).await;
    }
    for claim in &next {
        world.released(claim).await;
    }
    world.pass("deploy", 0).await;
}

#[tokio::test]
async fn inherited_descriptor_keeps_the_lock() {
    for mode in [Mode::Exclusive, permit(1)] {
        let world = World::new();
        let mut helper = Helper::holding(&world, mode);
        let child = helper.hand_down();
        helper.kill();
        for wanted in [mode, Mode::Shared, Mode::Exclusive] {
            world.busy(&world.wants(wanted)).await;
        }
        assert!(!flock_gets(&world.lock_file("deploy"), "-x"));
        let shown = world.holders().await;
        let pids: Vec<_> = shown
            .iter()
            .map(|it| it.client.as_ref().unwrap().pid)
            .collect();
        assert_eq!(pids, [helper.pid()]);
        drop(child);
        wait_for(&world.store, &world.wants(mode)).await;
    }
}

#[tokio::test]
async fn release_frees_lock_despite_inherited_descriptor() {
    let world = World::new();
    let mut helper = Helper::holding(&world, Mode::Exclusive);
    let _child = helper.hand_down();
    helper.release();
    world.pass("deploy", 0).await;
    let (claim, _) = world.take("deploy", 0).await;
    assert!(world.store.descriptor(claim.owner).is_some());
    world.released(&claim).await;
    assert!(world.store.descriptor(claim.owner).is_none());
}

#[tokio::test]
async fn dropping_the_last_store_frees_everything() {
    let world = World::new();
    let other = world.another_store();
    let clone = other.clone();
    granted(&other, &world.writer()).await;
    drop(other);
    world.busy(&world.writer()).await;
    drop(clone);
    world.granted(&world.writer()).await;
}
