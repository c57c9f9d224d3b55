//! Values that cover others, that two guards of one grant write, or that stay undecided.

use std::time::Duration;

use leasehold::clock::within;
use leasehold::once::Once;
use leasehold::record::HeldRecord;
use leasehold::store::RecordKey;
use leasehold::{Effect, ErrorKind, Fence, Guard, Key};
use leasehold_testkit::Fault;

use super::callers::{Caller, CallersFixture};
use crate::fixture::{TTL, session};

const HOUR: Duration = Duration::from_secs(3600);
const SECOND: Duration = Duration::from_secs(1);

async fn hold(caller: &Caller) -> Guard {
    let lock = caller.client.lock("pay/17").ttl(TTL);
    lock.acquire().await.expect("a free lock")
}

/// What all find, which must be settled.
async fn found(caller: &Caller) -> Vec<u8> {
    let record = caller
        .client
        .record("pay/17")
        .lasting(Once::DEFAULT_RETENTION);
    let reading = record.read().await.expect("a reading");
    assert!(reading.settled, "{reading:?}");
    reading.written.expect("a value").bytes.to_vec()
}

/// Opens the record with a greater fence.
async fn open_beside(fixture: &CallersFixture) {
    let record = RecordKey::new(Key::new("pay/17").expect("a key"));
    let session = session(&fixture.memory, &fixture.env);
    let records = session.records().expect("records");
    let opened = records.open_record(&record, Fence::MAX).await;
    opened.expect("an answer");
}

#[tokio::test(start_paused = true)]
async fn adopted_guard_writes_after_its_predecessor() {
    let fixture = CallersFixture::new();
    let caller = fixture.caller();
    let guard = hold(&caller).await;
    for text in ["one", "two", "three"] {
        guard.record().write(text.as_bytes(), HOUR).await.unwrap();
    }
    let mut handle = guard.into_handle().unwrap();
    for text in ["four", "five"] {
        let guard = caller.client.adopt(&handle).await.unwrap();
        let written = guard.record().write(text.as_bytes(), HOUR).await;
        written.unwrap_or_else(|error| panic!("{text}: {error}"));
        assert_eq!(found(&caller).await, text.as_bytes());
        handle = guard.into_handle().unwrap();
        fixture.pass(SECOND).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_write_that_is_refused_ends_at_once() {
    let fixture = CallersFixture::new();
    let caller = fixture.caller();
    let guard = hold(&caller).await;
    open_beside(&fixture).await;
    let end = fixture.env.clock.now() + SECOND;
    let record = guard.record();
    let writing = within(&*fixture.env.clock, end, record.write(*b"x", HOUR));
    let error = writing.await.expect("it ends").unwrap_err();
    assert_eq!(error.effect(), Effect::None, "{error}");
    assert_eq!(error.kind(), ErrorKind::Fenced, "{error}");
}

#[tokio::test(start_paused = true)]
async fn unanswered_then_refused_write_stays_unknown() {
    let fixture = CallersFixture::new();
    let caller = fixture.caller();
    let guard = hold(&caller).await;
    // The write is carried out, and its answer comes after its caller stopped waiting.
    caller.way.set(Fault::Slow(SECOND * 4));
    let record = guard.record();
    let (wrote, ()) = tokio::join!(record.write(*b"x", HOUR), async {
        fixture.pass(SECOND).await;
        open_beside(&fixture).await;
        caller.way.set(Fault::None);
    });
    let error = wrote.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Fenced, "{error}");
    assert_eq!(error.effect(), Effect::Unknown, "{error}");
    assert_eq!(found(&caller).await, b"x");
}

#[tokio::test(start_paused = true)]
async fn delayed_first_write_replaces_no_later_one() {
    let fixture = CallersFixture::new();
    let caller = fixture.caller();
    let guard = hold(&caller).await;
    caller.way.set(Fault::Late(SECOND));
    let record = guard.record();
    let soon = fixture.env.clock.now() + SECOND / 10;
    let first = within(&*fixture.env.clock, soon, record.write(*b"begun", HOUR));
    assert!(first.await.is_none(), "it is on its way");
    caller.way.set(Fault::None);
    record.write(*b"done", HOUR).await.unwrap();
    assert_eq!(found(&caller).await, b"done");
    fixture.pass(SECOND * 3).await;
    assert_eq!(found(&caller).await, b"done");
}

#[tokio::test(start_paused = true)]
async fn guard_beyond_record_memory_writes_nothing() {
    let fixture = CallersFixture::new();
    let caller = fixture.caller();
    let guard = hold(&caller).await;
    let record = guard.record();
    record.write(*b"before", HOUR * 24 * 30).await.unwrap();
    caller.way.set(Fault::Unreachable);
    fixture.pass(HeldRecord::TOO_LATE - HOUR).await;
    caller.way.set(Fault::None);
    assert!(!guard.is_valid());
    record.write(*b"in time", HOUR * 24 * 30).await.unwrap();
    fixture.pass(HOUR * 2).await;
    let errors = [
        record.write(*b"late", HOUR).await.unwrap_err(),
        record.open().await.unwrap_err(),
    ];
    for error in errors {
        assert_eq!(error.kind(), ErrorKind::Lost, "{error}");
        assert_eq!(error.effect(), Effect::None, "{error}");
        assert!(error.to_string().contains("pay/17"), "{error}");
    }
    assert_eq!(found(&caller).await, b"in time");
}
