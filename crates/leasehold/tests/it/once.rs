//! Requests that take effect once, over one store and over a quorum, whatever becomes of their callers.

use std::time::Duration;

use leasehold::clock::within;
use leasehold::{Effect, Error, ErrorKind, Mode, Once, OnceResult, OnceStart, RecordWrite};
use leasehold_testkit::{Fault, Fuse};

use crate::callers::{Caller, World};
use crate::scene::{TTL, WAIT};

const SIZES: [usize; 3] = [1, 3, 5];

#[tokio::test(start_paused = true)]
async fn a_request_is_run_once_and_everybody_gets_its_result() {
    for size in SIZES {
        let world = World::new(size);
        let callers: Vec<Caller> = (0..8).map(|_| world.caller()).collect();
        let once: Vec<Once> = callers.iter().map(Caller::once).collect();
        let calls = once.iter().map(|once| world.call(once));
        let results = futures_util::future::join_all(calls).await;
        let ran = world.ran();
        assert_eq!(ran.len(), 1, "{size} members");
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
}

/// Kills the first caller at each of its requests, before it is carried out and after that. Whoever
/// comes then, and then again, gets one result.
#[tokio::test(start_paused = true)]
async fn whenever_its_caller_is_killed_one_result_is_committed() {
    for size in SIZES {
        for is_carried_out in [false, true] {
            let mut last = 1;
            while die_at(size, last, is_carried_out).await {
                last += 1;
            }
            assert!(
                last > 6 * size as u64,
                "{size} members: only {last} requests"
            );
        }
    }
}

/// Whether the first caller died before it was done.
async fn die_at(size: usize, last: u64, is_carried_out: bool) -> bool {
    let at = format!("{size} members, request {last}, carried out: {is_carried_out}");
    let world = World::new(size);
    let fuse = Fuse::at(last, is_carried_out);
    let first = world.caller_with(Some(&fuse));
    let once = first.once();
    let end = world.ambient.clock.now() + TTL * 2;
    let first_result = within(&*world.ambient.clock, end, world.call(&once)).await;
    let has_blown = fuse.has_blown();
    let mut results = Vec::new();
    if let Some(Ok(result)) = &first_result {
        results.push(result.clone());
    } else {
        assert!(has_blown, "{at}: {first_result:?}");
    }
    for _ in 0..3 {
        let next = world.caller();
        let once = next.once();
        let end = world.ambient.clock.now() + TTL * 2;
        let result = within(&*world.ambient.clock, end, world.call(&once)).await;
        let result = result.unwrap_or_else(|| panic!("{at}: no result in time"));
        results.push(result.unwrap_or_else(|error| panic!("{at}: {error}")));
    }
    let ran = world.ran();
    assert!(ran.len() <= 2, "{at}: run {} times", ran.len());
    for result in &results {
        assert_eq!(result.fence, results[0].fence, "{at}");
        assert_eq!(result.bytes, results[0].bytes, "{at}");
        assert!(ran.contains(&result.fence), "{at}");
    }
    has_blown
}

#[tokio::test(start_paused = true)]
async fn a_caller_that_was_paused_commits_nothing_over_the_next_one() {
    for size in SIZES {
        for is_next_done in [false, true] {
            what_was_sent_late_changes_nothing(size, is_next_done).await;
        }
    }
}

/// What a paused caller sent is carried out once the next one has begun, or is done.
async fn what_was_sent_late_changes_nothing(size: usize, is_next_done: bool) {
    let world = World::new(size);
    let (paused, next, later) = (world.caller(), world.caller(), world.caller());
    let run = paused.begin().await;
    let all: Vec<usize> = (0..size).collect();
    paused.set(&all, Fault::Frozen);
    let end = world.ambient.clock.now() + TTL * 3;
    let committing = within(&*world.ambient.clock, end, run.commit("late"));
    let outcome = committing.await.expect("it gives up at its deadline");
    let error = outcome.expect_err("nobody answered");
    assert_eq!(error.effect(), Effect::Unknown, "{size} members");
    world.pass(TTL).await;
    let run = next.begin().await;
    let thaw = async || {
        paused.set(&all, Fault::None);
        world.pass(Duration::from_secs(5)).await;
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
        assert_eq!(found, (&b"in time"[..], committed.fence), "{size} members");
    }
}

#[tokio::test(start_paused = true)]
async fn a_late_commit_is_told_that_somebody_else_has_begun() {
    for size in SIZES {
        let world = World::new(size);
        let (slow, next) = (world.caller(), world.caller());
        let run = slow.begin().await;
        let all: Vec<usize> = (0..size).collect();
        // Cut off until its lease is over, without having sent anything.
        slow.set(&all, Fault::Unreachable);
        world.pass(TTL * 2).await;
        let other = next.begin().await;
        slow.set(&all, Fault::None);
        world.pass(Duration::from_secs(2)).await;
        let error = run.commit("late").await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Fenced, "{error}");
        assert_eq!(error.effect(), Effect::None, "{error}");
        assert!(error.to_string().contains("pay/17"), "{error}");
        other.commit("in time").await.unwrap();
        assert_eq!(&*slow.done().await.bytes, b"in time");
    }
}

#[tokio::test(start_paused = true)]
async fn a_commit_after_the_deadline_stands_if_nobody_has_begun() {
    for size in SIZES {
        let world = World::new(size);
        let caller = world.caller();
        let run = caller.begin().await;
        let all: Vec<usize> = (0..size).collect();
        caller.set(&all, Fault::Unreachable);
        world.pass(TTL * 2).await;
        assert!(!run.guard().is_valid());
        caller.set(&all, Fault::None);
        world.pass(Duration::from_secs(2)).await;
        run.commit("late").await.unwrap();
        assert_eq!(&*world.caller().done().await.bytes, b"late");
    }
}

/// Of a result that one member has, the next caller that hears of it makes one that all will find.
#[tokio::test(start_paused = true)]
async fn a_result_that_few_members_have_is_taken_up_before_it_is_told() {
    let world = World::new(3);
    let caller = world.caller();
    let run = caller.begin().await;
    let fence = run.guard().fence();
    caller.set(&[1, 2], Fault::Unreachable);
    let error = run.commit("at one").await.unwrap_err();
    assert_eq!(error.effect(), Effect::Unknown, "{error}");
    assert_eq!(error.kind(), ErrorKind::NoQuorum, "{error}");
    world.pass(TTL).await;

    let next = world.caller();
    next.set(&[2], Fault::Unreachable);
    let looked = next
        .client
        .record("pay/17")
        .lasting(Once::DEFAULT_RETENTION)
        .read()
        .await
        .unwrap();
    assert!(!looked.settled && looked.written.is_some(), "{looked:?}");
    assert_eq!(next.once().result().await.unwrap(), None, "not for certain");
    let result = next.done().await;
    assert_eq!((&*result.bytes, result.fence), (&b"at one"[..], fence));

    let last = world.caller();
    last.set(&[0], Fault::Unreachable);
    next.set(&[2], Fault::None);
    let result = last.done().await;
    assert_eq!((&*result.bytes, result.fence), (&b"at one"[..], fence));
}

#[tokio::test(start_paused = true)]
async fn who_comes_meanwhile_waits_or_is_told() {
    let world = World::new(3);
    let (first, other) = (world.caller(), world.caller());
    let run = first.begin().await;
    match other.once().try_begin().await.unwrap() {
        OnceStart::InProgress(Some(holder)) => assert_eq!(holder.owner, Some(run.guard().owner())),
        start => panic!("{start:?}"),
    }
    let wait = Duration::from_secs(5);
    let began = world.ambient.clock.now();
    let waited = other.once().wait(wait).begin().await.unwrap();
    assert!(matches!(waited, OnceStart::InProgress(_)), "{waited:?}");
    assert!(world.ambient.clock.now().since(began) >= wait);
    let once = other.once().wait(wait);
    let error = world.call(&once).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Busy);
    let once = other.once();
    let (waited, committed) = tokio::join!(once.begin(), async {
        world.pass(TTL * 3).await;
        run.commit("done").await
    });
    match waited.unwrap() {
        OnceStart::Done(result) => assert_eq!(result.fence, committed.unwrap().fence),
        start => panic!("{start:?}"),
    }
}

#[tokio::test(start_paused = true)]
async fn another_payload_under_the_same_name_is_refused() {
    let world = World::new(1);
    let caller = world.caller();
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
    world.pass(Duration::from_secs(1)).await;
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
async fn what_fails_is_run_again_and_what_is_no_longer_kept_too() {
    for size in SIZES {
        let world = World::new(size);
        let caller = world.caller();
        let once = caller.once().retention(Duration::from_secs(3600));
        let failed = once
            .run(async |_| Err::<String, _>("declined"))
            .await
            .unwrap();
        assert_eq!(failed.unwrap_err(), "declined");
        let first = world.call(&once).await.unwrap();
        world.pass(Duration::from_secs(3590)).await;
        assert_eq!(world.call(&once).await.unwrap().fence, first.fence);
        world.pass(Duration::from_secs(11)).await;
        let second = world.call(&once).await.unwrap();
        assert!(second.fence > first.fence);
        assert_eq!(world.ran(), [first.fence, second.fence]);
    }
}

#[tokio::test(start_paused = true)]
async fn a_body_is_cancelled_once_its_guard_is_lost_and_the_next_one_runs() {
    let world = World::new(3);
    let (first, next) = (world.caller(), world.caller());
    let once = first.once();
    let body = async |_| {
        first.set(&[0, 1, 2], Fault::Unreachable);
        std::future::pending::<Result<String, String>>().await
    };
    let error = once.run(body).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Lost, "{error}");
    let once = next.once();
    world.call(&once).await.unwrap();
    assert_eq!(world.ran().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn members_that_keep_nothing_are_named_and_nothing_is_run() {
    let world = World::new(3);
    for store in &world.stores[1..] {
        store.claim_durable(false);
    }
    let caller = world.caller();
    for error in [
        caller.once().begin().await.unwrap_err(),
        caller.once().result().await.unwrap_err(),
    ] {
        assert_eq!(error.kind(), ErrorKind::Unsupported, "{error}");
        let text = error.to_string();
        assert!(
            text.contains("2 of 3 servers are not durable: m1, m2"),
            "{text}"
        );
    }
    // One that does not answer is not refused, and not counted either once it does.
    let unheard = world.caller();
    unheard.set(&[1, 2], Fault::Unreachable);
    let error = unheard.once().try_begin().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NoQuorum, "{error}");
    let lasting = world.caller();
    let error = lasting
        .client
        .record("x")
        .lasting(Once::DEFAULT_RETENTION)
        .read()
        .await
        .unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unsupported, "{error}");
    assert!(error.to_string().contains("m2: does not keep"), "{error}");
    lasting.client.record("x").read().await.unwrap();
    let alone = World::new(1);
    alone.stores[0].claim_durable(false);
    let caller = alone.caller();
    let once = caller.once();
    alone.call(&once).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_member_that_was_seen_to_keep_nothing_is_named_though_it_says_that_it_keeps_all() {
    let world = World::new(3);
    let looking = world.caller();
    let durable_by_card = async || {
        let health = looking.client.health().await.unwrap();
        let presence = health[1].presence.as_ref().unwrap();
        presence.card.as_ref().is_none_or(|card| card.durable)
    };
    assert!(durable_by_card().await);
    world.stores[1].claim_durable(false);
    let end = world.ambient.clock.now() + TTL * 10;
    while durable_by_card().await {
        assert!(world.ambient.clock.now() < end, "nobody noted it");
        world.pass(Duration::from_secs(1)).await;
    }
    world.stores[1].claim_durable(true);
    let error = world.caller().once().begin().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unsupported, "{error}");
    let text = error.to_string();
    assert!(
        text.contains("1 of 3 servers are not durable: m1"),
        "{text}"
    );
}

#[tokio::test(start_paused = true)]
async fn values_that_break_a_rule_are_refused_before_anything_is_run() {
    let world = World::new(1);
    let caller = world.caller();
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
        text.contains("retention of 0ns") && text.contains("from 1s"),
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
    world.pass(Duration::from_secs(1)).await;
    caller.begin().await.commit(&longest).await.unwrap();
    assert_eq!(&*caller.done().await.bytes, &longest[..]);
    assert!(world.ran().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_record_of_something_else_is_no_request() {
    let world = World::new(1);
    let caller = world.caller();
    let guard = caller.client.lock("pay/17").acquire().await.unwrap();
    let record = guard.record();
    record.write(*b"10.0.0.7:8080", TTL).await.unwrap();
    guard.release().await.unwrap();
    let error = caller.once().begin().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Corrupt, "{error}");
}

/// The result is at members 0 and 1. Member 1 then loses its data.
async fn result_at_one_of_three(world: &World) -> OnceResult {
    let first = world.caller();
    first.set(&[2], Fault::Unreachable);
    let result = world.call(&first.once()).await.expect("a result");
    world.stores[1].forget_everything();
    // A client gives it a new card, and it counts for locks again.
    first.set(&[2], Fault::None);
    first.client.health().await.expect("an answer");
    world.pass(Duration::from_secs(62)).await;
    let guard = first.client.lock("other").acquire().await;
    guard.expect("a lock").release().await.expect("an answer");
    result
}

#[tokio::test(start_paused = true)]
async fn member_with_a_new_disk_denies_no_result() {
    let world = World::new(3);
    let result = result_at_one_of_three(&world).await;
    let (slow, cut_off, late) = (world.caller(), world.caller(), world.caller());
    slow.set(&[0], Fault::Slow(Duration::from_millis(20)));
    let again = world.call(&slow.once()).await.unwrap();
    assert_eq!((again.fence, &again.bytes), (result.fence, &result.bytes));
    cut_off.set(&[0], Fault::Unreachable);
    let error = world.call(&cut_off.once()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NoQuorum);
    let text = error.to_string();
    assert!(
        text.contains("cannot say that a result does not exist"),
        "{text}"
    );
    assert_eq!(world.ran().len(), 1);
    // The result is over, and the member has lost nothing for as long.
    world.pass(Once::DEFAULT_RETENTION + WAIT * 2).await;
    late.set(&[0], Fault::Unreachable);
    world.call(&late.once()).await.unwrap();
    assert_eq!(world.ran().len(), 2);
}

#[tokio::test(start_paused = true)]
async fn member_with_a_new_disk_takes_part_in_nothing_lasting() {
    let world = World::new(3);
    result_at_one_of_three(&world).await;
    // Member 2 never heard of the result, and member 1 has forgotten it.
    let caller = world.caller();
    let guard = caller.once().lock().acquire().await.unwrap();
    caller.set(&[0], Fault::Unreachable);
    let record = guard.record().lasting(Once::DEFAULT_RETENTION);
    let error = record.write(*b"second", TTL).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NoQuorum, "{error}");
    assert_eq!(error.effect(), Effect::Unknown);
    // What need not outlive a lost disk is left to it.
    guard.record().write(*b"second", TTL).await.unwrap();
}
