use std::fs;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::thread::ScopedJoinHandle;

use leasehold::store::{AcquireError, RenewReply};

use crate::store_fixture::{StoreFixture, block_on, client, held, request, wall};

/// While a thread keeps removing the lock file, no two holders with valid locks are ever there
/// together, and fences stay in order.
#[test]
fn removed_file_never_causes_two_holders() {
    let fixture = StoreFixture::new();
    let path = fixture.lock_file("deploy");
    let (over, inside, removed) = (AtomicBool::new(false), AtomicU32::new(0), AtomicU32::new(0));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !over.load(Ordering::Relaxed) {
                // Remove the file only while the lock is free, with the lock on it held.
                let Ok(file) = fs::File::open(&path) else {
                    continue;
                };
                if file.try_lock().is_ok() && fs::remove_file(&path).is_ok() {
                    removed.fetch_add(1, Ordering::Relaxed);
                }
            }
        });
        let contenders = [(); 3].map(|()| scope.spawn(|| block_on(contend(&fixture, &inside))));
        let ended = contenders.map(ScopedJoinHandle::join);
        over.store(true, Ordering::Relaxed);
        assert!(ended.iter().all(Result::is_ok));
    });
    assert!(removed.into_inner() > 0, "the file was never removed");
}

async fn contend(fixture: &StoreFixture, inside: &AtomicU32) {
    let (store, client) = (fixture.another_store(), client());
    let (mut granted, mut last) = (0, 0);
    while granted < 100 {
        let request = request(&client, "deploy", wall());
        let grant = match store.acquire(&request).await {
            Ok(grant) => grant,
            Err(AcquireError::Busy(_)) => continue,
            Err(AcquireError::Failed(error)) => panic!("{error}"),
        };
        granted += 1;
        let others = inside.fetch_add(1, Ordering::SeqCst);
        assert_eq!(others, 0, "two holders at once");
        assert!(grant.fence.get() > last);
        last = grant.fence.get();
        let renewed = store.renew(&[held(&request, grant.fence)]).await;
        assert!(
            matches!(renewed[..], [RenewReply::Renewed(_)]),
            "{renewed:?}"
        );
        inside.fetch_sub(1, Ordering::SeqCst);
        store.release(&request).await.unwrap();
    }
}
