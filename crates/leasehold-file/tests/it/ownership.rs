use std::fs;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use leasehold::clock::{Clock as _, SystemClock, within};
use leasehold::memory::MemoryStore;
use leasehold::store::{ReleaseReply, RenewReply};
use leasehold::{Client, Error, ErrorKind, LostReason, Mode};

use crate::store_fixture::{StoreFixture, TIMEOUT, held, permit};

#[tokio::test]
async fn each_lease_is_renewed_on_its_own() {
    let fixture = StoreFixture::new();
    let (kept, kept_fence) = fixture.take("kept", 0).await;
    let (removed, removed_fence) = fixture.take("removed", 0).await;
    let (replaced, replaced_fence) = fixture.take("replaced", 0).await;
    fs::remove_file(fixture.lock_file("removed")).unwrap();
    let copy = fixture.dir.path().join("copy");
    fs::copy(fixture.lock_file("replaced"), &copy).unwrap();
    fs::rename(&copy, fixture.lock_file("replaced")).unwrap();
    let leases = [
        held(&removed, removed_fence),
        held(&fixture.request("kept", 0), kept_fence),
        held(&kept, kept_fence),
        held(&replaced, replaced_fence),
        held(&kept, kept_fence),
    ];
    let renewals = fixture.store.renew(&leases).await.into_iter();
    let stood = renewals.map(|renewal| match renewal {
        RenewReply::Renewed(_) => true,
        RenewReply::Lost(LostReason::Gone) => false,
        other => panic!("{other:?}"),
    });
    assert_eq!(stood.collect::<Vec<_>>(), [false, false, true, false, true]);
    let release = fixture.store.release(&removed).await.unwrap();
    assert_eq!(release, ReleaseReply::WasLost);
    fixture.released(&kept).await;
}

/// No renewal is due within an hour.
#[tokio::test(flavor = "multi_thread")]
async fn removed_lock_file_is_lost_at_once() {
    let removals: [&dyn Fn(&StoreFixture); 3] = [
        &|fixture| fs::remove_file(fixture.lock_file("deploy")).unwrap(),
        &|fixture| {
            let copy = fixture.dir.path().join("copy");
            fs::write(&copy, "").unwrap();
            fs::rename(&copy, fixture.lock_file("deploy")).unwrap();
        },
        &|fixture| fs::remove_dir_all(fixture.dir.path()).unwrap(),
    ];
    for (number, remove) in removals.into_iter().enumerate() {
        let fixture = StoreFixture::new();
        let client = Client::new(fixture.another_store());
        let acquire = async |name| client.lock(name).ttl(3 * HOUR).acquire().await.unwrap();
        let (removed, kept) = (acquire("deploy").await, acquire("other").await);
        remove(&fixture);
        let end = SystemClock.now() + TIMEOUT;
        let lost = within(&SystemClock, end, removed.lost()).await;
        assert_eq!(lost, Some(LostReason::Gone));
        if number == 2 {
            let end = SystemClock.now() + TIMEOUT;
            let lost = within(&SystemClock, end, kept.lost()).await;
            assert_eq!(lost, Some(LostReason::Gone));
        } else {
            assert!(kept.is_valid());
        }
        // The next lock is watched as well.
        drop((removed, kept));
        let next = acquire("deploy").await;
        fs::remove_file(fixture.lock_file("deploy")).unwrap();
        let end = SystemClock.now() + TIMEOUT;
        assert!(within(&SystemClock, end, next.lost()).await.is_some());
    }
}

const HOUR: Duration = Duration::from_secs(3600);

/// Drops the future after it was polled 0, 1, 2… times; a release then leaves nothing held, at
/// once. The contract does the same with exclusive requests.
#[tokio::test]
async fn dropped_sharing_attempt_holds_nothing() {
    let fixture = StoreFixture::new();
    for mode in [Mode::Shared, permit(1)] {
        let mut finished = false;
        for polls in 0.. {
            let request = fixture.wants(mode);
            let mut attempt = fixture.store.acquire(&request);
            for _ in 0..polls {
                finished = poll_once(attempt.as_mut());
                if finished {
                    break;
                }
                tokio::task::yield_now().await;
            }
            drop(attempt);
            fixture.store.release(&request).await.unwrap();
            fixture.pass("deploy", 0).await;
            if finished {
                break;
            }
        }
    }
}

pub(crate) fn poll_once<T>(future: Pin<&mut (impl Future<Output = T> + ?Sized)>) -> bool {
    let polled = future.poll(&mut Context::from_waker(Waker::noop()));
    matches!(polled, Poll::Ready(_))
}

fn is_unsupported(error: &Error, reason: &str) {
    assert_eq!(error.kind(), ErrorKind::Unsupported, "{error}");
    assert!(error.to_string().contains(reason), "{error}");
}

#[tokio::test]
async fn lock_delay_is_refused() {
    let fixture = StoreFixture::new();
    let client = Client::new(fixture.another_store());
    let lock = client.lock("deploy").lock_delay(Duration::from_secs(5));
    let error = lock.try_acquire().await.unwrap_err();
    is_unsupported(&error, "lock_delay 5s");
    is_unsupported(&error, "ends with the process");
    let none = client.lock("deploy").lock_delay(Duration::ZERO);
    assert!(none.try_acquire().await.unwrap().is_some());
}

#[tokio::test]
async fn lost_guard_holds_its_lock_until_dropped() {
    let fixture = StoreFixture::new();
    let client = || Client::new(fixture.another_store());
    let lock = client().lock("deploy");
    let guard = lock.max_hold(Duration::from_millis(10)).acquire().await;
    let guard = guard.unwrap();
    assert_eq!(guard.lost().await, LostReason::MaxHold);
    let other = client();
    assert!(other.lock("deploy").try_acquire().await.unwrap().is_none());
    drop(guard);
    let next = other.lock("deploy").wait(Duration::from_secs(10));
    assert!(next.acquire().await.unwrap().is_valid());
}

#[tokio::test]
async fn file_locks_have_no_handles() {
    let fixture = StoreFixture::new();
    let client = Client::new(fixture.another_store());
    let guard = client.lock("deploy").acquire().await.unwrap();
    let error = guard.into_handle().unwrap_err();
    is_unsupported(&error, "ends there with the client");
    // The guard is gone with the error.
    let guard = client.lock("deploy").wait(Duration::from_secs(10));
    drop(guard.acquire().await.unwrap());
    // Nor is one of another store taken for a lock of this one.
    let elsewhere = Client::new(MemoryStore::new());
    let guard = elsewhere.lock("deploy").acquire().await.unwrap();
    let handle = guard.into_handle().unwrap();
    let renewed = client.renew(&handle).await.map(drop);
    let adopted = client.adopt(&handle).await.map(drop);
    let released = client.release(&handle).await.map(drop);
    for answer in [renewed, adopted, released] {
        is_unsupported(&answer.unwrap_err(), "deploy");
    }
}

/// A lock file does not expire, and a program need not know that.
#[tokio::test]
async fn guard_of_a_file_can_be_renewed() {
    let fixture = StoreFixture::new();
    let client = Client::new(fixture.another_store());
    let guard = client.lock("x").acquire().await.unwrap();
    guard.renew().await.unwrap();
    guard
        .ensure_renewed(Duration::from_secs(3600))
        .await
        .unwrap();
    guard.release().await.unwrap();
}
