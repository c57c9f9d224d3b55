//! Which runtime reads the replies.

use std::panic;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};
use std::time::Duration;

use leasehold::clock::{Clock as _, SystemClock};
use leasehold::store::background;
use leasehold_quorum::{Event, Outcome};
use leasehold_testkit::servers::{RedisSet, until};
use tokio::runtime::{Builder, Runtime};

use super::fixture::{Client, granted, locks};

fn runtime() -> Runtime {
    Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a runtime")
}

async fn cycle(client: &Client, key: &str) {
    let (lock_request, _) = client.acquire(key).await;
    client.release(lock_request).await;
}

#[test]
fn runtimes_may_come_and_go() {
    let set = RedisSet::start(3);
    let client = Client::of(&set);
    for _ in 0..5 {
        runtime().block_on(cycle(&client, "lock"));
        pollster::block_on(cycle(&client, "lock"));
    }
    until("the locks are free", || locks(&set).is_empty());
}

#[test]
fn idle_runtime_holds_up_no_other() {
    let set = RedisSet::start(1);
    let client = Client::of(&set);
    let idle = runtime();
    // A task of this runtime reads from now on, and is not polled again.
    idle.block_on(cycle(&client, "lock"));
    for _ in 0..20 {
        pollster::block_on(cycle(&client, "lock"));
    }
    drop(idle);
}

#[test]
fn blocked_runtime_holds_up_no_other() {
    let set = RedisSet::start(1);
    let client = Arc::new(Client::of(&set));
    let (blocks, is_blocked) = mpsc::channel();
    let (unblock, until_then) = mpsc::channel::<()>();
    let blocked = Arc::clone(&client);
    background::thread("blocked", move || {
        runtime().block_on(async {
            cycle(&blocked, "lock").await;
            blocks.send(()).unwrap();
            // A mistake of a caller.
            let _ = until_then.recv();
        });
    })
    .unwrap();
    is_blocked.recv().unwrap();
    runtime().block_on(async {
        for _ in 0..20 {
            cycle(&client, "lock").await;
        }
    });
    drop(unblock);
}

#[test]
fn runtime_without_io_gets_its_replies() {
    static PANICS: AtomicUsize = AtomicUsize::new(0);
    let others = panic::take_hook();
    panic::set_hook(Box::new(move |info| {
        let message = info.payload_as_str().unwrap_or_default();
        PANICS.fetch_add(
            usize::from(message.contains("IO is disabled")),
            Ordering::Relaxed,
        );
        others(info);
    }));
    let set = RedisSet::start(1);
    let client = Client::of(&set);
    let mut builder = Builder::new_current_thread();
    for runtime in [
        builder.build().unwrap(),
        builder.enable_time().build().unwrap(),
    ] {
        for _ in 0..20 {
            runtime.block_on(cycle(&client, "lock"));
        }
    }
    assert_eq!(PANICS.load(Ordering::Relaxed), 0);
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    times[times.len() / 2]
}

fn timed(body: impl FnOnce()) -> Duration {
    let began = SystemClock.now();
    body();
    SystemClock.now().since(began)
}

/// The client's thread looks for what others leave this often.
const TICK: Duration = Duration::from_millis(10);

#[test]
fn entered_runtime_gets_no_replies() {
    let set = RedisSet::start(1);
    let client = Client::of(&set);
    let idle = runtime();
    let _entered = idle.enter();
    let times = (0..101).map(|_| timed(|| pollster::block_on(cycle(&client, "lock"))));
    let median = median(times.collect());
    assert!(median < TICK, "{median:?}");
    assert!(idle.metrics().num_alive_tasks() <= 1);
}

#[test]
fn future_may_move_to_another_runtime() {
    let set = RedisSet::start(1);
    let client = Client::of(&set);
    let (first, second) = (runtime(), runtime());
    let times = (0..101).map(|_| {
        timed(|| {
            let mut acquire = Box::pin(cycle(&client, "lock"));
            let polled = first.block_on(async { futures_util::poll!(&mut acquire) });
            // On a busy machine, all answers may be there at once.
            if polled.is_pending() {
                second.block_on(acquire);
            }
        })
    });
    let median = median(times.collect());
    assert!(median < TICK, "{median:?}");
    assert!(first.metrics().num_alive_tasks() <= 1);
}

#[test]
fn replaced_readers_end() {
    let set = RedisSet::start(1);
    let client = Client::of(&set);
    let runtime = runtime();
    for _ in 0..5 {
        runtime.block_on(async {
            for _ in 0..20 {
                cycle(&client, "lock").await;
            }
        });
        // Until the client's thread reads.
        let fast = || timed(|| pollster::block_on(cycle(&client, "lock"))) < TICK / 2;
        until("the thread reads", || (0..5).all(|_| fast()));
    }
    runtime.block_on(async { tokio::task::yield_now().await });
    assert!(runtime.metrics().num_alive_tasks() <= 1);
}

/// How long a lock takes, in the median, from the client that frees it to a waiter on another thread. `disturb` uses
/// the client of the waiter before.
fn hand_over(disturb: impl Fn(&Client)) -> Duration {
    let set = RedisSet::start(1);
    let (waiting, other) = (Arc::new(Client::of(&set)), Client::of(&set));
    let (events, event) = mpsc::channel();
    let (begins, begin) = mpsc::channel::<()>();
    let waiter = Arc::clone(&waiting);
    background::thread("waiter", move || {
        let mut builder = Builder::new_multi_thread();
        let runtime = builder.worker_threads(1).enable_all().build().unwrap();
        while begin.recv().is_ok() {
            runtime.block_on(async {
                let lock_request = waiter.lock_request("lock");
                let mut call = waiter.begin_acquire(Arc::clone(&lock_request));
                assert!(matches!(call.event().await, Event::Progress(_)));
                events.send(()).unwrap();
                let Outcome::Acquired(acquired) = call.await else {
                    panic!("not acquired")
                };
                events.send(()).unwrap();
                waiter.release(granted(&lock_request, &acquired)).await;
                events.send(()).unwrap();
            });
        }
    })
    .unwrap();
    let times = (0..15).map(|_| {
        let (held, _) = pollster::block_on(other.acquire("lock"));
        begins.send(()).unwrap();
        event.recv().unwrap();
        disturb(&waiting);
        let time = timed(|| {
            pollster::block_on(other.release(held));
            event.recv().unwrap();
        });
        event.recv().unwrap();
        time
    });
    median(times.collect())
}

/// Without a reader, the next heartbeat takes half a second in the mean.
const PROMPT: Duration = Duration::from_millis(100);

#[test]
fn idle_runtime_delays_no_turn() {
    let idle = runtime();
    let took = hand_over(|client| {
        idle.block_on(async {
            for _ in 0..3 {
                cycle(client, "lock of the idle runtime").await;
            }
        });
    });
    assert!(took < PROMPT, "{took:?}");
}

#[test]
fn blocking_in_a_runtime_delays_no_turn() {
    let blocked = runtime();
    let took = hand_over(|client| {
        blocked.block_on(async {
            cycle(client, "lock of the blocked runtime").await;
            for _ in 0..3 {
                pollster::block_on(cycle(client, "lock of the blocked runtime"));
            }
        });
    });
    assert!(took < PROMPT, "{took:?}");
    assert!(blocked.metrics().num_alive_tasks() <= 2);
}
