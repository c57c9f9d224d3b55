//! From exclusive to shared, without a moment in which a writer could get in.

use std::fs;
use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::task::{Context, Waker};

use leasehold::store::{LockRequest, RenewReply};
use leasehold::{LostReason, Mode};

use crate::flock::flock_gets;
use crate::helper::Helper;
use crate::store_fixture::{StoreFixture, held, permit, queued, released, wait_for};
use crate::waiting::{Waiting, by_notifications_alone};

fn shared(request: &LockRequest) -> LockRequest {
    request.clone().with_mode(Mode::Shared)
}

fn is_gone(renewal: &RenewReply) -> bool {
    matches!(renewal, RenewReply::Lost(LostReason::Gone))
}

#[tokio::test]
async fn downgraded_holder_admits_readers_only() {
    let fixture = StoreFixture::new();
    let path = fixture.lock_file("deploy");
    let (alone, fence) = fixture.take("deploy", 0).await;
    let together = shared(&alone);
    for _ in 0..2 {
        let renewal = fixture.renewal(&together, fence).await;
        assert!(matches!(renewal, RenewReply::Renewed(_)), "{renewal:?}");
    }
    let shown = fixture.holders().await;
    let shown: Vec<_> = shown
        .iter()
        .map(|it| (it.mode, it.owner, it.fence))
        .collect();
    assert_eq!(shown, [(Mode::Shared, Some(alone.owner), Some(fence))]);
    assert!(!flock_gets(&path, "-x") && flock_gets(&path, "-s"));
    fixture.busy(&fixture.wants(permit(3))).await;
    // The lock is no longer held exclusively, but an exclusive release frees it.
    assert!(is_gone(&fixture.renewal(&alone, fence).await));
    fixture.released(&alone).await;
    fixture.pass("deploy", 0).await;
}

#[tokio::test]
async fn nothing_else_changes_its_mode() {
    let fixture = StoreFixture::new();
    let modes = [Mode::Exclusive, Mode::Shared, permit(3)];
    for held_in in modes {
        for renewed_in in modes {
            let request = fixture.wants(held_in);
            let fence = fixture.granted(&request).await;
            let renewal = fixture
                .renewal(&request.clone().with_mode(renewed_in), fence)
                .await;
            let may = held_in == renewed_in || (held_in, renewed_in) == (modes[0], modes[1]);
            let is_renewed = matches!(renewal, RenewReply::Renewed(_));
            assert_eq!(is_renewed, may, "{held_in} {renewed_in}");
            assert_eq!(is_gone(&renewal), !may, "{held_in} {renewed_in}");
            fixture.released(&request).await;
        }
    }
}

#[tokio::test]
async fn leases_of_a_batch_downgrade_individually() {
    let fixture = StoreFixture::new();
    let (removed, removed_fence) = fixture.take("removed", 0).await;
    let (kept, kept_fence) = fixture.take("kept", 0).await;
    fs::remove_file(fixture.lock_file("removed")).unwrap();
    let leases = [
        held(&shared(&removed), removed_fence),
        held(&shared(&kept), kept_fence),
        held(&shared(&kept), kept_fence),
    ];
    let renewals = fixture.store.renew(&leases).await;
    assert!(is_gone(&renewals[0]), "{renewals:?}");
    assert!(
        matches!(
            renewals[1..],
            [RenewReply::Renewed(_), RenewReply::Renewed(_)]
        ),
        "{renewals:?}"
    );
}

/// Writers in other threads never stop trying.
#[test]
fn no_writer_gets_in_between() {
    let fixture = StoreFixture::new();
    let path = fixture.lock_file("deploy");
    let (is_held, over, entered) = (
        AtomicBool::new(false),
        AtomicBool::new(false),
        AtomicU32::new(0),
    );
    let tries = || {
        while !over.load(Ordering::SeqCst) {
            let Ok(file) = fs::File::open(&path) else {
                continue;
            };
            if file.try_lock().is_ok() {
                assert!(!is_held.load(Ordering::SeqCst), "beside a holder");
                entered.fetch_add(1, Ordering::SeqCst);
            }
        }
    };
    let downgrades = async {
        let mut renewals = Vec::new();
        for _ in 0..200 {
            let request = fixture.writer();
            let fence = wait_for(&fixture.store, &request).await;
            is_held.store(true, Ordering::SeqCst);
            renewals.push(fixture.renewal(&shared(&request), fence).await);
            is_held.store(false, Ordering::SeqCst);
            fixture.released(&request).await;
        }
        renewals
    };
    let renewals = std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(tries);
        }
        let renewals = crate::store_fixture::block_on(downgrades);
        over.store(true, Ordering::SeqCst);
        renewals
    });
    let is_renewed = |renewal: &RenewReply| matches!(renewal, RenewReply::Renewed(_));
    assert!(renewals.iter().all(is_renewed), "{renewals:?}");
    assert!(entered.into_inner() > 0, "no writer ever got in");
}

#[tokio::test(flavor = "multi_thread")]
async fn downgrade_wakes_waiting_readers_at_once() {
    let fixture = StoreFixture::new();
    let store = by_notifications_alone(fixture.dir.path());
    let (alone, fence) = fixture.take("deploy", 0).await;
    let readers = [(); 3].map(|()| queued(&fixture.reader()));
    let first = Waiting::start_until_quiet(&store, &readers[0]);
    let [_, second, third] = &readers;
    let waiting = [second, third].map(|reader| Waiting::join(&store, reader));
    fixture.renewal(&shared(&alone), fence).await;
    for waiting in [first].into_iter().chain(waiting) {
        waiting.granted().await;
    }
    // In another process, too, and the writer is woken by the last of them.
    for reader in &readers {
        released(&store, reader).await;
    }
    fixture.released(&alone).await;
    let mut helper = Helper::holding(&fixture, Mode::Exclusive);
    let reader = Waiting::start_until_quiet(&store, &readers[0]);
    let writer = Waiting::start_until_quiet(&store, &queued(&fixture.writer()));
    assert_renewed(&helper.ask(&["downgrade"]));
    reader.granted().await;
    released(&store, &readers[0]).await;
    helper.kill();
    writer.granted().await;
}

/// Asserts that another process renewed its lock, by its answer.
fn assert_renewed(answer: &str) {
    assert!(answer.starts_with("Renewed("), "{answer}");
}

/// The child has the same lock, before and after.
#[tokio::test]
async fn inherited_descriptor_is_downgraded_with_its_lock() {
    let fixture = StoreFixture::new();
    let mut helper = Helper::holding(&fixture, Mode::Exclusive);
    let child = helper.hand_down();
    assert_renewed(&helper.ask(&["downgrade"]));
    helper.kill();
    fixture.busy(&fixture.writer()).await;
    let reader = fixture.reader();
    fixture.granted(&reader).await;
    fixture.released(&reader).await;
    drop(child);
    wait_for(&fixture.store, &fixture.writer()).await;
}

/// Dropped after it was polled 0, 1, 2… times: held in one mode or the other until its release.
#[tokio::test]
async fn dropped_downgrade_is_complete_or_absent() {
    let fixture = StoreFixture::new();
    let mut finished = false;
    for polls in 0.. {
        let (alone, fence) = fixture.take("deploy", 0).await;
        let lease = [held(&shared(&alone), fence)];
        let mut downgrade = fixture.store.renew(&lease);
        for _ in 0..polls {
            let mut context = Context::from_waker(Waker::noop());
            finished = downgrade.as_mut().poll(&mut context).is_ready();
            if finished {
                break;
            }
            tokio::task::yield_now().await;
        }
        drop(downgrade);
        fixture.busy(&fixture.writer()).await;
        let again = fixture.store.renew(&lease).await;
        assert!(matches!(again[..], [RenewReply::Renewed(_)]), "{again:?}");
        fixture.released(&lease[0].request).await;
        fixture.pass("deploy", 0).await;
        if finished {
            break;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_release_beside_a_downgrade_leaves_nothing() {
    let fixture = StoreFixture::new();
    for round in 0..400 {
        let (alone, fence) = fixture.take("deploy", 0).await;
        let (store, lease) = (fixture.store.clone(), held(&shared(&alone), fence));
        let downgrade = tokio::spawn(async move { store.renew(&[lease]).await });
        // A little later each time.
        for _ in 0..round {
            tokio::task::yield_now().await;
        }
        fixture.released(&alone).await;
        downgrade.await.unwrap();
        fixture.pass("deploy", 0).await;
    }
}

/// A limit on the size of files, set from outside, makes the write fail.
#[tokio::test]
async fn failed_downgrade_can_be_repeated() {
    let fixture = StoreFixture::new();
    let mut helper = Helper::start_under(&["sh", "-c", "trap '' XFSZ; exec \"$0\" \"$@\""]);
    helper.take(&fixture, Mode::Exclusive);
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
    fixture.busy(&fixture.reader()).await;
    limit("unlimited");
    assert_renewed(&helper.ask(&["downgrade"]));
    fixture.granted(&fixture.reader()).await;
}
