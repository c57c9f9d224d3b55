use std::collections::BTreeSet;
use std::time::Duration;

use leasehold::Mode;
use leasehold::look::{BreakOptions, Owner};
use leasehold::store::background;
use leasehold_testkit::telemetry::{SeenSpan, TraceRecorder};
use leasehold_testkit::{Fault, StoreCall};
use tracing::{Instrument as _, Level};

use super::documented::rows;
use crate::fixture::{Fixture, TTL};

const SECOND: Duration = Duration::from_secs(1);

fn the_only<'a>(spans: &'a [SeenSpan], name: &str) -> (usize, &'a SeenSpan) {
    let mut named = spans.iter().enumerate().filter(|(_, it)| it.name == name);
    let span = named.next().expect(name);
    assert!(named.next().is_none(), "{name} is there twice");
    span
}

fn fields(span: &SeenSpan, names: &[&str]) -> Vec<String> {
    names.iter().map(|name| span.fields[name].clone()).collect()
}

#[tokio::test(start_paused = true)]
async fn concurrent_spans_are_not_mixed_up() {
    let fixture = Fixture::new();
    let recorder = TraceRecorder::new();
    let _watching = recorder.watch();
    fixture.store.set(Fault::Jittery(SECOND / 10));
    let names = ["a", "b", "c", "d", "e", "f", "g", "h"];
    let locks = names.map(|name| background::spawn(fixture.client.lock(name).acquire()));
    for lock in locks {
        // Whenever this task runs, no span is entered: none is held while its work waits.
        assert!(!recorder.is_within());
        lock.await.unwrap().unwrap().release().await.unwrap();
    }
    let spans = recorder.spans();
    let acquires = spans.iter().filter(|it| it.name == "acquire");
    let locks: BTreeSet<&str> = acquires.map(|it| &*it.fields["lock"]).collect();
    assert_eq!(locks, BTreeSet::from(names));
}

#[tokio::test(start_paused = true)]
async fn a_renewal_tells_what_became_of_each_lease() {
    let fixture = Fixture::new();
    let recorder = TraceRecorder::new();
    let _watching = recorder.watch();
    let guard = fixture.client.lock("x").acquire().await.unwrap();
    let first = guard.deadline();
    guard.deadline_moved(first).await;
    fixture.settle().await;
    let spans = recorder.spans();
    let (_, span) = the_only(&spans, "renewal");
    assert_eq!((span.parent, span.level), (None, Level::DEBUG));
    let recorded = fields(span, &["leases", "renewed", "lost", "unknown"]);
    assert_eq!(recorded, ["1", "1", "0", "0"]);
    fixture.store.set(Fault::Unreachable);
    guard.lost().await;
    let last = recorder.named("renewal").pop().expect("a renewal");
    assert_eq!(last.fields["unknown"], "1");
}

#[tokio::test(start_paused = true)]
async fn manual_lists_every_span_and_field() {
    let fixture = Fixture::new();
    let recorder = TraceRecorder::new();
    let _watching = recorder.watch();
    let guard = fixture.client.lock("x").acquire().await.unwrap();
    fixture.settle().await;
    assert_eq!(recorder.open(), [""; 0], "none lives on with the guard");
    fixture.pass(TTL).await;
    guard.release().await.unwrap();
    fixture.settle().await;
    assert_eq!(recorder.open(), [""; 0]);
    let row = |span: SeenSpan| {
        let level = span.level.to_string().to_lowercase();
        (span.name.to_owned(), level, span.declared.join(", "))
    };
    let seen: BTreeSet<_> = recorder.spans().into_iter().map(row).collect();
    let names = ["acquire", "release", "renewal"];
    let documented = names.map(rows).into_iter().flatten();
    // The rows of events begin with more than the name of a span.
    let documented = documented.filter(|row| names.contains(&&*row[0]));
    let documented = documented.map(|row| (row[0].clone(), row[1].clone(), row[2].clone()));
    assert_eq!(seen, documented.collect());
}

#[tokio::test(start_paused = true)]
async fn acquire_span_is_a_child_of_the_callers() {
    let fixture = Fixture::new();
    let recorder = TraceRecorder::new();
    let _watching = recorder.watch();
    let caller = tracing::info_span!(target: "leasehold_caller", "caller");
    let taking = fixture.client.lock("x").mode(Mode::Shared).acquire();
    let guard = taking.instrument(caller.clone()).await.unwrap();
    guard.release().instrument(caller.clone()).await.unwrap();
    drop(caller);
    let spans = recorder.spans();
    let (caller, _) = the_only(&spans, "caller");
    let (_, acquire) = the_only(&spans, "acquire");
    assert_eq!((acquire.parent, acquire.level), (Some(caller), Level::INFO));
    let recorded = fields(acquire, &["lock", "mode", "outcome"]);
    assert_eq!(recorded, ["x", "shared", "granted"]);
    let (_, release) = the_only(&spans, "release");
    assert_eq!((release.parent, release.level), (Some(caller), Level::INFO));
    assert_eq!(fields(release, &["lock", "outcome"]), ["x", "released"]);
}

fn owners(fixture: &Fixture) -> BTreeSet<Owner> {
    let owners = fixture
        .store
        .calls()
        .into_iter()
        .filter_map(|call| match call {
            StoreCall::Acquire(request)
            | StoreCall::Renew(request)
            | StoreCall::Release(request) => Some(request.owner),
            _ => None,
        });
    owners.collect()
}

#[tokio::test(start_paused = true)]
async fn spans_and_events_contain_no_secret() {
    let recorder = TraceRecorder::new();
    let _watching = recorder.watch();
    let fixture = Fixture::new();
    let other = fixture.other_client();
    // Waits, hand-overs, and refusals.
    let guard = fixture.client.lock("x").acquire().await.unwrap();
    let waiting = background::spawn(other.lock("x").acquire());
    let given_up = background::spawn(other.lock("x").acquire());
    fixture.pass(SECOND).await;
    assert!(other.lock("x").try_acquire().await.unwrap().is_none());
    fixture.store.set(Fault::Slow(SECOND / 5));
    drop(guard);
    let guard = waiting.await.unwrap().unwrap();
    given_up.abort();
    drop(guard);
    fixture.pass(3 * SECOND).await;
    fixture.store.set(Fault::None);
    let closed = other.lock("closed").lock_delay(SECOND);
    let closed = closed.acquire().await.unwrap();
    closed.give_up();
    closed.release().await.unwrap();
    let guard = other.lock("x").acquire().await.unwrap();
    fixture.pass(2 * TTL).await;
    let handle = guard.into_handle().unwrap();
    let guard = other.adopt(&handle).await.unwrap();
    let broken = fixture
        .client
        .break_lock("x", guard.fence(), BreakOptions::at_once());
    broken.await.unwrap();
    guard.lost().await;
    fixture.store.set(Fault::Unreachable);
    let lock = fixture.client.lock("y").wait(SECOND);
    lock.acquire().await.unwrap_err();
    let values = recorder.values();
    let rare = "not released, because it was lost";
    let happened = values.iter().any(|value| value == rare);
    assert!(happened, "not put to the test: {rare}");
    let owners = owners(&fixture);
    assert!(owners.len() > 5, "{owners:?}");
    for owner in owners {
        let text = owner.to_string();
        let (_, nonce) = text.split_once('.').expect("an owner");
        let recorded = values.iter().find(|value| value.contains(nonce));
        assert_eq!(recorded, None);
    }
}
