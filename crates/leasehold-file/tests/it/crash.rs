use leasehold::Mode;
use leasehold::store::{Inspection as _, Release, Store};

use crate::helper::Helper;
use crate::waiting::Child;
use crate::world::{World, fence, is_busy, wait_for};

#[tokio::test]
async fn a_killed_process_frees_its_locks_at_once() {
    let world = World::new();
    for mode in [Mode::Exclusive, Mode::Shared] {
        let mut helper = Helper::start();
        let before = helper.take(world.dir.path(), "deploy", mode);
        assert!(is_busy(
            world.store.acquire(&world.claim("deploy", 0)).await
        ));
        helper.kill();
        // One attempt: its end was waited for, and the kernel has closed its files by then.
        let claim = world.claim("deploy", 0);
        let after = fence(world.store.acquire(&claim).await).get();
        assert!(after > before, "{after} follows {before}");
        world.store.release(&claim).await.unwrap();
    }
}

#[tokio::test]
async fn inherited_descriptor_keeps_the_lock() {
    let world = World::new();
    let mut helper = Helper::start();
    helper.take(world.dir.path(), "deploy", Mode::Exclusive);
    let guardian = Child::new(helper.ask(&["hand down"]));
    let holder = helper.pid();
    helper.kill();
    let still_held = is_busy(world.store.acquire(&world.claim("deploy", 0)).await);
    let holders = world.store.holders(&crate::world::key("deploy")).await;
    drop(guardian);
    assert!(still_held);
    let pids = holders
        .unwrap()
        .into_iter()
        .map(|it| it.client.map(|it| it.pid));
    assert_eq!(pids.collect::<Vec<_>>(), [Some(holder)]);
    wait_for(&world.store, &world.claim("deploy", 0)).await;
}

#[tokio::test]
async fn release_frees_lock_despite_inherited_descriptor() {
    let world = World::new();
    let (claim, _) = world.take("deploy", 0).await;
    let descriptor = world.store.descriptor(claim.owner).unwrap();
    let mut child = std::process::Command::new("sleep")
        .arg("3600")
        .stdin(std::fs::File::from(descriptor))
        .spawn()
        .unwrap();
    let released = world.store.release(&claim).await;
    let next = world.store.acquire(&world.claim("deploy", 0)).await;
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!(released.unwrap(), Release::Released);
    assert!(!is_busy(next));
    assert!(world.store.descriptor(claim.owner).is_none());
}

#[tokio::test]
async fn dropping_the_last_store_frees_everything() {
    let world = World::new();
    let other = world.another_store();
    let clone = other.clone();
    let claim = world.claim("deploy", 0);
    fence(other.acquire(&claim).await);
    drop(other);
    assert!(is_busy(
        world.store.acquire(&world.claim("deploy", 0)).await
    ));
    drop(clone);
    fence(world.store.acquire(&world.claim("deploy", 0)).await);
}
