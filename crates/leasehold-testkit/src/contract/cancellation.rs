use std::future::Future;
use std::pin::pin;
use std::task::Poll;

use futures_util::future::{Either, select};
use leasehold::clock::{Clock as _, SystemClock, within};
use leasehold::store::ReleaseReply;
use leasehold::{Client, ErrorKind};

use super::fixture::{Fixture, LONG, TIMEOUT, free, granted, granted_in_time, now, released};
use crate::waiting::until_waiting;

/// Polls `future` until it ends, or drops it at await point number `awaits`.
pub(super) async fn up_to<F: Future>(awaits: usize, future: F) -> Option<F::Output> {
    let mut future = pin!(future);
    let mut pending = 0;
    std::future::poll_fn(|context| match future.as_mut().poll(context) {
        Poll::Ready(output) => Poll::Ready(Some(output)),
        Poll::Pending if pending == awaits => Poll::Ready(None),
        Poll::Pending => {
            pending += 1;
            Poll::Pending
        }
    })
    .await
}

/// More await points than any attempt has.
pub(super) const MANY: usize = 200;

pub(crate) async fn a7_dropped_attempt_leaves_nothing(fixture: &Fixture) {
    let store = fixture.open();
    for awaits in 0..MANY {
        let key = fixture.key();
        let request = fixture.request(&key, LONG);
        let ended = up_to(awaits, store.acquire(&request)).await;
        // The answer may be that it was freed already, or unknown. Only what follows counts.
        let _ = store.release(&request).await;
        let (next, _) = granted_in_time(fixture, &store, &key).await;
        released(&store, &next).await;
        if let Some(answer) = ended {
            assert!(answer.is_ok(), "{answer:?}");
            return;
        }
    }
    panic!("the attempt did not end after {MANY} await points");
}

pub(crate) async fn a7_dropped_wait_leaves_nothing(fixture: &Fixture) {
    let store = fixture.open();
    for (awaits, barges) in (0..20).flat_map(|awaits| [(awaits, false), (awaits, true)]) {
        let key = fixture.key();
        let holder = fixture.request(&key, LONG);
        granted(&store, &holder).await;
        let waiter = fixture.request(&key, LONG);
        let waiter = waiter.waiting(true).barging(barges);
        let waiting = up_to(awaits, store.acquire(&waiter));
        // Some waits have no further await point until the lock is free.
        let pause = pin!(fixture.pause());
        let ended = match select(pin!(waiting), pause).await {
            Either::Left((ended, _)) => ended,
            Either::Right(_) => None,
        };
        assert!(ended.is_none(), "beside its holder: {ended:?}");
        let left = store.release(&waiter).await;
        assert!(matches!(left, Ok(ReleaseReply::WasLost)), "{left:?}");
        released(&store, &holder).await;
        // This would be busy if the waiter still had a place.
        free(fixture, &store, &key).await;
    }
}

/// The caller keeps the attempt. The client releases it when the caller does not poll it for too long.
pub(crate) async fn a12_unpolled_attempt_is_released(fixture: &Fixture) {
    let store = fixture.open();
    for awaits in 0..8 {
        let key = fixture.key();
        let request = fixture.request(&key, LONG).waiting(true);
        let mut attempt = pin!(store.acquire(&request));
        let ended = up_to(awaits, attempt.as_mut()).await;
        fixture.pause().await;
        let releasing = within(
            &SystemClock,
            SystemClock.now() + TIMEOUT,
            store.release(&request),
        );
        // Only what follows counts.
        let _ = releasing.await.expect("an answer to the release");
        let (next, _) = granted_in_time(fixture, &store, &key).await;
        released(&store, &next).await;
        if ended.is_some() {
            return;
        }
    }
}

/// The process may end right after that, so nothing may need another poll.
pub(crate) async fn a12_closed_client_leaves_nothing(fixture: &Fixture) {
    let (store, client) = (fixture.open(), Client::new(fixture.open()));
    let key = fixture.key();
    let lock = client.lock(&key).ttl(LONG);
    let guard = lock.acquire().await.expect("a free lock");
    let mut events = client.events();
    let mut waits = pin!(lock.acquire());
    let is_queued = pin!(until_waiting(&mut events));
    let queued = select(waits.as_mut(), is_queued);
    let queued = within(&SystemClock, SystemClock.now() + TIMEOUT, queued).await;
    assert!(matches!(queued, Some(Either::Right(_))), "it does not wait");
    client.close(TIMEOUT).await.expect("all releases");
    assert!(!guard.is_valid());
    free(fixture, &store, &key).await;
    let ended = waits.await.expect_err("a wait of a closed client");
    assert_eq!(ended.kind(), ErrorKind::Closed);
}

pub(crate) async fn a7_dropped_acquisition_leaves_nothing(fixture: &Fixture) {
    let (store, client) = (fixture.open(), Client::new(fixture.open()));
    for awaits in 0..MANY {
        let key = fixture.key();
        let ended = up_to(awaits, client.lock(&key).ttl(LONG).acquire()).await;
        let complete = ended.is_some();
        // Drops a guard that was granted, as a future that held it would drop it.
        drop(ended);
        let (next, _) = granted_in_time(fixture, &store, &key).await;
        released(&store, &next).await;
        if complete && awaits > 0 {
            return;
        }
    }
    panic!("the acquisition did not end after {MANY} await points");
}

pub(crate) async fn f3_a_release_never_overtakes_its_own_attempt(fixture: &Fixture) {
    let store = fixture.open();
    for awaits in 0..4 {
        let key = fixture.key();
        let request = fixture.request(&key, LONG);
        let _ = up_to(awaits, store.acquire(&request)).await;
        let _ = store.release(&request).await;
        // If the release had overtaken the attempt, the attempt would take the lock now, or at the latest
        // when the next holder frees it.
        let (next, _) = granted_in_time(fixture, &store, &key).await;
        released(&store, &next).await;
        let began = now();
        for _ in 0..5 {
            free(fixture, &store, &key).await;
            fixture.pause().await;
        }
        assert!(began.elapsed() < TIMEOUT);
    }
}
