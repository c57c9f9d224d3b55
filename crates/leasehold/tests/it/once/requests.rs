//! Requests that take effect once, even if their callers are killed, paused or cut off.

use std::time::Duration;

use leasehold::clock::within;
use leasehold::once::{Once, OnceStart};
use leasehold::store::RecordWrite;
use leasehold::{Effect, Error, ErrorKind, Guard, LostReason, Mode};
use leasehold_testkit::{CrashInjector, Fault};

use super::callers::{Caller, CallersFixture};
use crate::fixture::TTL;

#[tokio::test(start_paused = true)]
async fn request_runs_once_for_all_callers() {
    let fixture = CallersFixture::new();
    let callers: Vec<Caller> = (0..8).map(|_| fixture.caller()).collect();
    let once: Vec<Once> = callers.iter().map(Caller::once).collect();
    let calls = once.iter().map(|once| fixture.call(once));
    let results = futures_util::future::join_all(calls).await;
    let ran = fixture.ran();
    assert_eq!(ran.len(), 1);
    for result in results {
        let result = result.unwrap();
        assert_eq!(result.fence, ran[0]);
        assert_eq!(&*result.bytes, format!("under {}", ran[0]).as_bytes());
        assert!(result.remaining <= Once::DEFAULT_RETENTION);
    }
    let looked = callers[3].once().result().await.unwrap().expect("a result");
    assert_eq!(looked.fence, ran[0]);
    let free = callers[0]
        .client
        .lock("pay/17")
        .try_acquire()
        .await
        .unwrap();
    assert!(free.is_some(), "its lock is given back");
}

/// Kills the first caller at each of its requests, before or after the request is carried out. The
/// next caller, and the one after it, get one result.
#[tokio::test(start_paused = true)]
async fn killed_callers_commit_one_result() {
    for is_carried_out in [false, true] {
        let mut last = 1;
        while die_at(last, is_carried_out).await {
            last += 1;
        }
        assert!(last > 6, "only {last} requests");
    }
}

/// Returns whether the first caller died before it was done.
async fn die_at(last: u64, is_carried_out: bool) -> bool {
    let at = format!("request {last}, carried out: {is_carried_out}");
    let fixture = CallersFixture::new();
    let fuse = CrashInjector::at(last, is_carried_out);
    let first = fixture.caller_with(Some(&fuse));
    let once = first.once();
    let end = fixture.env.clock.now() + TTL * 2;
    let first_result = within(&*fixture.env.clock, end, fixture.call(&once)).await;
    let has_blown = fuse.has_crashed();
    let mut results = Vec::new();
    if let Some(Ok(result)) = &first_result {
        results.push(result.clone());
    } else {
        assert!(has_blown, "{at}: {first_result:?}");
    }
    for _ in 0..3 {
        let next = fixture.caller();
        let once = next.once();
        let end = fixture.env.clock.now() + TTL * 2;
        let result = within(&*fixture.env.clock, end, fixture.call(&once)).await;
        let result = result.unwrap_or_else(|| panic!("{at}: no result in time"));
        results.push(result.unwrap_or_else(|error| panic!("{at}: {error}")));
    }
    let ran = fixture.ran();
    assert!(ran.len() <= 2, "{at}: run {} times", ran.len());
    for result in &results {
        assert_eq!(result.fence, results[0].fence, "{at}");
        assert_eq!(result.bytes, results[0].bytes, "{at}");
        assert!(ran.contains(&result.fence), "{at}");
    }
    has_blown
}

#[tokio::test(start_paused = true)]
async fn paused_caller_overwrites_no_later_result() {
    for is_next_done in [false, true] {
        what_was_sent_late_changes_nothing(is_next_done).await;
    }
}

/// What a paused caller sent is carried out once the next one has begun, or is done.
async fn what_was_sent_late_changes_nothing(is_next_done: bool) {
    let fixture = CallersFixture::new();
    let (paused, next, later) = (fixture.caller(), fixture.caller(), fixture.caller());
    let run = paused.begin().await;
    paused.way.set(Fault::Frozen);
    let end = fixture.env.clock.now() + TTL * 3;
    let committing = within(&*fixture.env.clock, end, run.commit("late"));
    let outcome = committing.await.expect("it gives up at its deadline");
    let error = outcome.expect_err("nobody answered");
    assert_eq!(error.effect(), Effect::Unknown);
    fixture.pass(TTL).await;
    let run = next.begin().await;
    let thaw = async || {
        paused.way.set(Fault::None);
        fixture.pass(Duration::from_secs(5)).await;
    };
    if !is_next_done {
        thaw().await;
    }
    let committed = run.commit("in time").await.expect("nobody is ahead of it");
    if is_next_done {
        thaw().await;
    }
    for caller in [&later, &paused, &next] {
        let result = caller.done().await;
        let found = (&*result.bytes, result.fence);
        assert_eq!(found, (&b"in time"[..], committed.fence));
    }
}

#[tokio::test(start_paused = true)]
async fn late_commit_learns_of_the_next_attempt() {
    let fixture = CallersFixture::new();
    let (slow, next) = (fixture.caller(), fixture.caller());
    let run = slow.begin().await;
    // Cut off until its lease is over, without having sent anything.
    slow.way.set(Fault::Unreachable);
    fixture.pass(TTL * 2).await;
    let other = next.begin().await;
    slow.way.set(Fault::None);
    fixture.pass(Duration::from_secs(2)).await;
    let error = run.commit("late").await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Fenced, "{error}");
    assert_eq!(error.effect(), Effect::None, "{error}");
    assert!(error.to_string().contains("pay/17"), "{error}");
    other.commit("in time").await.unwrap();
    assert_eq!(&*slow.done().await.bytes, b"in time");
}

#[tokio::test(start_paused = true)]
async fn late_commit_succeeds_without_another_attempt() {
    let fixture = CallersFixture::new();
    let caller = fixture.caller();
    let run = caller.begin().await;
    caller.way.set(Fault::Unreachable);
    fixture.pass(TTL * 2).await;
    assert!(!run.guard().is_valid());
    caller.way.set(Fault::None);
    fixture.pass(Duration::from_secs(2)).await;
    run.commit("late").await.unwrap();
    assert_eq!(&*fixture.caller().done().await.bytes, b"late");
}

#[tokio::test(start_paused = true)]
async fn who_comes_meanwhile_waits_or_is_told() {
    let fixture = CallersFixture::new();
    let (first, other) = (fixture.caller(), fixture.caller());
    let run = first.begin().await;
    match other.once().try_begin().await.unwrap() {
        OnceStart::InProgress(Some(holder)) => assert_eq!(holder.owner, Some(run.guard().owner())),
        start => panic!("{start:?}"),
    }
    let wait = Duration::from_secs(5);
    let began = fixture.env.clock.now();
    let waited = other.once().wait(wait).begin().await.unwrap();
    assert!(matches!(waited, OnceStart::InProgress(_)), "{waited:?}");
    assert!(fixture.env.clock.now().since(began) >= wait);
    let once = other.once().wait(wait);
    let error = fixture.call(&once).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Busy);
    let once = other.once();
    let (waited, committed) = tokio::join!(once.begin(), async {
        fixture.pass(TTL * 3).await;
        run.commit("done").await
    });
    match waited.unwrap() {
        OnceStart::Done(result) => assert_eq!(result.fence, committed.unwrap().fence),
        start => panic!("{start:?}"),
    }
}

#[tokio::test(start_paused = true)]
async fn another_payload_under_the_same_name_is_refused() {
    let fixture = CallersFixture::new();
    let caller = fixture.caller();
    let other = caller.client.once("pay/17").payload("EUR 13");
    let refused = |error: Error| {
        assert_eq!(error.kind(), ErrorKind::InvalidInput, "{error}");
        let text = error.to_string();
        assert!(
            text.contains("pay/17") && text.contains("another payload"),
            "{text}"
        );
        assert!(!text.contains("EUR"), "{text}");
    };
    let run = caller.begin().await;
    drop(run);
    fixture.pass(Duration::from_secs(1)).await;
    refused(other.begin().await.unwrap_err());
    caller.begin().await.give_up().await.unwrap();
    // What was given up is as if it had never been.
    let run = match other.try_begin().await.unwrap() {
        OnceStart::Run(run) => run,
        start => panic!("{start:?}"),
    };
    run.commit("done").await.unwrap();
    refused(caller.once().begin().await.unwrap_err());
    refused(caller.once().result().await.unwrap_err());
    let free = caller.client.lock("pay/17").try_acquire().await.unwrap();
    assert!(free.is_some(), "who was refused holds nothing");
}

#[tokio::test(start_paused = true)]
async fn failed_and_expired_requests_run_again() {
    let fixture = CallersFixture::new();
    let caller = fixture.caller();
    let once = caller.once().retention(Duration::from_secs(3600));
    let failed = once
        .run(async |_| Err::<String, _>("declined"))
        .await
        .unwrap();
    assert_eq!(failed.unwrap_err(), "declined");
    let first = fixture.call(&once).await.unwrap();
    fixture.pass(Duration::from_secs(3590)).await;
    assert_eq!(fixture.call(&once).await.unwrap().fence, first.fence);
    fixture.pass(Duration::from_secs(11)).await;
    let second = fixture.call(&once).await.unwrap();
    assert!(second.fence > first.fence);
    assert_eq!(fixture.ran(), [first.fence, second.fence]);
}

#[tokio::test(start_paused = true)]
async fn lost_guard_cancels_the_body_of_once() {
    let fixture = CallersFixture::new();
    let (first, next) = (fixture.caller(), fixture.caller());
    let once = first.once();
    let body = async |_: &Guard| {
        first.way.set(Fault::Unreachable);
        std::future::pending::<Result<String, String>>().await
    };
    let error = once.run(body).await.unwrap_err();
    assert_eq!(
        error.lost_reason(),
        Some(LostReason::Unreachable),
        "{error}"
    );
    let once = next.once();
    fixture.call(&once).await.unwrap();
    assert_eq!(fixture.ran().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn invalid_values_are_refused_before_running() {
    let fixture = CallersFixture::new();
    let caller = fixture.caller();
    let begin = async |once: Once| {
        let error = once.begin().await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidInput, "{error}");
        assert_eq!(error.effect(), Effect::None);
        error.to_string()
    };
    begin(caller.client.once("")).await;
    begin(caller.client.once("leasehold:x")).await;
    let text = begin(caller.once().retention(Duration::ZERO)).await;
    assert!(
        text.contains("retention of 0s") && text.contains("from 1s"),
        "{text}"
    );
    let eleven_years = RecordWrite::RETENTION_MAX + Duration::from_secs(1);
    begin(caller.once().retention(eleven_years)).await;
    begin(caller.once().ttl(Duration::from_millis(1))).await;

    let guard = caller.client.lock("other").acquire().await.unwrap();
    let error = caller.once().enter(guard).await.unwrap_err();
    assert!(error.to_string().contains("a guard of other"), "{error}");
    let shared = caller.client.lock("pay/17").mode(Mode::Shared);
    let error = caller.once().enter(shared.acquire().await.unwrap()).await;
    assert_eq!(error.unwrap_err().kind(), ErrorKind::InvalidInput);

    let longest = vec![b'x'; Once::RESULT_MAX];
    let too_long = vec![b'x'; Once::RESULT_MAX + 1];
    let error = caller.begin().await.commit(too_long).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidInput, "{error}");
    assert!(
        error.to_string().contains(&Once::RESULT_MAX.to_string()),
        "{error}"
    );
    fixture.pass(Duration::from_secs(1)).await;
    caller.begin().await.commit(&longest).await.unwrap();
    assert_eq!(&*caller.done().await.bytes, &longest[..]);
    assert!(fixture.ran().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_record_of_something_else_is_no_request() {
    let fixture = CallersFixture::new();
    let caller = fixture.caller();
    let guard = caller.client.lock("pay/17").acquire().await.unwrap();
    let record = guard.record();
    record.write(*b"10.0.0.7:8080", TTL).await.unwrap();
    guard.release().await.unwrap();
    let error = caller.once().begin().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Corrupt, "{error}");
}
