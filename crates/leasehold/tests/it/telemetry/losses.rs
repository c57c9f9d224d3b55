//! Every reason for which a guard is lost.

use std::time::Duration;

use leasehold::look::BreakOptions;
use leasehold::telemetry::{HELD, HOLD, RENEWAL};
use leasehold::{Key, LostReason};
use leasehold_testkit::telemetry::TestRecorder;
use leasehold_testkit::{Fault, StoreCall};

use super::metered_fixture::MeteredFixture;
use crate::fixture::{MARGIN, TTL};

fn assert_reported(metered: &MeteredFixture, reason: &str) {
    metered.assert_lost_only(reason);
    assert_eq!(metered.counts(&[HELD, HOLD]), ["hold_seconds lost 1"]);
}

pub(super) async fn unreachable() -> TestRecorder {
    let metered = MeteredFixture::new();
    let guard = metered.fixture.client.lock("x").acquire().await.unwrap();
    metered.fixture.store.set(Fault::Unreachable);
    assert_eq!(guard.lost().await, LostReason::Unreachable);
    assert_reported(&metered, "unreachable");
    assert_eq!(metered.spans(&HOLD, "lost"), [TTL - MARGIN]);
    // The client reports the loss once, even if others ask and the guard is dropped.
    assert!(!guard.is_valid());
    drop(guard);
    metered.fixture.settle().await;
    assert_reported(&metered, "unreachable");
    metered.recorder
}

pub(super) async fn expired() -> TestRecorder {
    let metered = MeteredFixture::new();
    let guard = metered.fixture.client.lock("x").acquire().await.unwrap();
    metered
        .fixture
        .store
        .set(Fault::Slow(Duration::from_secs(1)));
    while metered
        .fixture
        .count(|call| matches!(call, StoreCall::Renew(_)))
        == 0
    {
        metered.fixture.pass(Duration::from_millis(100)).await;
    }
    // While a renewal is under way.
    metered.fixture.env.clock.was_paused(TTL);
    assert!(!guard.is_valid());
    assert_reported(&metered, "expired");
    metered.recorder
}

pub(super) async fn paused() -> TestRecorder {
    let metered = MeteredFixture::new();
    let guard = metered.fixture.client.lock("x").acquire().await.unwrap();
    metered.fixture.env.clock.was_paused(TTL);
    assert!(!guard.is_valid());
    assert_reported(&metered, "paused");
    assert_eq!(metered.spans(&HOLD, "lost"), [TTL - MARGIN]);
    metered.recorder
}

fn forget(metered: &MeteredFixture) {
    metered
        .fixture
        .memory
        .forget(&Key::new("x").expect("a name"));
}

pub(super) async fn taken() -> TestRecorder {
    let metered = MeteredFixture::new();
    let guard = metered.fixture.client.lock("x").acquire().await.unwrap();
    forget(&metered);
    let thief = metered.fixture.other_client();
    let _stolen = thief.lock("x").acquire().await.unwrap();
    assert_eq!(guard.lost().await, LostReason::Taken);
    metered.assert_lost_only("taken");
    assert_eq!(metered.spans(&RENEWAL, "lost").len(), 1);
    metered.recorder
}

pub(super) async fn gone() -> TestRecorder {
    let metered = MeteredFixture::new();
    let guard = metered.fixture.client.lock("x").acquire().await.unwrap();
    forget(&metered);
    assert_eq!(guard.lost().await, LostReason::Gone);
    assert_reported(&metered, "gone");
    metered.recorder
}

pub(super) async fn broken() -> TestRecorder {
    let metered = MeteredFixture::new();
    let operator = metered.fixture.other_client();
    let guard = metered.fixture.client.lock("x").acquire().await.unwrap();
    metered.fixture.settle().await;
    let breaking = operator.break_lock("x", guard.fence(), BreakOptions::at_once());
    breaking.await.unwrap();
    assert_eq!(guard.lost().await, LostReason::Broken);
    assert_reported(&metered, "broken");
    metered.recorder
}

pub(super) async fn max_hold() -> TestRecorder {
    let metered = MeteredFixture::new();
    let longest = Duration::from_secs(5);
    let lock = metered.fixture.client.lock("x").max_hold(longest);
    let guard = lock.acquire().await.unwrap();
    assert_eq!(guard.lost().await, LostReason::MaxHold);
    assert_reported(&metered, "max_hold");
    assert_eq!(metered.spans(&HOLD, "lost"), [longest]);
    metered.recorder
}

pub(super) async fn given_up() -> TestRecorder {
    let metered = MeteredFixture::new();
    let guard = metered.fixture.client.lock("x").acquire().await.unwrap();
    metered.fixture.pass(Duration::from_secs(2)).await;
    guard.give_up();
    assert_reported(&metered, "given_up");
    assert_eq!(metered.spans(&HOLD, "lost"), [Duration::from_secs(2)]);
    metered.recorder
}

pub(super) async fn closed() -> TestRecorder {
    let metered = MeteredFixture::new();
    let _guard = metered.fixture.client.lock("x").acquire().await.unwrap();
    let limit = Duration::from_secs(5);
    metered.fixture.client.clone().close(limit).await.unwrap();
    assert_reported(&metered, "closed");
    metered.recorder
}

macro_rules! each_is_told {
    ($($name:ident => $fixture:ident,)+) => {$(
        #[tokio::test(start_paused = true)]
        async fn $name() {
            $fixture().await;
        }
    )+};
}

each_is_told! {
    a_loss_by_silence_is_told_at_its_deadline_and_once => unreachable,
    a_loss_while_a_renewal_is_under_way_is_told => expired,
    a_loss_by_standing_still_is_told_when_it_is_noticed => paused,
    a_loss_to_somebody_else_is_told => taken,
    a_loss_of_the_lease_at_the_store_is_told => gone,
    a_loss_to_an_operator_is_told => broken,
    a_loss_by_the_longest_hold_is_told => max_hold,
    a_guard_that_is_given_up_is_told => given_up,
    guard_of_a_closed_client_is_told => closed,
}
