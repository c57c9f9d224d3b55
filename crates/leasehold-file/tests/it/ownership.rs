use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use leasehold::store::{Permits, Release, Renewal, Store};
use leasehold::{Client, ErrorKind, LostReason, MemoryStore, Mode};

use crate::world::{World, fence, held, is_busy, wait_for};

#[tokio::test]
async fn exclusive_and_shared_exclude_each_other() {
    let world = World::new();
    let other = world.another_store();
    let (alone, _) = world.take("deploy", 0).await;
    for store in [&world.store, &other] {
        assert!(is_busy(store.acquire(&world.claim("deploy", 0)).await));
        assert!(is_busy(store.acquire(&world.shared("deploy", 0)).await));
        world.store.release(&alone).await.unwrap();
        fence(store.acquire(&alone).await);
        store.release(&alone).await.unwrap();
        fence(world.store.acquire(&alone).await);
    }
    fence(other.acquire(&world.claim("Deploy", 0)).await);
    world.store.release(&alone).await.unwrap();

    let readers = [world.shared("deploy", 0), world.shared("deploy", 0)];
    fence(world.store.acquire(&readers[0]).await);
    fence(other.acquire(&readers[1]).await);
    assert!(is_busy(other.acquire(&world.claim("deploy", 0)).await));
    world.store.release(&readers[0]).await.unwrap();
    assert!(is_busy(other.acquire(&world.claim("deploy", 0)).await));
    other.release(&readers[1]).await.unwrap();
    fence(other.acquire(&world.claim("deploy", 0)).await);
}

#[tokio::test]
async fn only_the_owner_frees_and_only_once() {
    let world = World::new();
    let (claim, _) = world.take("deploy", 0).await;
    let stranger = world.claim("deploy", 0);
    assert_eq!(
        world.store.release(&stranger).await.unwrap(),
        Release::WasLost
    );
    assert!(is_busy(world.store.acquire(&stranger).await));
    assert_eq!(
        world.store.release(&claim).await.unwrap(),
        Release::Released
    );
    let (_next, _) = world.take("deploy", 0).await;
    assert_eq!(world.store.release(&claim).await.unwrap(), Release::WasLost);
    assert!(is_busy(world.store.acquire(&stranger).await));
}

#[tokio::test]
async fn each_lease_is_renewed_on_its_own() {
    let world = World::new();
    let (kept, kept_fence) = world.take("kept", 0).await;
    let (removed, removed_fence) = world.take("removed", 0).await;
    let (replaced, replaced_fence) = world.take("replaced", 0).await;
    std::fs::remove_file(world.lock_file("removed")).unwrap();
    let copy = world.dir.path().join("copy");
    std::fs::copy(world.lock_file("replaced"), &copy).unwrap();
    std::fs::rename(&copy, world.lock_file("replaced")).unwrap();
    let never = world.claim("kept", 0);
    let answers = world
        .store
        .renew(&[
            held(&removed, removed_fence),
            held(&never, kept_fence),
            held(&kept, kept_fence),
            held(&replaced, replaced_fence),
            held(&kept, kept_fence),
        ])
        .await;
    let stood: Vec<_> = answers
        .iter()
        .map(|answer| match answer {
            Renewal::Renewed => true,
            Renewal::Lost(LostReason::Gone) => false,
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(stood, [false, false, true, false, true]);
    assert_eq!(
        world.store.release(&removed).await.unwrap(),
        Release::WasLost
    );
    assert_eq!(world.store.release(&kept).await.unwrap(), Release::Released);
}

/// Drops the future after it was polled 0, 1, 2… times; a release then leaves nothing held, at
/// once.
#[tokio::test]
async fn dropped_attempt_holds_nothing() {
    let world = World::new();
    let other = world.another_store();
    let permit = Mode::Permit(Permits::new(1).unwrap());
    for mode in [Mode::Exclusive, Mode::Shared, permit] {
        let mut polls = 0;
        loop {
            let claim = world.claim("deploy", 0).with_mode(mode);
            let mut attempt = world.store.acquire(&claim);
            let mut finished = false;
            for _ in 0..polls {
                if poll_once(attempt.as_mut()) {
                    finished = true;
                    break;
                }
                tokio::task::yield_now().await;
            }
            drop(attempt);
            world.store.release(&claim).await.unwrap();
            let check = world.claim("deploy", 0);
            fence(other.acquire(&check).await);
            other.release(&check).await.unwrap();
            if finished {
                break;
            }
            polls += 1;
        }
    }
}

/// As above, but without a release: a lock that the dropped future won is freed by itself.
#[tokio::test]
async fn dropped_attempt_frees_a_late_grant() {
    let world = World::new();
    for _ in 0..50 {
        let claim = world.claim("deploy", 0);
        let mut attempt = world.store.acquire(&claim);
        if poll_once(attempt.as_mut()) {
            // It was over before it could be dropped.
            world.store.release(&claim).await.unwrap();
        }
        drop(attempt);
        let next = world.claim("deploy", 0);
        wait_for(&world.store, &next).await;
        world.store.release(&next).await.unwrap();
    }
}

#[tokio::test]
async fn a_release_waits_for_the_attempt_before_it() {
    let world = World::new();
    for _ in 0..50 {
        let claim = world.claim("deploy", 0);
        let mut attempt = world.store.acquire(&claim);
        poll_once(attempt.as_mut());
        drop(attempt);
        // The attempt is over by the time the release answers.
        world.store.release(&claim).await.unwrap();
        world.pass("deploy", 0).await;
    }
}

fn poll_once<T>(future: Pin<&mut (impl Future<Output = T> + ?Sized)>) -> bool {
    let polled = future.poll(&mut Context::from_waker(Waker::noop()));
    matches!(polled, Poll::Ready(_))
}

#[tokio::test]
async fn lock_delay_is_refused() {
    let world = World::new();
    let client = Client::new(world.another_store());
    let lock = client.lock("deploy").lock_delay(Duration::from_secs(5));
    let error = lock.try_acquire().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unsupported);
    let text = error.to_string();
    assert!(text.contains("lock_delay 5s"), "{text}");
    assert!(text.contains("ends with its process"), "{text}");
    let guard = client.lock("deploy").lock_delay(Duration::ZERO);
    assert!(guard.try_acquire().await.unwrap().is_some(), "none at all");
}

#[tokio::test]
async fn file_locks_have_no_handles() {
    let world = World::new();
    let client = Client::new(world.another_store());
    let guard = client.lock("deploy").try_acquire().await.unwrap().unwrap();
    let error = guard.into_handle().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unsupported);
    let text = error.to_string();
    assert!(text.contains("ends there with the process"), "{text}");
    // The guard is gone with the error.
    let guard = client
        .lock("deploy")
        .wait(Duration::from_secs(10))
        .acquire()
        .await;
    let error = guard
        .unwrap()
        .leave_for(Duration::from_secs(1))
        .await
        .unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unsupported);
    // Nor is one of another store taken for a lock of this one.
    let elsewhere = Client::new(MemoryStore::new());
    let guard = elsewhere.lock("deploy").acquire().await.unwrap();
    let handle = guard.into_handle().unwrap();
    let renewed = client.renew(&handle).await.map(drop);
    let adopted = client.adopt(&handle).await.map(drop);
    let released = client.release(&handle).await.map(drop);
    for error in [renewed, adopted, released].map(Result::unwrap_err) {
        assert_eq!(error.kind(), ErrorKind::Unsupported, "{error}");
        assert!(error.to_string().contains("deploy"), "{error}");
    }
}
