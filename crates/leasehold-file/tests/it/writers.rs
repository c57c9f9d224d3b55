//! Writers that wait, and claims that yield to them.

use leasehold::store::{Claim, Inspection as _, Renewal, Wait};
use leasehold::{ErrorKind, Mode};

use crate::helper::Helper;
use crate::waiting::{Waiting, by_notifications_alone};
use crate::world::{World, busy, granted, leave, permit, queued, released, wait_for};

impl World {
    /// A claim that holds the lock in `mode`, which shares it.
    async fn shared_by(&self, mode: Mode) -> Claim {
        let holder = self.wants(mode);
        self.granted(&holder).await;
        holder
    }

    /// A writer of this process that was refused, and has not tried again.
    async fn writer_that_waits(&self) -> Claim {
        let writer = queued(&self.writer());
        self.busy(&writer).await;
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
    for mode in [Mode::Shared, permit(2)] {
        let world = World::new();
        let other = world.another_store();
        let holder = world.shared_by(mode).await;
        let writer = world.writer_that_waits().await;
        for store in [&world.store, &other] {
            busy(store, &world.wants(mode)).await;
            let waiter = queued(&world.wants(mode));
            busy(store, &waiter).await;
            leave(store, &waiter).await;
            // A claim that goes ahead of waiters does so here too.
            let ahead = world.wants(mode).with_wait(Wait::Barging);
            granted(store, &ahead).await;
            released(store, &ahead).await;
        }
        // Asking again is no second claim.
        world.granted(&holder).await;
        world.released(&holder).await;
        world.busy(&world.wants(mode)).await;
        world.granted(&writer).await;
        world.released(&writer).await;
        world.shared_by(mode).await;
    }
}

#[tokio::test]
async fn non_waiting_writer_blocks_no_reader() {
    let world = World::new();
    world.shared_by(Mode::Shared).await;
    for wait in [Wait::None, Wait::Barging] {
        let writer = world.wants(Mode::Exclusive).with_wait(wait);
        world.busy(&writer).await;
        world.shared_by(Mode::Shared).await;
    }
    let writer = world.writer_that_waits().await;
    leave(&world.store, &writer).await;
    world.shared_by(Mode::Shared).await;
}

/// The first one holds the lock all the while; only the writer kept the second one out.
#[tokio::test(flavor = "multi_thread")]
async fn end_of_waiting_writer_wakes_yielding_readers() {
    for mode in [Mode::Shared, permit(2)] {
        let world = World::new();
        let store = by_notifications_alone(world.dir.path());
        world.shared_by(mode).await;
        let ends: [&dyn Fn(&mut Helper); 2] = [&Helper::kill, &|writer| {
            assert_eq!(writer.ask(&["leave"]), "left");
        }];
        for ends in ends {
            let mut writer = world.waiting_writer();
            let waiter = queued(&world.wants(mode));
            let waiting = Waiting::start_until_quiet(&store, &waiter);
            ends(&mut writer);
            waiting.granted().await;
            released(&store, &waiter).await;
        }
        let writer = world.writer_that_waits().await;
        let waiting = Waiting::start_until_quiet(&store, &queued(&world.wants(mode)));
        leave(&world.store, &writer).await;
        waiting.granted().await;
    }
}

/// As if its process were stopped.
#[tokio::test]
async fn stopped_writer_is_passed_over() {
    for mode in [Mode::Shared, permit(2)] {
        let world = World::new();
        let holder = world.shared_by(mode).await;
        world.writer_that_waits().await;
        world.released(&holder).await;
        world.busy(&world.wants(mode)).await;
        wait_for(&world.store, &queued(&world.wants(mode))).await;
        // The next claim yields as before.
        world.busy(&world.wants(mode)).await;
    }
}

#[tokio::test]
async fn waiting_writer_that_shares_lets_others_in() {
    let world = World::new();
    let holder = world.shared_by(Mode::Shared).await;
    let writer = world.writer_that_waits().await;
    world.released(&holder).await;
    let fence = world.granted(&writer).await;
    let shared = writer.clone().with_mode(Mode::Shared);
    let renewed = world.renewal(&shared, fence).await;
    assert!(matches!(renewed, Renewal::Renewed), "{renewed:?}");
    world.shared_by(Mode::Shared).await;
    world.shared_by(Mode::Shared).await;
}

#[tokio::test]
async fn a_writer_that_waits_is_no_holder() {
    let world = World::new();
    let holder = world.shared_by(permit(2)).await;
    let _writer = world.waiting_writer();
    let error = world.refused(&world.wants(permit(3))).await;
    assert_eq!(error.kind(), ErrorKind::PermitsDiffer, "{error}");
    world.released(&holder).await;
    assert!(world.store.list("", 10).await.unwrap().is_empty());
    assert!(world.holders().await.is_empty());
}

/// It waited for one writer, and so not for the next.
#[tokio::test]
async fn reader_yields_to_one_writer_only() {
    for mode in [Mode::Shared, permit(2)] {
        for comes_first in [true, false] {
            let world = World::new();
            let (holder, _) = world.take("deploy", 0).await;
            let waiter = queued(&world.wants(mode));
            if comes_first {
                world.busy(&waiter).await;
            }
            let writer = world.writer_that_waits().await;
            if !comes_first {
                world.busy(&waiter).await;
            }
            world.released(&holder).await;
            world.busy(&world.wants(mode)).await;
            world.granted(&waiter).await;
            leave(&world.store, &waiter).await;
            world.busy(&writer).await;
            world.released(&waiter).await;
            world.granted(&writer).await;
        }
    }
}
