use std::fs::{self, File};
use std::sync::atomic::{AtomicBool, Ordering};

use leasehold::Mode;
use leasehold::look::Pattern;
use leasehold::store::AcquireError;

use crate::helper::Helper;
use crate::store_fixture::{StoreFixture, key, permit};

#[tokio::test]
async fn holder_and_its_fence_are_named() {
    let fixture = StoreFixture::new();
    let other = fixture.another_store();
    let (request, fence) = fixture.take("deploy", 1000).await;
    let shown = other.holders(&key("deploy")).await.unwrap();
    let shown: Vec<_> = shown.iter().map(|it| (it.owner, it.fence)).collect();
    assert_eq!(shown, [(Some(request.owner), Some(fence))]);
    let busy = other.acquire(&fixture.writer()).await;
    assert!(matches!(busy, Err(AcquireError::Busy(busy)) if busy.holder == Some(request.owner)));
}

#[tokio::test]
async fn sharing_holders_are_named_individually() {
    for mode in [Mode::Shared, permit(3)] {
        let fixture = StoreFixture::new();
        let mut helpers: Vec<_> = (0..3).map(|_| Helper::holding(&fixture, mode)).collect();
        let sorted = |pids: &mut dyn Iterator<Item = u32>| {
            let mut pids: Vec<_> = pids.collect();
            pids.sort_unstable();
            pids
        };
        let shown_are = async |helpers: &[Helper]| {
            let shown = fixture.holders().await;
            assert!(shown.iter().all(|it| it.mode == mode), "{shown:?}");
            let pids = sorted(&mut shown.iter().map(|it| it.client.as_ref().unwrap().pid));
            assert_eq!(pids, sorted(&mut helpers.iter().map(Helper::pid)));
        };
        shown_are(&helpers).await;
        assert_eq!(fixture.held_locks().await, [key("deploy")]);
        // One is killed. Its record stays behind, and is not believed.
        helpers.remove(1).kill();
        shown_are(&helpers).await;
        helpers[1].release();
        helpers.truncate(1);
        shown_are(&helpers).await;
        // The next holder takes the seat that is free again.
        helpers.push(Helper::holding(&fixture, mode));
        shown_are(&helpers).await;
        helpers.iter_mut().for_each(Helper::release);
        assert!(fixture.holders().await.is_empty());
        assert!(fixture.held_locks().await.is_empty());
    }
}

#[tokio::test]
async fn dead_holder_record_is_not_shown() {
    let fixture = StoreFixture::new();
    Helper::holding(&fixture, Mode::Exclusive).kill();
    assert!(fixture.holders().await.is_empty());
    let file = File::open(fixture.lock_file("deploy")).unwrap();
    file.try_lock().unwrap();
    let shown = fixture.holders().await;
    let owners: Vec<_> = shown.iter().map(|it| it.owner).collect();
    assert_eq!(owners, [None]);
}

/// Looking never takes a lock, so it makes no attempt fail at the same time.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn looking_does_not_disturb_an_attempt() {
    let fixture = StoreFixture::new();
    fixture.pass("deploy", 0).await;
    let other = fixture.another_store();
    let over = std::sync::Arc::new(AtomicBool::new(false));
    let is_over = over.clone();
    let looking = tokio::spawn(async move {
        let mut looked = 0_u32;
        while !is_over.load(Ordering::Relaxed) {
            other.holders(&key("deploy")).await.unwrap();
            other.list_locks(&Pattern::all(), 10).await.unwrap();
            looked += 1;
        }
        looked
    });
    for _ in 0..200 {
        fixture.pass("deploy", 0).await;
    }
    over.store(true, Ordering::Relaxed);
    assert!(looking.await.unwrap() > 0);
}

#[tokio::test]
async fn listing_shows_the_held_keys_that_match() {
    let fixture = StoreFixture::new();
    let long = format!("jobs/{}", "é".repeat(200));
    let names = ["jobs/a", "jobs/B", "jobs%/c", "jobs*", "other", &long];
    for name in names {
        fixture.take(name, 0).await;
    }
    fixture.pass("jobs/free", 0).await;
    let dir = fixture.dir.path();
    fs::write(dir.join("README.lock.txt"), "").unwrap();
    fs::create_dir(dir.join("jobs%2Ffolder.lock")).unwrap();
    let list = async |pattern: &str| {
        let pattern = Pattern::new(pattern).unwrap();
        let locks = fixture.store.list_locks(&pattern, 10).await.unwrap().locks;
        locks
            .iter()
            .map(|lock| lock.key.to_string())
            .collect::<Vec<_>>()
    };
    assert_eq!(list("jobs/*").await, ["jobs/B", "jobs/a", &long]);
    assert_eq!(list("jobs%*").await, ["jobs%/c"]);
    assert_eq!(list("*").await.len(), names.len());
}
