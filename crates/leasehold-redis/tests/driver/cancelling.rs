use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::Poll;
use std::time::Duration;

use leasehold::clock::{Clock as _, SystemClock, within};
use leasehold::store::background;
use leasehold_quorum::{Event, Outcome};
use leasehold_testkit::servers::{RedisSet, Reply, until};

use super::fixture::{Client, draw, granted, locks};

const KEYS: usize = 16;
const TASKS: usize = 64;
const ROUNDS: usize = 40;

/// Polls a future a few times, and then drops it unless it is ready.
async fn poll_times<F: Future>(times: u64, future: F) -> Option<F::Output> {
    let mut future = pin!(future);
    for _ in 0..times {
        let polled = poll_fn(|context| Poll::Ready(future.as_mut().poll(context))).await;
        if let Poll::Ready(output) = polled {
            return Some(output);
        }
        tokio::task::yield_now().await;
    }
    None
}

async fn soak(client: Arc<Client>, holders: Arc<Vec<AtomicUsize>>) -> usize {
    let mut held = 0;
    for _ in 0..ROUNDS {
        let key = draw(KEYS as u64) as usize;
        let lock_request = client.lock_request(&format!("lock-{key}"));
        let call = client.begin_acquire(Arc::clone(&lock_request));
        let outcome = match draw(3) {
            0 => Some(call.await),
            _ => poll_times(draw(200), call).await,
        };
        let Some(outcome) = outcome else { continue };
        let Outcome::Acquired(acquired) = outcome else {
            panic!("{outcome:?}");
        };
        assert_eq!(
            holders[key].fetch_add(1, Ordering::SeqCst),
            0,
            "two holders"
        );
        held += 1;
        tokio::task::yield_now().await;
        assert_eq!(holders[key].fetch_sub(1, Ordering::SeqCst), 1);
        let release = client.begin_release(granted(&lock_request, &acquired));
        if draw(2) == 0 {
            release.await;
        }
    }
    held
}

async fn run(servers: usize) {
    let set = RedisSet::start(servers);
    let client = Arc::new(Client::of(&set));
    let holders = Arc::new((0..KEYS).map(|_| AtomicUsize::new(0)).collect::<Vec<_>>());
    let tasks = (0..TASKS).map(|_| {
        let soak = soak(Arc::clone(&client), Arc::clone(&holders));
        background::spawn(soak)
    });
    let mut held = 0;
    for task in tasks.collect::<Vec<_>>() {
        held += task.await.expect("a task");
    }
    assert!(held > TASKS, "held {held} times");
    until("nothing is left", || locks(&set).is_empty());
    client.driver.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn cancelled_calls_leave_nothing_on_one_server() {
    run(1).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn cancelled_calls_leave_nothing_on_three_servers() {
    run(3).await;
}

#[tokio::test]
async fn cancelled_calls_leave_nothing_on_one_thread() {
    run(3).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn dropped_writer_passes_its_duty_on() {
    let set = RedisSet::start(1);
    let client = Client::without_timers(&set);
    let (lock_request, _) = client.acquire("lock-0").await;
    // A call that is alone would write at once.
    client.acquire("lock-1").await;
    let mut waiter = client.begin_acquire(client.lock_request("lock-1"));
    let told = waiter.event().await;
    assert!(matches!(told, Event::Progress(_)), "{told:?}");
    // This call begins a batch, and is never polled.
    drop(client.begin_release(lock_request));
    let limit = SystemClock.now() + Duration::from_secs(60);
    let other = Client::of(&set);
    let acquired = within(&SystemClock, limit, other.acquire("lock-0")).await;
    assert!(acquired.is_some(), "the thread takes over");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn grant_that_no_caller_took_is_released() {
    let set = RedisSet::start(1);
    let server = set.iter().next().expect("a server");
    let (one, other) = (Client::of(&set), Client::of(&set));
    for sees_busy in [true, false] {
        let (lock_request, _) = one.acquire("lock").await;
        let waiter = other.lock_request("lock");
        let mut waiting = other.begin_acquire(Arc::clone(&waiter));
        if sees_busy {
            let told = waiting.event().await;
            assert!(matches!(told, Event::Progress(_)), "{told:?}");
        }
        until("the waiter is queued", || locks(&set).len() == 2);
        one.release(lock_request).await;
        let owner = Reply::Bulk(waiter.owner.to_string());
        until("the waiter has the lock", || {
            server.command(&["GET", "lock"]) == owner
        });
        drop(waiting);
        until("the lock is free", || locks(&set).is_empty());
    }
}

/// A caller may begin a batch and then block its thread.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn unpolled_writer_holds_up_no_other() {
    let set = RedisSet::start(1);
    let client = Client::without_timers(&set);
    let (lock_request, _) = client.acquire("lock-0").await;
    // This call is alone and writes at once.
    let busy = client.begin_acquire(client.lock_request("lock-1"));
    let writer = client.begin_release(lock_request);
    let follower = client.begin_acquire(client.lock_request("lock-2"));
    let both = async { tokio::join!(busy, follower) };
    let limit = SystemClock.now() + Duration::from_secs(60);
    let both = within(&SystemClock, limit, both).await;
    let (first, second) = both.expect("the thread takes over");
    assert!(matches!(first, Outcome::Acquired(_)), "{first:?}");
    assert!(matches!(second, Outcome::Acquired(_)), "{second:?}");
    drop(writer);
}
