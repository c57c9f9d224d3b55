//! The stream of what happens to a client's locks.

use leasehold::store::background;
use leasehold::telemetry::{LockEvent, LockEvents};
use leasehold::{Fence, Key, LostReason};
use leasehold_testkit::StoreCall;

use crate::fixture::{Fixture, TTL};

async fn next(events: &mut LockEvents) -> LockEvent {
    events.next().await.expect("an event")
}

fn key() -> Key {
    Key::new("deploy").expect("a key")
}

fn acquired(event: LockEvent) -> Fence {
    match event {
        LockEvent::Acquired { key: of, fence } if of == key() => fence,
        other => panic!("{other:?}"),
    }
}

#[tokio::test(start_paused = true)]
async fn grant_and_end_are_reported() {
    let fixture = Fixture::new();
    let mut events = fixture.client.events();
    let lock = fixture.client.lock("deploy");

    lock.acquire().await.unwrap().release().await.unwrap();
    let fence = acquired(next(&mut events).await);
    let released = LockEvent::Released { key: key(), fence };
    assert_eq!(next(&mut events).await, released);

    let handle = lock.acquire().await.unwrap().into_handle().unwrap();
    let fence = acquired(next(&mut events).await);
    let detached = LockEvent::Detached { key: key(), fence };
    assert_eq!(next(&mut events).await, detached);

    let guard = fixture.client.adopt(&handle).await.unwrap();
    assert_eq!(acquired(next(&mut events).await), fence);
    drop(guard);
    let released = LockEvent::Released { key: key(), fence };
    assert_eq!(next(&mut events).await, released);
}

#[tokio::test(start_paused = true)]
async fn loss_is_reported_once() {
    let fixture = Fixture::new();
    let mut events = fixture.client.events();
    let guard = fixture.client.lock("deploy").acquire().await.unwrap();
    let fence = acquired(next(&mut events).await);

    fixture.memory.forget(&key());
    guard.lost().await;
    let lost = LockEvent::Lost {
        key: key(),
        fence,
        reason: LostReason::Gone,
    };
    assert_eq!(next(&mut events).await, lost);
    let _ = guard.release().await;
    drop(fixture);
    assert_eq!(events.next().await, None, "the client has ended");
}

#[tokio::test(start_paused = true)]
async fn contention_is_reported_when_it_begins() {
    let fixture = Fixture::new();
    let mut events = fixture.client.events();
    let guard = fixture.client.lock("deploy").acquire().await.unwrap();
    let fence = acquired(next(&mut events).await);
    let contended = LockEvent::Contended {
        key: key(),
        fence,
        waiters: 1,
    };

    for _ in 0..2 {
        let other = fixture.other_client();
        let waiting = background::spawn(other.lock("deploy").acquire());
        assert_eq!(next(&mut events).await, contended);
        fixture.pass(2 * TTL).await;
        waiting.abort();
        // One more look finds the queue empty.
        fixture.pass(TTL).await;
    }
    guard.release().await.unwrap();
    let released = LockEvent::Released { key: key(), fence };
    assert_eq!(next(&mut events).await, released, "nothing in between");
}

#[tokio::test(start_paused = true)]
async fn waiters_are_looked_for_while_a_stream_exists() {
    let fixture = Fixture::new();
    let guard = fixture.client.lock("deploy").acquire().await.unwrap();
    let looks = || fixture.count(|call| matches!(call, StoreCall::Waiters(..)));
    fixture.pass(3 * TTL).await;
    assert_eq!(looks(), 0);

    let events = fixture.client.events();
    fixture.pass(TTL).await;
    let before = looks();
    assert!(before > 0);
    drop(events);
    fixture.pass(TTL).await;
    assert_eq!(looks(), before);
    drop(guard);
}

#[tokio::test(start_paused = true)]
async fn slow_reader_learns_what_it_missed() {
    let fixture = Fixture::new();
    let mut events = fixture.client.events();
    let lock = fixture.client.lock("deploy");
    for _ in 0..600 {
        lock.acquire().await.unwrap().release().await.unwrap();
    }
    assert_eq!(next(&mut events).await, LockEvent::Missed(1200 - 1024));
    acquired(next(&mut events).await);
}
