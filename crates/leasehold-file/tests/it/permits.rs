//! Permits: as many clients as there are permits hold the lock together, and no more.

use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Barrier};

use leasehold::clock::{Clock, SystemClock, within};
use leasehold::store::{
    Attempt, Busy, Claim, Counting, Inspection as _, Permits, Release, Renewal, Store,
};
use leasehold::{Client, ErrorKind, Mode};
use leasehold_file::FileStore;

use crate::flock::{Flock, flock_gets};
use crate::helper::Helper;
use crate::waiting::{Child, Waiting, by_words_alone};
use crate::world::{self, TIMEOUT, World, fence, held, in_turn, is_busy, key};

fn permits(count: u32) -> Permits {
    Permits::new(count).unwrap()
}

fn of(count: u32) -> Mode {
    Mode::Permit(permits(count))
}

impl World {
    fn permit(&self, count: u32) -> Claim {
        self.claim("deploy", 0).with_mode(of(count))
    }

    async fn holds(&self, claim: &Claim) {
        fence(self.store.acquire(claim).await);
    }

    async fn is_busy(&self, claim: &Claim) -> bool {
        is_busy(self.store.acquire(claim).await)
    }

    /// Returns the answer to an attempt that is refused.
    async fn refusal(&self, claim: &Claim) -> Busy {
        match self.store.acquire(claim).await.unwrap() {
            Attempt::Busy(busy) => busy,
            granted @ Attempt::Granted(_) => panic!("{granted:?}"),
        }
    }
}

#[tokio::test]
async fn each_permit_holder_has_a_fence() {
    for count in [1, 3, Permits::MAX] {
        let world = World::new();
        assert_eq!(world.store.guarantees().counting, Counting::Permits);
        let other = world.another_store();
        let holders: Vec<_> = (0..count).map(|_| world.permit(count)).collect();
        let mut fences = Vec::new();
        for (number, claim) in holders.iter().enumerate() {
            let store = if number % 2 == 0 {
                &world.store
            } else {
                &other
            };
            fences.push(fence(store.acquire(claim).await));
        }
        assert!(fences.is_sorted_by(|before, after| before < after));
        let refused = world.refusal(&world.permit(count)).await;
        assert_eq!(refused.holder, Some(holders[0].owner));

        // A release makes room for one, and asking again takes no second permit.
        world.store.release(&holders[0]).await.unwrap();
        let next = world.permit(count);
        let granted = fence(world.store.acquire(&next).await);
        assert!(granted > fences[fences.len() - 1]);
        assert_eq!(fence(world.store.acquire(&next).await), granted);
        assert!(world.is_busy(&world.permit(count)).await);
        let renewed = world.store.renew(&[held(&next, granted)]).await;
        assert!(matches!(renewed[..], [Renewal::Renewed]), "{renewed:?}");
        assert_eq!(world.store.release(&next).await.unwrap(), Release::Released);
    }
}

#[tokio::test]
async fn permits_exclude_other_modes() {
    let world = World::new();
    let path = world.lock_file("deploy");
    let (first, second) = (world.permit(3), world.permit(3));
    world.holds(&first).await;
    world.holds(&second).await;
    for claim in [&first, &second] {
        assert!(world.is_busy(&world.claim("deploy", 0)).await);
        assert!(world.is_busy(&world.shared("deploy", 0)).await);
        assert!(!flock_gets(&path, "-x"));
        world.store.release(claim).await.unwrap();
    }
    assert!(flock_gets(&path, "-x"));
    for mode in [Mode::Exclusive, Mode::Shared] {
        let holder = world.claim("deploy", 0).with_mode(mode);
        world.holds(&holder).await;
        for wanted in [world.permit(3), world.permit(1)] {
            let refused = world.refusal(&wanted).await;
            assert_eq!(refused.holder, Some(holder.owner));
        }
        world.store.release(&holder).await.unwrap();
    }
    let flock = Flock::hold(&path, Mode::Exclusive);
    assert!(world.is_busy(&world.permit(3)).await);
    drop(flock);
    world.holds(&world.permit(3)).await;
}

#[tokio::test]
async fn permit_count_error_names_both_counts() {
    let world = World::new();
    let holder = world.permit(3);
    world.holds(&holder).await;
    for count in [1, 2, 4, Permits::MAX] {
        for claim in [world.permit(count), in_turn(&world.permit(count))] {
            let error = world.store.acquire(&claim).await.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::PermitsDiffer);
            assert_eq!(error.key(), Some(&key("deploy")));
            let both = format!("in use with 3 permits, not {count}");
            assert!(error.to_string().contains(&both), "{error}");
        }
    }
    // The refused claims left nothing behind, and the number may change once no permit is held.
    world.store.release(&holder).await.unwrap();
    let changed = [world.permit(2), world.permit(2)];
    world.holds(&changed[0]).await;
    world.holds(&changed[1]).await;
    assert!(world.is_busy(&world.permit(2)).await);
}

#[tokio::test]
async fn permit_holders_are_named_and_listed() {
    let world = World::new();
    let mut helpers = [Helper::start(), Helper::start()];
    for helper in &mut helpers {
        helper.take(world.dir.path(), "deploy", of(3));
    }
    let pids = async || {
        let shown = world.store.holders(&key("deploy")).await.unwrap();
        let of_permits = shown.iter().inspect(|it| assert_eq!(it.mode, of(3)));
        let clients = of_permits.map(|it| it.client.as_ref().unwrap().pid);
        let mut pids: Vec<_> = clients.collect();
        pids.sort_unstable();
        pids
    };
    let mut expected: Vec<_> = helpers.iter().map(Helper::pid).collect();
    expected.sort_unstable();
    assert_eq!(pids().await, expected);
    assert_eq!(world.store.list("", 10).await.unwrap(), [key("deploy")]);
    for helper in &mut helpers {
        assert_eq!(helper.ask(&["release"]), "Released");
    }
    assert!(pids().await.is_empty());
    assert!(world.store.list("", 10).await.unwrap().is_empty());
}

#[tokio::test]
async fn killed_holder_frees_only_its_permit() {
    let world = World::new();
    let mut helpers = [(); 3].map(|()| Helper::start());
    for helper in &mut helpers {
        helper.take(world.dir.path(), "deploy", of(3));
    }
    assert!(world.is_busy(&world.permit(3)).await);
    for helper in &mut helpers[1..] {
        helper.kill();
        world.holds(&world.permit(3)).await;
        assert!(world.is_busy(&world.permit(3)).await);
    }
}

#[tokio::test]
async fn permits_are_free_after_all_holders_die() {
    let world = World::new();
    let mut helpers = [(); 3].map(|()| Helper::start());
    for helper in &mut helpers {
        helper.take(world.dir.path(), "deploy", of(3));
    }
    helpers.iter_mut().for_each(Helper::kill);
    let next = [(); 3].map(|()| world.permit(3));
    for claim in &next {
        world.holds(claim).await;
    }
    assert!(world.is_busy(&world.permit(3)).await);
    for claim in &next {
        world.store.release(claim).await.unwrap();
    }
    world.pass("deploy", 0).await;
}

#[tokio::test]
async fn inherited_descriptor_keeps_the_permit() {
    let world = World::new();
    let path = world.lock_file("deploy");
    let mut helper = Helper::start();
    helper.take(world.dir.path(), "deploy", of(1));
    let child = Child::new(helper.ask(&["hand down"]));
    helper.kill();
    assert!(world.is_busy(&world.permit(1)).await);
    assert!(world.is_busy(&world.shared("deploy", 0)).await);
    assert!(!flock_gets(&path, "-x"));
    let error = world.store.acquire(&world.permit(2)).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::PermitsDiffer);
    drop(child);
    world::wait_for(&world.store, &world.permit(1)).await;
}

/// The kinds of holders depend on the kernel's locks, and not on the content of the file.
#[tokio::test]
async fn truncation_keeps_permits_held() {
    let world = World::new();
    let holders = [world.permit(2), world.permit(2)];
    for claim in &holders {
        world.holds(claim).await;
    }
    fs::write(world.lock_file("deploy"), "").unwrap();
    assert!(world.is_busy(&world.permit(2)).await);
    assert!(world.is_busy(&world.shared("deploy", 0)).await);
    assert!(world.is_busy(&world.claim("deploy", 0)).await);
    let error = world.store.acquire(&world.permit(3)).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::PermitsDiffer);
    world.store.release(&holders[1]).await.unwrap();
    world.holds(&world.permit(2)).await;
    assert!(world.is_busy(&world.permit(2)).await);
}

/// A documented limit: the kernel does not show which kind of shared holder it sees.
#[tokio::test]
async fn shared_flock_coexists_with_permits() {
    let world = World::new();
    let path = world.lock_file("deploy");
    let flock = Flock::hold(&path, Mode::Shared);
    let permit = world.permit(1);
    world.holds(&permit).await;
    assert!(flock_gets(&path, "-s"));
    let shown = world.store.holders(&key("deploy")).await.unwrap();
    let shown: Vec<_> = shown.iter().map(|it| (it.mode, it.owner)).collect();
    assert_eq!(shown, [(of(1), Some(permit.owner)), (Mode::Shared, None)]);
    drop(flock);
    assert_eq!(world.store.holders(&key("deploy")).await.unwrap().len(), 1);
}

/// The other permits are held all the while.
#[tokio::test(flavor = "multi_thread")]
async fn a_freed_permit_wakes_a_waiter() {
    let world = World::new();
    let store = by_words_alone(world.dir.path());
    world.holds(&world.permit(3)).await;
    let waiter = in_turn(&world.permit(3));
    // In this store, in another of this process, and in another process.
    for place in [&store, &world.store] {
        let holders = [world.permit(3), world.permit(3)];
        for claim in &holders {
            fence(place.acquire(claim).await);
        }
        let waiting = Waiting::start_until_quiet(&store, &waiter);
        place.release(&holders[0]).await.unwrap();
        waiting.granted().await;
        store.release(&waiter).await.unwrap();
        place.release(&holders[1]).await.unwrap();
    }
    let mut helpers = [Helper::start(), Helper::start()];
    for helper in &mut helpers {
        helper.take(world.dir.path(), "deploy", of(3));
    }
    let _child = Child::new(helpers[0].ask(&["hand down"]));
    let [mut released, mut killed] = helpers;
    let waiting = Waiting::start_until_quiet(&store, &in_turn(&world.permit(3)));
    assert_eq!(released.ask(&["release"]), "Released");
    waiting.granted().await;
    let waiting = Waiting::start_until_quiet(&store, &in_turn(&world.permit(3)));
    killed.kill();
    waiting.granted().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn holder_end_wakes_waiters_of_other_kinds() {
    let world = World::new();
    let store = by_words_alone(world.dir.path());
    for (before, after) in [
        (of(2), Mode::Exclusive),
        (of(2), Mode::Shared),
        (Mode::Exclusive, of(2)),
        (Mode::Shared, of(2)),
    ] {
        let holder = world.claim("deploy", 0).with_mode(before);
        let waiter = in_turn(&world.claim("deploy", 0).with_mode(after));
        world.holds(&holder).await;
        let waiting = Waiting::start_until_quiet(&store, &waiter);
        world.store.release(&holder).await.unwrap();
        waiting.granted().await;
        store.release(&waiter).await.unwrap();
    }
}

/// Two kinds of holders begin at once on a lock that is free. Neither keeps both out.
#[test]
fn concurrent_claims_fill_all_permits() {
    const ROUNDS: usize = 50;
    let world = World::new();
    for (modes, expected) in [
        (vec![Mode::Shared, of(2)], 1),
        (vec![of(1); 2], 1),
        (vec![of(3); 6], 3),
        (vec![of(2), of(3)], 1),
    ] {
        let barrier = Arc::new(Barrier::new(modes.len()));
        let contenders: Vec<_> = modes
            .iter()
            .map(|mode| {
                let (dir, barrier, mode) = (world.dir.path().to_owned(), barrier.clone(), *mode);
                std::thread::spawn(move || tries_at_once(&dir, mode, ROUNDS, &barrier))
            })
            .collect();
        let mut won = vec![0; ROUNDS];
        for contender in contenders {
            for (round, granted) in contender.join().unwrap().into_iter().enumerate() {
                won[round] += usize::from(granted);
            }
        }
        assert_eq!(won, [expected; ROUNDS], "{modes:?}");
    }
}

/// Returns in which rounds it was granted; no holder releases before all have tried.
fn tries_at_once(dir: &Path, mode: Mode, rounds: usize, barrier: &Barrier) -> Vec<bool> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let store = FileStore::open(dir).unwrap();
    let client = world::client();
    let mut granted = Vec::new();
    for _ in 0..rounds {
        let claim = world::claim(&client, "deploy", 0).with_mode(mode);
        barrier.wait();
        granted.push(match runtime.block_on(store.acquire(&claim)) {
            Ok(Attempt::Granted(_)) => true,
            Ok(Attempt::Busy(_)) => false,
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::PermitsDiffer, "{error}");
                false
            }
        });
        barrier.wait();
        runtime.block_on(store.release(&claim)).unwrap();
    }
    granted
}

/// Over several processes; in each turn a holder waits inside until all permits are in use.
#[test]
fn permit_holders_never_exceed_the_count() {
    const PROCESSES: u32 = 5;
    const TURNS: u32 = 20;
    let world = World::new();
    let tally = world.dir.path().join("tally");
    fs::write(&tally, "0 0 0").unwrap();
    let turns = TURNS.to_string();
    let (dir, file) = (world.dir.path().to_str().unwrap(), tally.to_str().unwrap());
    let order = ["go in and out", dir, "deploy", "3", file, &turns];
    let mut fences = Vec::new();
    for drawn in Helper::ask_several(PROCESSES, &order) {
        fences.extend(drawn.split(' ').map(|it| it.parse::<u64>().unwrap()));
    }
    fences.sort_unstable();
    assert_eq!(
        fences,
        (1..=u64::from(PROCESSES * TURNS)).collect::<Vec<_>>()
    );
    let turns = PROCESSES * TURNS;
    assert_eq!(fs::read_to_string(&tally).unwrap(), format!("0 3 {turns}"));
}

/// Contenders that only look for room never keep out another one without notifying it afterwards.
#[tokio::test(flavor = "multi_thread")]
async fn all_modes_succeed_by_notifications_alone() {
    const TURNS: u32 = 10;
    let world = World::new();
    let stores: Vec<_> = (0..4).map(|_| by_words_alone(world.dir.path())).collect();
    let inside = Arc::new(AtomicU32::new(0));
    let modes = [of(2), of(2), Mode::Shared, Mode::Exclusive];
    let work: Vec<_> = stores
        .iter()
        .flat_map(|store| modes.map(|mode| Client::new(store.clone()).lock("deploy").mode(mode)))
        .zip(modes.into_iter().cycle())
        .map(|(lock, mode)| {
            let inside = inside.clone();
            tokio::spawn(async move {
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
            })
        })
        .collect();
    let end = SystemClock.now() + 2 * TIMEOUT;
    for work in work {
        let done = within(&SystemClock, end, work).await;
        done.expect("nobody is left waiting").unwrap();
    }
}
