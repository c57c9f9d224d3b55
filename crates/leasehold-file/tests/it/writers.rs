//! Writers that wait, and claims that yield to them.

use leasehold::store::{Claim, Inspection as _, Permits, Renewal, Store, Wait};
use leasehold::{ErrorKind, Mode};

use crate::helper::Helper;
use crate::waiting::{Waiting, by_words_alone};
use crate::world::{World, fence, held, in_turn, is_busy, key, leave, wait_for};

fn of(permits: u32) -> Mode {
    Mode::Permit(Permits::new(permits).unwrap())
}

impl World {
    fn wants(&self, mode: Mode) -> Claim {
        self.claim("deploy", 0).with_mode(mode)
    }

    /// A claim that holds the lock in `mode`, which shares it.
    async fn shared_by(&self, mode: Mode) -> Claim {
        let holder = self.wants(mode);
        fence(self.store.acquire(&holder).await);
        holder
    }

    /// A writer of this process that was refused, and has not tried again.
    async fn writer_that_waits(&self) -> Claim {
        let writer = in_turn(&self.wants(Mode::Exclusive));
        assert!(is_busy(self.store.acquire(&writer).await));
        writer
    }

    /// A writer of another process that waits for the lock.
    fn waiting_writer(&self) -> Helper {
        let mut helper = Helper::start();
        let order = ["wait", self.dir.path().to_str().unwrap(), "deploy"];
        assert_eq!(helper.ask(&order), "waiting");
        helper
    }
}

#[tokio::test]
async fn sharing_claims_yield_to_a_waiting_writer() {
    for mode in [Mode::Shared, of(2)] {
        let world = World::new();
        let other = world.another_store();
        let holder = world.shared_by(mode).await;
        let writer = world.writer_that_waits().await;
        for store in [&world.store, &other] {
            assert!(is_busy(store.acquire(&world.wants(mode)).await));
            let waiter = in_turn(&world.wants(mode));
            assert!(is_busy(store.acquire(&waiter).await));
            leave(store, &waiter).await;
            // A claim that goes ahead of waiters does so here too.
            let ahead = world.wants(mode).with_wait(Wait::Barging);
            fence(store.acquire(&ahead).await);
            store.release(&ahead).await.unwrap();
        }
        // Asking again is no second claim.
        fence(world.store.acquire(&holder).await);
        world.store.release(&holder).await.unwrap();
        assert!(is_busy(world.store.acquire(&world.wants(mode)).await));
        fence(world.store.acquire(&writer).await);
        world.store.release(&writer).await.unwrap();
        world.shared_by(mode).await;
    }
}

#[tokio::test]
async fn non_waiting_writer_blocks_no_reader() {
    let world = World::new();
    world.shared_by(Mode::Shared).await;
    for wait in [Wait::None, Wait::Barging] {
        let writer = world.wants(Mode::Exclusive).with_wait(wait);
        assert!(is_busy(world.store.acquire(&writer).await));
        world.shared_by(Mode::Shared).await;
    }
    let writer = world.writer_that_waits().await;
    leave(&world.store, &writer).await;
    world.shared_by(Mode::Shared).await;
}

/// The first one holds the lock all the while; only the writer kept the second one out.
#[tokio::test(flavor = "multi_thread")]
async fn end_of_waiting_writer_wakes_yielding_readers() {
    for mode in [Mode::Shared, of(2)] {
        let world = World::new();
        let store = by_words_alone(world.dir.path());
        world.shared_by(mode).await;
        let ends: [&dyn Fn(&mut Helper); 2] = [&Helper::kill, &|writer| {
            assert_eq!(writer.ask(&["leave"]), "left");
        }];
        for ends in ends {
            let mut writer = world.waiting_writer();
            let waiter = in_turn(&world.wants(mode));
            let waiting = Waiting::start_until_quiet(&store, &waiter);
            ends(&mut writer);
            waiting.granted().await;
            store.release(&waiter).await.unwrap();
        }
        let writer = world.writer_that_waits().await;
        let waiting = Waiting::start_until_quiet(&store, &in_turn(&world.wants(mode)));
        leave(&world.store, &writer).await;
        waiting.granted().await;
    }
}

/// As if its process were stopped.
#[tokio::test]
async fn stopped_writer_is_passed_over() {
    for mode in [Mode::Shared, of(2)] {
        let world = World::new();
        let holder = world.shared_by(mode).await;
        world.writer_that_waits().await;
        world.store.release(&holder).await.unwrap();
        assert!(is_busy(world.store.acquire(&world.wants(mode)).await));
        wait_for(&world.store, &in_turn(&world.wants(mode))).await;
        // The next claim yields as before.
        assert!(is_busy(world.store.acquire(&world.wants(mode)).await));
    }
}

#[tokio::test]
async fn waiting_writer_that_shares_lets_others_in() {
    let world = World::new();
    let holder = world.shared_by(Mode::Shared).await;
    let writer = world.writer_that_waits().await;
    world.store.release(&holder).await.unwrap();
    let granted = fence(world.store.acquire(&writer).await);
    let shared = held(&writer.clone().with_mode(Mode::Shared), granted);
    let renewed = world.store.renew(&[shared]).await;
    assert!(matches!(renewed[..], [Renewal::Renewed]), "{renewed:?}");
    world.shared_by(Mode::Shared).await;
    world.shared_by(Mode::Shared).await;
}

#[tokio::test]
async fn a_writer_that_waits_is_no_holder() {
    let world = World::new();
    let holder = world.shared_by(of(2)).await;
    let _writer = world.waiting_writer();
    let other = world.wants(of(3));
    let error = world.store.acquire(&other).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::PermitsDiffer, "{error}");
    world.store.release(&holder).await.unwrap();
    assert!(world.store.list("", 10).await.unwrap().is_empty());
    assert!(
        world
            .store
            .holders(&key("deploy"))
            .await
            .unwrap()
            .is_empty()
    );
}

/// It waited for one writer, and so not for the next.
#[tokio::test]
async fn reader_yields_to_one_writer_only() {
    for mode in [Mode::Shared, of(2)] {
        for comes_first in [true, false] {
            let world = World::new();
            let (holder, _) = world.take("deploy", 0).await;
            let waiter = in_turn(&world.wants(mode));
            let writer = if comes_first {
                assert!(is_busy(world.store.acquire(&waiter).await));
                world.writer_that_waits().await
            } else {
                let writer = world.writer_that_waits().await;
                assert!(is_busy(world.store.acquire(&waiter).await));
                writer
            };
            world.store.release(&holder).await.unwrap();
            assert!(is_busy(world.store.acquire(&world.wants(mode)).await));
            fence(world.store.acquire(&waiter).await);
            leave(&world.store, &waiter).await;
            assert!(is_busy(world.store.acquire(&writer).await));
            world.store.release(&waiter).await.unwrap();
            fence(world.store.acquire(&writer).await);
        }
    }
}
