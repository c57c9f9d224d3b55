//! From exclusive to shared, without a moment in which a writer could get in.

use std::fs;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::task::{Context, Waker};

use leasehold::store::{Claim, Inspection as _, Permits, Release, Renewal, Store};
use leasehold::{Fence, LostReason, Mode};
use leasehold_file::FileStore;

use crate::flock::flock_gets;
use crate::helper::Helper;
use crate::waiting::{Child, Waiting, by_words_alone};
use crate::world::{self, World, fence, held, in_turn, is_busy, key};

fn shared(claim: &Claim) -> Claim {
    claim.clone().with_mode(Mode::Shared)
}

async fn renew(store: &FileStore, claim: &Claim, fence: Fence) -> Renewal {
    let mut renewals = store.renew(&[held(claim, fence)]).await;
    assert_eq!(renewals.len(), 1);
    renewals.remove(0)
}

fn is_gone(renewal: &Renewal) -> bool {
    matches!(renewal, Renewal::Lost(LostReason::Gone))
}

#[tokio::test]
async fn downgraded_holder_admits_readers_only() {
    let world = World::new();
    let path = world.lock_file("deploy");
    for freed_as_shared in [true, false] {
        let (alone, fence_alone) = world.take("deploy", 0).await;
        let together = shared(&alone);
        for _ in 0..2 {
            let renewal = renew(&world.store, &together, fence_alone).await;
            assert!(matches!(renewal, Renewal::Renewed), "{renewal:?}");
        }
        let shown = world.store.holders(&key("deploy")).await.unwrap();
        assert_eq!(shown.len(), 1, "{shown:?}");
        assert_eq!(
            (shown[0].mode, shown[0].owner),
            (Mode::Shared, Some(alone.owner))
        );
        assert_eq!(shown[0].fence, Some(fence_alone));
        assert!(is_busy(
            world.store.acquire(&world.claim("deploy", 0)).await
        ));
        assert!(!flock_gets(&path, "-x") && flock_gets(&path, "-s"));
        let permit = world
            .claim("deploy", 0)
            .with_mode(Mode::Permit(Permits::new(3).unwrap()));
        assert!(is_busy(world.store.acquire(&permit).await));
        let reader = world.shared("deploy", 0);
        assert!(fence(world.store.acquire(&reader).await) > fence_alone);
        // The lock is no longer held exclusively.
        assert!(is_gone(&renew(&world.store, &alone, fence_alone).await));
        world.store.release(&reader).await.unwrap();
        let freed = if freed_as_shared { &together } else { &alone };
        assert_eq!(world.store.release(freed).await.unwrap(), Release::Released);
        world.pass("deploy", 0).await;
    }
}

#[tokio::test]
async fn nothing_else_changes_its_mode() {
    let world = World::new();
    let permit = Mode::Permit(Permits::new(3).unwrap());
    let modes = [Mode::Exclusive, Mode::Shared, permit];
    for held_in in modes {
        for renewed_in in modes {
            let claim = world.claim("deploy", 0).with_mode(held_in);
            let granted = fence(world.store.acquire(&claim).await);
            let other = claim.clone().with_mode(renewed_in);
            let renewal = renew(&world.store, &other, granted).await;
            let may = held_in == renewed_in || (held_in, renewed_in) == (modes[0], modes[1]);
            assert_eq!(
                matches!(renewal, Renewal::Renewed),
                may,
                "{held_in} {renewed_in}"
            );
            assert_eq!(is_gone(&renewal), !may, "{held_in} {renewed_in}");
            world.store.release(&claim).await.unwrap();
        }
    }
    let never = world.shared("deploy", 0);
    assert!(is_gone(&renew(&world.store, &never, Fence::MAX).await));
    world.pass("deploy", 0).await;
}

#[tokio::test]
async fn leases_of_a_batch_downgrade_individually() {
    let world = World::new();
    let (removed, removed_fence) = world.take("removed", 0).await;
    let (kept, kept_fence) = world.take("kept", 0).await;
    fs::remove_file(world.lock_file("removed")).unwrap();
    let leases = [
        held(&shared(&removed), removed_fence),
        held(&shared(&kept), kept_fence),
        held(&shared(&kept), kept_fence),
    ];
    let renewals = world.store.renew(&leases).await;
    assert!(is_gone(&renewals[0]), "{renewals:?}");
    for renewal in &renewals[1..] {
        assert!(matches!(renewal, Renewal::Renewed), "{renewals:?}");
    }
}

/// Writers in other threads never stop trying.
#[tokio::test]
async fn no_writer_gets_in_between() {
    const ROUNDS: u32 = 200;
    let world = World::new();
    let held_on = Arc::new(AtomicBool::new(false));
    let over = Arc::new(AtomicBool::new(false));
    let entered = Arc::new(AtomicU32::new(0));
    let writers: Vec<_> = (0..2)
        .map(|_| {
            let (dir, held_on) = (world.dir.path().to_owned(), held_on.clone());
            let (over, entered) = (over.clone(), entered.clone());
            std::thread::spawn(move || {
                let path = FileStore::open(dir).unwrap().lock_file(&key("deploy"));
                while !over.load(Ordering::SeqCst) {
                    let Ok(file) = fs::File::open(&path) else {
                        continue;
                    };
                    if file.try_lock().is_ok() {
                        assert!(!held_on.load(Ordering::SeqCst), "beside a holder");
                        entered.fetch_add(1, Ordering::SeqCst);
                    }
                }
            })
        })
        .collect();
    let mut renewals = Vec::new();
    for _ in 0..ROUNDS {
        let claim = in_turn(&world.claim("deploy", 0));
        let fence = world::wait_for(&world.store, &claim).await;
        held_on.store(true, Ordering::SeqCst);
        renewals.push(renew(&world.store, &shared(&claim), fence).await);
        held_on.store(false, Ordering::SeqCst);
        world.store.release(&claim).await.unwrap();
        world.store.leave(&claim);
    }
    over.store(true, Ordering::SeqCst);
    for writer in writers {
        writer.join().unwrap();
    }
    let is_renewed = |renewal: &Renewal| matches!(renewal, Renewal::Renewed);
    assert!(renewals.iter().all(is_renewed), "{renewals:?}");
    assert!(entered.load(Ordering::SeqCst) > 0, "no writer ever got in");
}

#[tokio::test(flavor = "multi_thread")]
async fn readers_that_wait_are_woken_at_once() {
    let world = World::new();
    let store = by_words_alone(world.dir.path());
    let (alone, fence_alone) = world.take("deploy", 0).await;
    let readers = [(); 3].map(|()| in_turn(&world.shared("deploy", 0)));
    let waiting: Vec<_> = readers
        .iter()
        .map(|reader| Waiting::start_until_quiet(&store, reader))
        .collect();
    renew(&world.store, &shared(&alone), fence_alone).await;
    for waiting in waiting {
        waiting.granted().await;
    }
    // In another process, too, and the writer is woken by the last of them.
    for reader in &readers {
        store.release(reader).await.unwrap();
    }
    world.store.release(&alone).await.unwrap();
    let mut helper = Helper::start();
    helper.take(world.dir.path(), "deploy", Mode::Exclusive);
    let reader = Waiting::start_until_quiet(&store, &readers[0]);
    let writer = Waiting::start_until_quiet(&store, &in_turn(&world.claim("deploy", 0)));
    assert_eq!(helper.ask(&["downgrade"]), "Renewed");
    reader.granted().await;
    store.release(&readers[0]).await.unwrap();
    helper.kill();
    writer.granted().await;
}

/// The child has the same lock, before and after.
#[tokio::test]
async fn inherited_descriptor_is_downgraded_with_its_lock() {
    let world = World::new();
    let mut helper = Helper::start();
    helper.take(world.dir.path(), "deploy", Mode::Exclusive);
    let child = Child::new(helper.ask(&["hand down"]));
    assert_eq!(helper.ask(&["downgrade"]), "Renewed");
    helper.kill();
    assert!(is_busy(
        world.store.acquire(&world.claim("deploy", 0)).await
    ));
    let reader = world.shared("deploy", 0);
    fence(world.store.acquire(&reader).await);
    world.store.release(&reader).await.unwrap();
    drop(child);
    world::wait_for(&world.store, &world.claim("deploy", 0)).await;
}

/// Dropped after it was polled 0, 1, 2… times: held in one mode or the other until its release.
#[tokio::test]
async fn dropped_downgrade_is_complete_or_absent() {
    let world = World::new();
    for polls in 0.. {
        let (alone, fence_alone) = world.take("deploy", 0).await;
        let lease = [held(&shared(&alone), fence_alone)];
        let mut downgrade = world.store.renew(&lease);
        let mut finished = false;
        for _ in 0..polls {
            let mut context = Context::from_waker(Waker::noop());
            finished = downgrade.as_mut().poll(&mut context).is_ready();
            if finished {
                break;
            }
            tokio::task::yield_now().await;
        }
        drop(downgrade);
        assert!(is_busy(
            world.store.acquire(&world.claim("deploy", 0)).await
        ));
        let again = world.store.renew(&lease).await;
        assert!(matches!(again[..], [Renewal::Renewed]), "{again:?}");
        assert_eq!(
            world.store.release(&lease[0].claim).await.unwrap(),
            Release::Released
        );
        world.pass("deploy", 0).await;
        if finished {
            break;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_release_beside_a_downgrade_leaves_nothing() {
    let world = World::new();
    for round in 0..400 {
        let (alone, fence_alone) = world.take("deploy", 0).await;
        let (store, lease) = (world.store.clone(), held(&shared(&alone), fence_alone));
        let downgrade = tokio::spawn(async move { store.renew(&[lease]).await });
        // A little later each time.
        for _ in 0..round {
            tokio::task::yield_now().await;
        }
        let released = world.store.release(&alone).await.unwrap();
        downgrade.await.unwrap();
        assert_eq!(released, Release::Released);
        world.pass("deploy", 0).await;
    }
}

/// A limit on the size of files, set from outside, makes the write fail.
#[tokio::test]
async fn failed_downgrade_can_be_repeated() {
    let world = World::new();
    let mut helper = Helper::start_under(&["sh", "-c", "trap '' XFSZ; exec \"$0\" \"$@\""]);
    helper.take(world.dir.path(), "deploy", Mode::Exclusive);
    let pid = helper.pid().to_string();
    let limit = |size: &str| {
        let limit = format!("--fsize={size}:unlimited");
        let set = Command::new("prlimit")
            .args(["--pid", &pid, &limit])
            .status();
        assert!(set.unwrap().success());
    };
    limit("0");
    let answer = helper.ask(&["downgrade"]);
    assert!(answer.starts_with("Unknown("), "{answer}");
    assert!(answer.contains("could not share"), "{answer}");
    let reader = world.shared("deploy", 0);
    assert!(is_busy(world.store.acquire(&reader).await));
    limit("unlimited");
    assert_eq!(helper.ask(&["downgrade"]), "Renewed");
    fence(world.store.acquire(&reader).await);
}
