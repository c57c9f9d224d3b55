//! The stream of what happens to a client's locks.

use leasehold::store::{Report, background};
use leasehold::telemetry::{LockEvent, LockEvents};
use leasehold::{Fence, Key, LostReason};
use leasehold_testkit::{Fault, StoreCall};

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

#[track_caller]
fn assert_same(event: LockEvent, expected: LockEvent) {
    assert_eq!(format!("{event:?}"), format!("{expected:?}"));
}

#[tokio::test(start_paused = true)]
async fn grant_and_end_are_reported() {
    let fixture = Fixture::new();
    let mut events = fixture.client.events();
    let lock = fixture.client.lock("deploy");

    lock.acquire().await.unwrap().release().await.unwrap();
    let fence = acquired(next(&mut events).await);
    let released = LockEvent::Released { key: key(), fence };
    assert_same(next(&mut events).await, released);

    let handle = lock.acquire().await.unwrap().into_handle().unwrap();
    let fence = acquired(next(&mut events).await);
    let detached = LockEvent::Detached { key: key(), fence };
    assert_same(next(&mut events).await, detached);

    let guard = fixture.client.adopt(&handle).await.unwrap();
    assert_eq!(acquired(next(&mut events).await), fence);
    drop(guard);
    let released = LockEvent::Released { key: key(), fence };
    assert_same(next(&mut events).await, released);
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
    assert_same(next(&mut events).await, lost);
    let _ = guard.release().await;
    drop(fixture);
    assert!(events.next().await.is_none(), "the client has ended");
}

#[tokio::test(start_paused = true)]
async fn contention_is_reported_when_it_begins() {
    let fixture = Fixture::new();
    let mut events = fixture.client.events();
    let guard = fixture.client.lock("deploy").acquire().await.unwrap();
    let fence = acquired(next(&mut events).await);
    let contended = || LockEvent::Contended {
        key: key(),
        fence,
        waiters: 1,
    };

    for _ in 0..2 {
        let other = fixture.other_client();
        let waiting = background::spawn(other.lock("deploy").acquire());
        assert_same(next(&mut events).await, contended());
        fixture.pass(2 * TTL).await;
        waiting.abort();
        // One more look finds the queue empty.
        fixture.pass(TTL).await;
    }
    guard.release().await.unwrap();
    let released = LockEvent::Released { key: key(), fence };
    assert_same(next(&mut events).await, released);
}

#[tokio::test(start_paused = true)]
async fn wait_is_reported_when_its_reason_changes() {
    let fixture = Fixture::new();
    let (other, _) = fixture.client_apart();
    let held = other.lock("deploy").acquire().await.unwrap();
    let mut events = fixture.client.events();
    let reason = async |events: &mut LockEvents| match next(events).await {
        LockEvent::Waiting { key: of, reason } if of == key() => reason,
        other => panic!("{other:?}"),
    };

    fixture.store.set(Fault::Unreachable);
    let waiting = background::spawn(fixture.client.lock("deploy").acquire());
    let outage = reason(&mut events).await;
    assert!(matches!(outage, Report::Unavailable(error) if error.is_unreachable()));
    // Attempts that fail in the same way say nothing new.
    fixture.pass(TTL / 2).await;
    fixture.store.set(Fault::None);
    assert!(matches!(reason(&mut events).await, Report::Busy(_)));

    held.release().await.unwrap();
    let guard = waiting.await.unwrap().unwrap();
    assert_eq!(acquired(next(&mut events).await), guard.fence());

    let busy = fixture.client.lock("deploy").try_acquire().await.unwrap();
    assert!(busy.is_none(), "a call that does not wait reports nothing");
    let fence = guard.fence();
    guard.release().await.unwrap();
    let released = LockEvent::Released { key: key(), fence };
    assert_same(next(&mut events).await, released);
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
    assert_same(next(&mut events).await, LockEvent::Missed(1200 - 1024));
    acquired(next(&mut events).await);
}
