//! Permits: as many clients as there are permits hold the lock together, and no more.

use std::fs;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use std::sync::{Arc, Barrier};

use leasehold::clock::{Clock, SystemClock, within};
use leasehold::store::{AcquireError, Permits, Store};
use leasehold::{Client, ErrorKind, Mode};

use crate::helper::Helper;
use crate::store_fixture::{
    StoreFixture, TIMEOUT, block_on, client, granted, key, permit, queued, released, request,
};
use crate::waiting::{Waiting, by_notifications_alone, notifications_alone, open_files, watches};
use leasehold_testkit::servers::until;

impl StoreFixture {
    /// A permit of `count` is held already.
    async fn differs(&self, count: u32, held: u32) {
        let request = self.wants(permit(count));
        for request in [queued(&request), request] {
            let error = self.refused(&request).await;
            assert_eq!(error.kind(), ErrorKind::PermitsDiffer);
            assert_eq!(error.key(), Some(&key("deploy")));
            let both = format!("in use with {held} permits, not {count}");
            assert!(error.to_string().contains(&both), "{error}");
        }
    }
}

#[tokio::test]
async fn each_of_the_most_permits_is_granted() {
    const MAX: u32 = Permits::MAX;
    let fixture = StoreFixture::new();
    assert!(fixture.store.files.guarantees().permits);
    let holders: Vec<_> = (0..MAX).map(|_| fixture.wants(permit(MAX))).collect();
    let mut fences = Vec::new();
    for request in &holders {
        fences.push(fixture.granted(request).await);
        fixture.differs(3, MAX).await;
    }
    assert!(fences.is_sorted_by(|before, after| before < after));
    let refused = fixture.store.acquire(&fixture.wants(permit(MAX))).await;
    let holder = Some(holders[0].owner);
    assert!(matches!(refused, Err(AcquireError::Busy(busy)) if busy.holder == holder));
    for request in &holders {
        fixture.released(request).await;
    }
    // Once no permit is held, the number may change. The refused requests left nothing behind.
    let few = [(); 3].map(|()| fixture.wants(permit(3)));
    for request in &few {
        fixture.granted(request).await;
        fixture.differs(MAX, 3).await;
    }
    fixture.busy(&fixture.wants(permit(3))).await;
}

/// The kinds of holders depend on the kernel's locks, and not on the content of the file.
#[tokio::test]
async fn truncation_keeps_permits_held() {
    let fixture = StoreFixture::new();
    let holders = [(); 2].map(|()| fixture.wants(permit(2)));
    for request in &holders {
        fixture.granted(request).await;
    }
    fs::write(fixture.lock_file("deploy"), "").unwrap();
    for mode in [permit(2), Mode::Shared, Mode::Exclusive] {
        fixture.busy(&fixture.wants(mode)).await;
    }
    let error = fixture.refused(&fixture.wants(permit(3))).await;
    assert_eq!(error.kind(), ErrorKind::PermitsDiffer);
    fixture.released(&holders[1]).await;
    fixture.granted(&fixture.wants(permit(2))).await;
    fixture.busy(&fixture.wants(permit(2))).await;
}

/// The other permits are held all the while.
#[tokio::test(flavor = "multi_thread")]
async fn a_freed_permit_wakes_a_waiter() {
    let fixture = StoreFixture::new();
    let store = by_notifications_alone(fixture.dir.path());
    fixture.granted(&fixture.wants(permit(3))).await;
    let waiter = queued(&fixture.wants(permit(3)));
    // In this store, in another of this process, and in another process.
    for place in [&store, &fixture.store] {
        let holders = [(); 2].map(|()| fixture.wants(permit(3)));
        for request in &holders {
            granted(place, request).await;
        }
        let waiting = Waiting::start_until_quiet(&store, &waiter);
        released(place, &holders[0]).await;
        waiting.granted().await;
        released(&store, &waiter).await;
        released(place, &holders[1]).await;
    }
    let [mut first, mut second] = [(); 2].map(|()| Helper::holding(&fixture, permit(3)));
    let _child = first.hand_down();
    let ends: [&mut dyn FnMut(); 2] = [&mut || first.release(), &mut || second.kill()];
    for end in ends {
        let waiting = Waiting::start_until_quiet(&store, &queued(&fixture.wants(permit(3))));
        end();
        waiting.granted().await;
    }
}

/// Two kinds of holders begin at once on a lock that is free. Neither keeps both out.
#[test]
fn concurrent_claims_fill_all_permits() {
    const ROUNDS: usize = 50;
    let fixture = StoreFixture::new();
    for (modes, expected) in [
        (vec![Mode::Shared, permit(2)], 1),
        (vec![permit(1); 2], 1),
        (vec![permit(3); 6], 3),
        (vec![permit(2), permit(3)], 1),
    ] {
        let barrier = Barrier::new(modes.len());
        let won = [(); ROUNDS].map(|()| AtomicUsize::new(0));
        let contend = async |mode| {
            let (store, client) = (fixture.another_store(), client());
            for won in &won {
                let request = request(&client, "deploy", 0).with_mode(mode);
                barrier.wait();
                match store.acquire(&request).await {
                    Ok(_) => drop(won.fetch_add(1, Ordering::SeqCst)),
                    Err(AcquireError::Busy(_)) => {}
                    Err(AcquireError::Failed(error)) => {
                        assert_eq!(error.kind(), ErrorKind::PermitsDiffer, "{error}");
                    }
                }
                // No holder releases before all have tried.
                barrier.wait();
                store.release(&request).await.unwrap();
            }
        };
        std::thread::scope(|scope| {
            for mode in &modes {
                scope.spawn(|| block_on(contend(*mode)));
            }
        });
        let won = won.map(AtomicUsize::into_inner);
        assert_eq!(won, [expected; ROUNDS], "{modes:?}");
    }
}

/// Contenders that only look for room never keep out another one without notifying it afterwards.
#[tokio::test(flavor = "multi_thread")]
async fn all_modes_succeed_by_notifications_alone() {
    const TURNS: u32 = 10;
    let modes = [permit(2), permit(2), Mode::Shared, Mode::Exclusive];
    for modes in [modes, [Mode::Exclusive; 4]] {
        let fixture = StoreFixture::new();
        let stores = [(); 4].map(|()| by_notifications_alone(fixture.dir.path()));
        let inside = Arc::new(AtomicU32::new(0));
        let mut work = Vec::new();
        for mode in stores.iter().flat_map(|_| modes) {
            let client = Client::builder(stores[work.len() / 4].clone())
                .env(notifications_alone())
                .build();
            let (lock, inside) = (client.lock("deploy").mode(mode), inside.clone());
            work.push(tokio::spawn(async move {
                // Three bytes, one for each kind of holder.
                let (unit, most) = match mode {
                    Mode::Exclusive => (1 << 16, 1 << 16),
                    Mode::Shared => (1 << 8, 0xff << 8),
                    Mode::Permit(permits) => (1, permits.get()),
                };
                for _ in 0..TURNS {
                    let guard = lock.acquire().await.unwrap();
                    let now = inside.fetch_add(unit, Ordering::SeqCst) + unit;
                    assert_eq!(now & !(0xff * unit), 0, "{now:#x} in {mode} mode");
                    assert!(now <= most, "{now:#x} in {mode} mode");
                    inside.fetch_sub(unit, Ordering::SeqCst);
                    guard.release().await.unwrap();
                }
            }));
        }
        let end = SystemClock.now() + 2 * TIMEOUT;
        for work in work {
            let done = within(&SystemClock, end, work).await;
            done.expect("nobody is left waiting").unwrap();
        }
        let path = fixture.lock_file("deploy");
        until("nothing open", || open_files(&path) == 0);
        until("nothing watched", || watches(&path) == 0);
    }
}
