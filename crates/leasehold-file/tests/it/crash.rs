use leasehold::Mode;

use crate::flock::flock_gets;
use crate::helper::Helper;
use crate::store_fixture::{StoreFixture, granted, permit, wait_for};

#[tokio::test]
async fn a_killed_process_frees_its_locks_at_once() {
    let fixture = StoreFixture::new();
    for mode in [Mode::Exclusive, Mode::Shared] {
        let mut helper = Helper::start();
        let before = helper.take(&fixture, mode);
        fixture.busy(&fixture.writer()).await;
        helper.kill();
        // One attempt: its end was waited for, and the kernel has closed its files by then.
        let request = fixture.writer();
        assert!(fixture.granted(&request).await.get() > before);
        fixture.released(&request).await;
    }
}

#[tokio::test]
async fn killed_holder_frees_only_its_permit() {
    let fixture = StoreFixture::new();
    let mut helpers = [(); 3].map(|()| Helper::holding(&fixture, permit(3)));
    fixture.busy(&fixture.wants(permit(3))).await;
    let mut next = Vec::new();
    for helper in &mut helpers {
        helper.kill();
        next.push(fixture.wants(permit(3)));
        fixture.granted(next.last().unwrap()).await;
        fixture.busy(&fixture.wants(permit(3))).await;
    }
    for request in &next {
        fixture.released(request).await;
    }
    fixture.pass("deploy", 0).await;
}

#[tokio::test]
async fn inherited_descriptor_keeps_the_lock() {
    for mode in [Mode::Exclusive, permit(1)] {
        let fixture = StoreFixture::new();
        let mut helper = Helper::holding(&fixture, mode);
        let child = helper.hand_down();
        helper.kill();
        for wanted in [mode, Mode::Shared, Mode::Exclusive] {
            fixture.busy(&fixture.wants(wanted)).await;
        }
        assert!(!flock_gets(&fixture.lock_file("deploy"), "-x"));
        let shown = fixture.holders().await;
        let pids: Vec<_> = shown
            .iter()
            .map(|it| it.client.as_ref().unwrap().pid)
            .collect();
        assert_eq!(pids, [helper.pid()]);
        drop(child);
        wait_for(&fixture.store, &fixture.wants(mode)).await;
    }
}

#[tokio::test]
async fn release_frees_lock_despite_inherited_descriptor() {
    let fixture = StoreFixture::new();
    let mut helper = Helper::holding(&fixture, Mode::Exclusive);
    let _child = helper.hand_down();
    helper.release();
    fixture.pass("deploy", 0).await;
    let (request, _) = fixture.take("deploy", 0).await;
    assert!(fixture.store.files.descriptor(request.owner).is_some());
    fixture.released(&request).await;
    assert!(fixture.store.files.descriptor(request.owner).is_none());
}

#[tokio::test]
async fn dropping_the_last_store_frees_everything() {
    let fixture = StoreFixture::new();
    let other = fixture.another_store();
    let clone = other.clone();
    granted(&other, &fixture.writer()).await;
    drop(other);
    fixture.busy(&fixture.writer()).await;
    drop(clone);
    fixture.granted(&fixture.writer()).await;
}
