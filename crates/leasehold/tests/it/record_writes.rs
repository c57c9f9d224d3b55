//! What becomes of values that cover others, that two guards of one grant write, or that nobody decides on.

use std::time::Duration;

use leasehold::clock::within;
use leasehold::{
    Effect, ErrorKind, Fence, Guard, HeldRecord, Key, Once, OnceStart, RecordKey, Store as _,
};
use leasehold_testkit::Fault;

use crate::callers::{Caller, World};
use crate::scene::TTL;

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

/// Has a greater fence open the record at the store of this place.
async fn open_at(world: &World, place: usize) {
    let record = RecordKey::new(Key::new("pay/17").expect("a key"));
    let records = world.stores[place].records().expect("records");
    let opened = records.open_record(&record, Fence::MAX).await;
    opened.expect("an answer");
}

#[tokio::test(start_paused = true)]
async fn a_result_that_is_over_lets_nothing_older_show_at_a_member_that_missed_it() {
    let world = World::new(3);
    let (first, next) = (world.caller(), world.caller());
    let once = first.once().retention(HOUR);
    let OnceStart::Run(run) = once.try_begin().await.unwrap() else {
        panic!("nobody has begun");
    };
    first.set(&[2], Fault::Unreachable);
    run.commit("done").await.unwrap();
    world.pass(HOUR + SECOND).await;
    // What member 2 has is what counts.
    next.set(&[0], Fault::Unreachable);
    let other = next.client.once("pay/17").payload("EUR 13").ttl(TTL);
    let start = other.try_begin().await;
    assert!(matches!(start, Ok(OnceStart::Run(_))), "{start:?}");
}

#[tokio::test(start_paused = true)]
async fn what_was_given_up_covers_a_result_of_few_members_for_as_long_as_that_is_kept() {
    let world = World::new(3);
    let (first, next, last) = (world.caller(), world.caller(), world.caller());
    let month = HOUR * 24 * 30;
    let begin = async |caller: &Caller| {
        let once = caller.once().retention(month);
        match once.try_begin().await {
            Ok(OnceStart::Run(run)) => run,
            other => panic!("{other:?}"),
        }
    };
    let run = begin(&first).await;
    first.set(&[0, 1], Fault::Unreachable);
    let error = run.commit("at one").await.unwrap_err();
    assert_eq!(error.effect(), Effect::Unknown, "{error}");
    world.pass(TTL).await;
    next.set(&[2], Fault::Unreachable);
    begin(&next).await.give_up().await.unwrap();
    world.pass(month - HOUR).await;
    last.set(&[1], Fault::Unreachable);
    assert_eq!(last.once().result().await.unwrap(), None);
    drop(begin(&last).await);
}

#[tokio::test(start_paused = true)]
async fn a_guard_that_was_taken_back_writes_after_the_one_it_was() {
    for size in [1, 3] {
        let world = World::new(size);
        let caller = world.caller();
        let guard = hold(&caller).await;
        for text in ["one", "two", "three"] {
            guard.record().write(text.as_bytes(), HOUR).await.unwrap();
        }
        let mut handle = guard.into_handle().unwrap();
        for text in ["four", "five"] {
            let guard = caller.client.adopt(&handle).await.unwrap();
            let written = guard.record().write(text.as_bytes(), HOUR).await;
            written.unwrap_or_else(|error| panic!("{size} members, {text}: {error}"));
            assert_eq!(found(&caller).await, text.as_bytes());
            handle = guard.into_handle().unwrap();
            world.pass(SECOND).await;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_write_that_stays_undecided_ends_though_the_guard_is_renewed() {
    let world = World::new(3);
    let caller = world.caller();
    let guard = hold(&caller).await;
    open_at(&world, 0).await;
    // One refuses, one takes it, one is silent; two of them renew the lease.
    caller.set(&[2], Fault::Unreachable);
    let end = world.ambient.clock.now() + TTL * 3;
    let record = guard.record();
    let writing = within(&*world.ambient.clock, end, record.write(*b"x", HOUR));
    let error = writing.await.expect("it ends").unwrap_err();
    assert_eq!(error.effect(), Effect::Unknown, "{error}");
    assert_eq!(error.kind(), ErrorKind::NoQuorum, "{error}");
    assert!(guard.is_valid());
}

#[tokio::test(start_paused = true)]
async fn a_write_that_a_majority_refused_ends_at_once() {
    let world = World::new(3);
    let caller = world.caller();
    let guard = hold(&caller).await;
    open_at(&world, 0).await;
    open_at(&world, 1).await;
    let end = world.ambient.clock.now() + SECOND;
    let record = guard.record();
    let writing = within(&*world.ambient.clock, end, record.write(*b"x", HOUR));
    let error = writing.await.expect("it ends").unwrap_err();
    assert_eq!(error.effect(), Effect::Unknown, "{error}");
    assert_eq!(error.kind(), ErrorKind::Fenced, "{error}");
}

#[tokio::test(start_paused = true)]
async fn a_write_that_was_not_heard_and_then_refused_may_have_been_taken_up() {
    let world = World::new(1);
    let caller = world.caller();
    let guard = hold(&caller).await;
    // It is carried out, and its answer comes when nobody waits for it any more.
    caller.set(&[0], Fault::Slow(SECOND * 4));
    let record = guard.record();
    let (wrote, ()) = tokio::join!(record.write(*b"x", HOUR), async {
        world.pass(SECOND).await;
        open_at(&world, 0).await;
        caller.set(&[0], Fault::None);
    });
    let error = wrote.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Fenced, "{error}");
    assert_eq!(error.effect(), Effect::Unknown, "{error}");
    assert_eq!(found(&caller).await, b"x");
}

#[tokio::test(start_paused = true)]
async fn what_a_guard_wrote_first_and_comes_late_does_not_replace_what_it_wrote_then() {
    for size in [1, 3] {
        let world = World::new(size);
        let caller = world.caller();
        let guard = hold(&caller).await;
        let all: Vec<usize> = (0..size).collect();
        caller.set(&all, Fault::Late(SECOND));
        let record = guard.record();
        let soon = world.ambient.clock.now() + SECOND / 10;
        let first = within(&*world.ambient.clock, soon, record.write(*b"begun", HOUR));
        assert!(first.await.is_none(), "it is on its way");
        caller.set(&all, Fault::None);
        record.write(*b"done", HOUR).await.unwrap();
        assert_eq!(found(&caller).await, b"done");
        world.pass(SECOND * 3).await;
        assert_eq!(found(&caller).await, b"done", "{size} members");
    }
}

#[tokio::test(start_paused = true)]
async fn a_guard_that_ended_longer_ago_than_stores_remember_writes_nothing() {
    let world = World::new(1);
    let caller = world.caller();
    let guard = hold(&caller).await;
    let record = guard.record();
    record.write(*b"before", HOUR * 24 * 30).await.unwrap();
    caller.set(&[0], Fault::Unreachable);
    world.pass(HeldRecord::TOO_LATE - HOUR).await;
    caller.set(&[0], Fault::None);
    assert!(!guard.is_valid());
    record.write(*b"in time", HOUR * 24 * 30).await.unwrap();
    world.pass(HOUR * 2).await;
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

#[tokio::test(start_paused = true)]
async fn a_member_that_forgot_what_it_had_has_no_word_until_its_wait_is_over() {
    let world = World::new(3);
    let (caller, other) = (world.caller(), world.caller());
    let guard = hold(&caller).await;
    caller.set(&[2], Fault::Unreachable);
    guard.record().write(*b"value", HOUR).await.unwrap();
    world.stores[1].restart(false);
    // Of the two that are left one forgot it, and the other never heard of it.
    other.set(&[0], Fault::Unreachable);
    let error = other.client.record("pay/17").read().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NoQuorum, "{error}");
    other.set(&[0], Fault::None);
    let error = other.client.record("pay/17").read().await;
    let reading = error.expect("the first and the third count");
    assert_eq!(&*reading.written.expect("a value").bytes, b"value");
}

#[tokio::test(start_paused = true)]
async fn a_write_at_a_member_that_does_not_count_may_be_found_later() {
    let world = World::new(3);
    let caller = world.caller();
    let guard = hold(&caller).await;
    world.stores[2].restart(false);
    open_at(&world, 0).await;
    open_at(&world, 1).await;
    let error = guard.record().write(*b"x", HOUR).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Fenced, "{error}");
    assert_eq!(error.effect(), Effect::Unknown, "{error}");
}

#[tokio::test(start_paused = true)]
async fn what_is_taken_up_is_kept_for_as_long_as_it_was_to_be() {
    let world = World::new(3);
    let (first, next) = (world.caller(), world.caller());
    let guard = hold(&first).await;
    first.set(&[1, 2], Fault::Unreachable);
    guard.record().write(*b"at one", HOUR).await.unwrap_err();
    world.pass(TTL * 2).await;
    next.set(&[2], Fault::Unreachable);
    let guard = hold(&next).await;
    let taken_up = guard.record().open().await.unwrap().expect("a value");
    assert!(taken_up.remaining > HOUR - TTL * 4, "{taken_up:?}");
    next.set(&[0], Fault::Unreachable);
    next.set(&[2], Fault::None);
    world.pass(HOUR - TTL * 4).await;
    let last = world.caller();
    last.set(&[2], Fault::Unreachable);
    assert_eq!(found(&last).await, b"at one");
}
