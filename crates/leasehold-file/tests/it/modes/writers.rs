//! Writers that wait, and requests that yield to them.

use leasehold::store::{LockRequest, RenewReply};
use leasehold::{ErrorKind, Mode};

use crate::helper::Helper;
use crate::store_fixture::{
    StoppedWait, StoreFixture, busy, granted, permit, queued, released, wait_for,
};
use crate::waiting::{Waiting, by_notifications_alone};

impl StoreFixture {
    /// A request that holds the lock in `mode`, which shares it.
    async fn shared_by(&self, mode: Mode) -> LockRequest {
        let holder = self.wants(mode);
        self.granted(&holder).await;
        holder
    }

    /// A writer of this process that was refused, and has not tried again.
    async fn writer_that_waits(&self) -> StoppedWait {
        StoppedWait::begin(&self.store, &self.writer()).await
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
        let fixture = StoreFixture::new();
        let other = fixture.another_store();
        let holder = fixture.shared_by(mode).await;
        let writer = fixture.writer_that_waits().await;
        for store in [&fixture.store, &other] {
            busy(store, &fixture.wants(mode)).await;
            let waiter = StoppedWait::begin(store, &fixture.wants(mode)).await;
            waiter.leave().await;
            // A request that goes ahead of waiters does so here too.
            let ahead = fixture.wants(mode).barging(true);
            granted(store, &ahead).await;
            released(store, &ahead).await;
        }
        fixture.released(&holder).await;
        fixture.busy(&fixture.wants(mode)).await;
        let (writer, _) = writer.go_on().await;
        fixture.released(&writer).await;
        fixture.shared_by(mode).await;
    }
}

#[tokio::test]
async fn non_waiting_writer_blocks_no_reader() {
    let fixture = StoreFixture::new();
    fixture.shared_by(Mode::Shared).await;
    for barges in [false, true] {
        let writer = fixture.wants(Mode::Exclusive).barging(barges);
        fixture.busy(&writer).await;
        fixture.shared_by(Mode::Shared).await;
    }
    let writer = fixture.writer_that_waits().await;
    writer.leave().await;
    fixture.shared_by(Mode::Shared).await;
}

/// The first one holds the lock all the while; only the writer kept the second one out.
#[tokio::test(flavor = "multi_thread")]
async fn end_of_waiting_writer_wakes_yielding_readers() {
    for mode in [Mode::Shared, permit(2)] {
        let fixture = StoreFixture::new();
        let store = by_notifications_alone(fixture.dir.path());
        fixture.shared_by(mode).await;
        let ends: [&dyn Fn(&mut Helper); 2] = [&Helper::kill, &|writer| {
            assert_eq!(writer.ask(&["leave"]), "left");
        }];
        for ends in ends {
            let mut writer = fixture.waiting_writer();
            let waiter = queued(&fixture.wants(mode));
            let waiting = Waiting::start_until_quiet(&store, &waiter);
            ends(&mut writer);
            waiting.granted().await;
            released(&store, &waiter).await;
        }
        let writer = fixture.writer_that_waits().await;
        let waiting = Waiting::start_until_quiet(&store, &queued(&fixture.wants(mode)));
        writer.leave().await;
        waiting.granted().await;
    }
}

/// As if its process were stopped.
#[tokio::test]
async fn stopped_writer_is_passed_over() {
    for mode in [Mode::Shared, permit(2)] {
        let fixture = StoreFixture::new();
        let holder = fixture.shared_by(mode).await;
        let _writer = fixture.writer_that_waits().await;
        fixture.released(&holder).await;
        fixture.busy(&fixture.wants(mode)).await;
        wait_for(&fixture.store, &fixture.wants(mode)).await;
        // The next request yields as before.
        fixture.busy(&fixture.wants(mode)).await;
    }
}

#[tokio::test]
async fn waiting_writer_that_shares_lets_others_in() {
    let fixture = StoreFixture::new();
    let holder = fixture.shared_by(Mode::Shared).await;
    let writer = fixture.writer_that_waits().await;
    fixture.released(&holder).await;
    let (writer, fence) = writer.go_on().await;
    let shared = writer.clone().with_mode(Mode::Shared);
    let renewed = fixture.renewal(&shared, fence).await;
    assert!(matches!(renewed, RenewReply::Renewed(_)), "{renewed:?}");
    fixture.shared_by(Mode::Shared).await;
    fixture.shared_by(Mode::Shared).await;
}

#[tokio::test]
async fn a_writer_that_waits_is_no_holder() {
    let fixture = StoreFixture::new();
    let holder = fixture.shared_by(permit(2)).await;
    let _writer = fixture.waiting_writer();
    let error = fixture.refused(&fixture.wants(permit(3))).await;
    assert_eq!(error.kind(), ErrorKind::PermitsDiffer, "{error}");
    fixture.released(&holder).await;
    assert!(fixture.held_locks().await.is_empty());
    assert!(fixture.holders().await.is_empty());
}

/// It waited for one writer, and so not for the next.
#[tokio::test]
async fn reader_yields_to_one_writer_only() {
    for mode in [Mode::Shared, permit(2)] {
        for comes_first in [true, false] {
            let fixture = StoreFixture::new();
            let (holder, _) = fixture.take("deploy", 0).await;
            let waits = async || StoppedWait::begin(&fixture.store, &fixture.wants(mode)).await;
            let early = match comes_first {
                true => Some(waits().await),
                false => None,
            };
            let writer = fixture.writer_that_waits().await;
            let waiter = match early {
                Some(waiter) => waiter,
                None => waits().await,
            };
            fixture.released(&holder).await;
            fixture.busy(&fixture.wants(mode)).await;
            let (reader, _) = waiter.go_on().await;
            fixture.busy(&fixture.writer()).await;
            fixture.released(&reader).await;
            writer.go_on().await;
        }
    }
}
