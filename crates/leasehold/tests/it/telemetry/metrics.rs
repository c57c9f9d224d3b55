//! Each fixture returns its recorder, so that all of them together can be held against the manual.

use std::time::Duration;

use futures_util::FutureExt as _;
use leasehold::store::background;
use leasehold::telemetry::{
    ACQUIRE_WAIT, ATTEMPTS, CONTENDED, HELD, HOLD, HandOvers, MEMBERS, MemberGauges, RELEASES,
    RENEWAL,
};
use leasehold::{ErrorKind, Key, ReleaseOutcome};
use leasehold_testkit::telemetry::{TestRecorder, TraceRecorder};
use leasehold_testkit::{Fault, StoreCall};

use super::metered_fixture::MeteredFixture;
use crate::fixture::{Fixture, MARGIN, TTL};

const SECOND: Duration = Duration::from_secs(1);

/// As close as virtual time, which goes in milliseconds, lets two spans be.
fn assert_close(spans: &[Duration], expected: &[Duration]) {
    let close = |(a, b): (&Duration, &Duration)| a.abs_diff(*b) <= Duration::from_millis(20);
    assert!(
        spans.len() == expected.len() && spans.iter().zip(expected).all(close),
        "{spans:?} and not {expected:?}"
    );
}

pub(super) async fn granted_and_released() -> TestRecorder {
    let metered = MeteredFixture::new();
    let way = Duration::from_millis(200);
    metered.fixture.store.set(Fault::Slow(way));
    let guard = metered.fixture.client.lock("x").acquire().await.unwrap();
    assert_eq!(metered.sum(&HELD, ""), 1.0);
    assert_close(&metered.spans(&ACQUIRE_WAIT, "granted"), &[way]);
    metered.fixture.pass(3 * SECOND).await;
    assert_eq!(guard.release().await.unwrap(), ReleaseOutcome::Released);
    assert_close(&metered.spans(&HOLD, "released"), &[3 * SECOND + way]);
    metered.fixture.settle().await;
    assert_eq!(
        metered.all_counts(),
        [
            "acquire_wait_seconds granted 1",
            "attempts_total granted 1",
            "hold_seconds released 1",
            "releases_total released 1",
        ]
    );
    metered.recorder
}

#[tokio::test(start_paused = true)]
async fn acquire_and_release_are_counted_once() {
    granted_and_released().await;
}

#[tokio::test(start_paused = true)]
async fn shares_count_as_one_hold() {
    let metered = MeteredFixture::new();
    let guard = metered.fixture.client.lock("x").acquire().await.unwrap();
    let inner = guard.reenter();
    drop(guard);
    metered.fixture.settle().await;
    assert_eq!(metered.counts(&[HELD, RELEASES]), ["held 1"]);
    drop(inner);
    metered.fixture.settle().await;
    let expected = ["hold_seconds released 1", "releases_total released 1"];
    assert_eq!(metered.counts(&[HELD, HOLD, RELEASES]), expected);
}

#[tokio::test(start_paused = true)]
async fn repeated_release_counts_as_released() {
    let metered = MeteredFixture::new();
    let guard = metered.fixture.client.lock("x").acquire().await.unwrap();
    metered.fixture.store.set(Fault::Slow(SECOND));
    let released = guard.release().now_or_never();
    assert!(released.is_none(), "dropped before its answer");
    metered.fixture.pass(5 * SECOND).await;
    let expected = ["releases_total released 1"];
    assert_eq!(metered.counts(&[RELEASES]), expected);
}

pub(super) async fn contended() -> TestRecorder {
    let metered = MeteredFixture::new();
    let other = metered.other_client();
    let guard = other.lock("x").acquire().await.unwrap();
    let lock = metered.fixture.client.lock("x");
    assert!(lock.try_acquire().await.unwrap().is_none());
    let wait = 2 * SECOND;
    let error = lock.clone().wait(wait).acquire().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Busy);
    let [waited] = metered.spans(&ACQUIRE_WAIT, "timeout")[..] else {
        panic!("one timeout: {:?}", metered.all_counts())
    };
    assert!(waited >= wait && waited < wait + SECOND, "{waited:?}");
    assert_eq!(metered.spans(&ACQUIRE_WAIT, "busy"), [Duration::ZERO]);
    assert_eq!(metered.sum(&CONTENDED, ""), 2.0);
    let waiting = background::spawn(lock.acquire());
    metered.fixture.pass(3 * SECOND).await;
    guard.release().await.unwrap();
    let guard = waiting.await.unwrap().unwrap();
    assert_eq!(metered.sum(&CONTENDED, ""), 3.0);
    assert_eq!(metered.spans(&ACQUIRE_WAIT, "granted").len(), 2);
    assert_eq!(metered.sum(&ATTEMPTS, "busy"), 1.0);
    assert_eq!(metered.sum(&ATTEMPTS, "cut_off"), 1.0);
    assert_eq!(metered.sum(&ATTEMPTS, "granted"), 2.0);
    drop(guard);
    metered.recorder
}

#[tokio::test(start_paused = true)]
async fn busy_and_timed_out_are_told_apart() {
    contended().await;
}

#[tokio::test(start_paused = true)]
async fn contended_call_is_counted_once() {
    let metered = MeteredFixture::new();
    let (holder, _) = metered.fixture.client_apart();
    let _guard = holder.lock("x").acquire().await.unwrap();
    let waiting = background::spawn(metered.fixture.client.lock("x").acquire());
    metered.fixture.pass(SECOND).await;
    metered.fixture.store.set(Fault::Unreachable);
    metered.fixture.pass(SECOND).await;
    metered.fixture.store.set(Fault::None);
    metered.fixture.pass(2 * TTL).await;
    assert_eq!(metered.sum(&ATTEMPTS, "unknown"), 1.0);
    assert!(metered.sum(&ATTEMPTS, "failed") > 1.0);
    assert_eq!(metered.sum(&CONTENDED, ""), 1.0);
    waiting.abort();
}

pub(super) async fn given_up_waits() -> TestRecorder {
    let metered = MeteredFixture::new();
    let (client, member) = (&metered.fixture.client, &metered.fixture.store);
    let guard = client.lock("x").acquire().await.unwrap();
    let waiting = background::spawn(client.lock("x").acquire());
    metered.fixture.pass(SECOND).await;
    waiting.abort();
    metered.fixture.settle().await;
    assert_close(&metered.spans(&ACQUIRE_WAIT, "cancelled"), &[SECOND]);
    member.set(Fault::Frozen);
    let waiting = background::spawn(client.lock("y").try_acquire());
    metered.fixture.settle().await;
    waiting.abort();
    metered.fixture.settle().await;
    assert_eq!(metered.sum(&ATTEMPTS, "cut_off"), 2.0);
    assert_eq!(metered.spans(&ACQUIRE_WAIT, "cancelled").len(), 2);
    member.set(Fault::None);
    drop(guard);
    metered.recorder
}

#[tokio::test(start_paused = true)]
async fn dropped_call_counts_as_cancelled() {
    given_up_waits().await;
}

pub(super) async fn failures() -> TestRecorder {
    let metered = MeteredFixture::new();
    let (client, member) = (&metered.fixture.client, &metered.fixture.store);
    let permit = client.semaphore("pool", 2).acquire().await.unwrap();
    let error = client.semaphore("pool", 3).acquire().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::PermitsDiffer);
    assert_eq!(metered.spans(&ACQUIRE_WAIT, "refused").len(), 1);
    assert_eq!(metered.sum(&ATTEMPTS, "failed"), 1.0);
    member.set(Fault::Unreachable);
    let lock = client.lock("x").wait(SECOND);
    assert!(lock.acquire().await.unwrap_err().is_unreachable());
    member.set(Fault::Slow(TTL));
    let lock = client.lock("x").wait(5 * SECOND);
    assert!(lock.acquire().await.unwrap_err().is_unreachable());
    assert_eq!(metered.sum(&ATTEMPTS, "unknown"), 1.0);
    assert_eq!(metered.spans(&ACQUIRE_WAIT, "unavailable").len(), 2);
    assert_eq!(metered.sum(&CONTENDED, ""), 0.0);
    // What breaks a rule is not even asked.
    let before = metered.all_counts();
    let error = client.lock("").acquire().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidInput);
    assert_eq!(metered.all_counts(), before);
    drop(permit);
    metered.recorder
}

#[tokio::test(start_paused = true)]
async fn refused_and_unavailable_are_distinguished() {
    failures().await;
}

fn renewals(fixture: &Fixture) -> usize {
    fixture.count(|call| matches!(call, StoreCall::Renew(_)))
}

pub(super) async fn renewed() -> TestRecorder {
    let metered = MeteredFixture::new();
    let member = &metered.fixture.store;
    let guard = metered.fixture.client.lock("x").acquire().await.unwrap();
    metered.fixture.pass(3 * TTL).await;
    let count = renewals(&metered.fixture);
    assert!(count >= 8, "{count}");
    assert_eq!(
        metered.spans(&RENEWAL, "renewed"),
        vec![Duration::ZERO; count]
    );
    let way = SECOND / 2;
    member.set(Fault::Slow(way));
    while renewals(&metered.fixture) == count {
        metered.fixture.pass(way).await;
    }
    metered.fixture.pass(way).await;
    let last = metered.spans(&RENEWAL, "renewed").split_off(count);
    assert_close(&last, &[way]);
    member.set(Fault::Unreachable);
    while !guard.is_in_doubt() {
        metered.fixture.pass(SECOND).await;
    }
    assert!(!metered.spans(&RENEWAL, "unknown").is_empty());
    assert_eq!(metered.sum(&HELD, ""), 1.0, "in doubt is not lost");
    member.set(Fault::None);
    drop(guard);
    metered.recorder
}

#[tokio::test(start_paused = true)]
async fn each_renewal_is_recorded_with_its_duration() {
    renewed().await;
}

#[tokio::test(start_paused = true)]
async fn batched_renewals_are_recorded_one_by_one() {
    let metered = MeteredFixture::new();
    let recorder = TraceRecorder::new();
    let _watching = recorder.watch();
    let mut guards = Vec::new();
    for number in 0..20 {
        let lock = metered.fixture.client.lock(format!("x{number}"));
        guards.push(lock.acquire().await.unwrap());
    }
    // All of them are due when it goes on.
    metered.fixture.env.clock.was_paused(TTL / 3);
    metered.fixture.pass(TTL).await;
    let (leases, messages) = (renewals(&metered.fixture), recorder.named("renewal"));
    assert!(messages.len() < leases, "each had a message of its own");
    assert_eq!(metered.spans(&RENEWAL, "renewed").len(), leases);
    let counts = messages.iter().map(|span| {
        assert_eq!(span.fields["leases"], span.fields["renewed"]);
        span.fields["leases"].parse::<usize>().unwrap()
    });
    assert_eq!(counts.sum::<usize>(), leases);
}

#[tokio::test(start_paused = true)]
async fn handle_renewals_are_recorded() {
    let metered = MeteredFixture::new();
    let (client, member) = (&metered.fixture.client, &metered.fixture.store);
    let guard = client.lock("x").acquire().await.unwrap();
    let handle = guard.into_handle().unwrap();
    let way = SECOND / 2;
    member.set(Fault::Slow(way));
    let handle = client.renew(&handle).await.unwrap();
    assert_close(&metered.spans(&RENEWAL, "renewed"), &[way]);
    member.set(Fault::Frozen);
    client.renew(&handle).await.unwrap_err();
    assert!(!metered.spans(&RENEWAL, "unknown").is_empty());
    assert_eq!(metered.spans(&RENEWAL, "renewed").len(), 1);
}

pub(super) async fn handed_on() -> TestRecorder {
    let metered = MeteredFixture::new();
    let client = &metered.fixture.client;
    let guard = client.lock("x").acquire().await.unwrap();
    metered.fixture.pass(SECOND).await;
    let handle = guard.into_handle().unwrap();
    assert_close(&metered.spans(&HOLD, "handed_on"), &[SECOND]);
    assert_eq!(metered.sum(&HELD, ""), 0.0);
    let handle = client.renew(&handle).await.unwrap();
    assert_eq!(metered.sum(&HELD, ""), 0.0, "a renewed handle is no guard");
    let guard = client.adopt(&handle).await.unwrap();
    assert_eq!(metered.sum(&HELD, ""), 1.0);
    assert_eq!(metered.spans(&RENEWAL, "renewed").len(), 2);
    metered.fixture.pass(2 * SECOND).await;
    guard.release().await.unwrap();
    assert_close(&metered.spans(&HOLD, "released"), &[2 * SECOND]);
    assert_eq!(metered.sum(&HELD, ""), 0.0);
    metered.recorder
}

#[tokio::test(start_paused = true)]
async fn adopting_a_handle_begins_a_new_hold() {
    handed_on().await;
}

pub(super) async fn releases() -> TestRecorder {
    let metered = MeteredFixture::new();
    let (client, member) = (&metered.fixture.client, &metered.fixture.store);
    let guard = client.lock("forgotten").acquire().await.unwrap();
    metered
        .fixture
        .memory
        .forget(&Key::new("forgotten").unwrap());
    assert_eq!(guard.release().await.unwrap(), ReleaseOutcome::WasLost);
    let guard = client.lock("closed").ttl(TTL).lock_delay(SECOND);
    let guard = guard.acquire().await.unwrap();
    guard.give_up();
    assert_eq!(guard.release().await.unwrap(), ReleaseOutcome::WasLost);
    let guard = client.lock("unheard").acquire().await.unwrap();
    member.set(Fault::Unreachable);
    guard.release().await.unwrap_err();
    // The client repeats it until the lease is over.
    metered.fixture.pass(2 * TTL).await;
    let expected = ["was_lost 1", "left_closed 1", "unknown 1"];
    let expected = expected.map(|end| format!("releases_total {end}"));
    assert_eq!(metered.counts(&[RELEASES]), expected);
    metered.recorder
}

#[tokio::test(start_paused = true)]
async fn releases_are_recorded_by_outcome() {
    releases().await;
}

/// What stores record that have a queue or members.
pub(super) fn stores() -> TestRecorder {
    let recorder = TestRecorder::new();
    recorder.scope(|| {
        let mut members = MemberGauges::new("a store", 4);
        members.judged(0, true);
        members.judged(1, false);
        members.failing(2, true);
        HandOvers::new("a store").took(SECOND);
    });
    assert_eq!(recorder.sum(MEMBERS.name, &[]), 0.0, "the store is gone");
    recorder
}

#[tokio::test(start_paused = true)]
async fn unnoticed_loss_is_recorded_at_release() {
    let metered = MeteredFixture::new();
    let guard = metered.fixture.client.lock("x").acquire().await.unwrap();
    metered.fixture.pass(SECOND).await;
    // No timer fires: the clock jumps, as after a suspended machine wakes.
    metered.fixture.env.clock.was_paused(2 * TTL);
    guard.release().await.unwrap();
    metered.assert_lost_only("paused");
    let lost = metered.spans(&HOLD, "lost");
    assert_close(&lost, &[TTL - MARGIN]);
    assert!(metered.spans(&HOLD, "released").is_empty());
    assert_eq!(metered.sum(&HELD, ""), 0.0);
}
