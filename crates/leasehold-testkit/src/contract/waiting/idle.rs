use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::select_all;
use leasehold::Key;
use leasehold::clock::{BootInstant, Clock, SystemClock, WallTime};
use leasehold::env::{Env, SystemEntropy};
use leasehold::store::{BoxFuture, Progress};

use crate::contract::fixture::{Fixture, LONG, granted, released, until};

/// The time of the wait, by the clock of the waiter.
const IDLE: Duration = Duration::from_secs(10);

/// The most requests in that time: one for each of the shortest pauses of a waiter that polls.
const REQUESTS_MAX: u64 = 1_000;

pub(crate) async fn w1_idle_wait_asks_rarely(fixture: &Fixture) {
    let (store, key) = (fixture.open(), fixture.key());
    let holder = fixture.request(&key, LONG);
    granted(&store, &holder).await;
    let env = fast();
    let (other, clock) = (fixture.session_in(fixture.place(), env.clone()), env.clock);
    let waiter = Arc::new(fixture.request(&key, LONG).waiting(true));
    let (progress, mut polls) = (Progress::new(), 0);
    {
        let mut waiting = pin!(other.acquire_in_session(&waiter, &progress));
        let counted = poll_fn(|context| {
            polls += 1;
            waiting.as_mut().poll(context)
        });
        let idle = async {
            until(fixture, "a report", async || progress.last().is_some()).await;
            let before = fixture.requests();
            clock.sleep_until(clock.now() + IDLE).await;
            fixture.requests() - before
        };
        let requests = tokio::select! {
            answer = counted => panic!("beside its holder: {answer:?}"),
            requests = idle => requests,
        };
        let most = REQUESTS_MAX * fixture.network.len() as u64;
        assert!(requests <= most, "{requests} requests in {IDLE:?}");
    }
    // What a store without a server asks costs no request, but a poll.
    assert!(polls <= REQUESTS_MAX, "polled {polls} times in {IDLE:?}");
    // The answer may come late, by the clock of the waiter.
    let _ = other.release(&waiter).await;
    released(&store, &holder).await;
}

/// The waiters of two sessions.
const FEW: usize = 4;
const MANY: usize = 60;

/// How many more requests the larger number of waiters may cost: pauses are random.
const MORE_MAX: u64 = 20;

pub(crate) async fn w6_more_waiters_cost_no_more_requests(fixture: &Fixture) {
    let (store, key) = (fixture.open(), fixture.key());
    let holder = fixture.request(&key, LONG);
    granted(&store, &holder).await;
    let few = requests_of(fixture, &key, FEW).await;
    let many = requests_of(fixture, &key, MANY).await;
    assert!(
        many <= 2 * few + MORE_MAX * fixture.network.len() as u64,
        "{few} requests for {FEW} waiters in {IDLE:?}, and {many} for {MANY}"
    );
    released(&store, &holder).await;
}

/// Returns how many requests this many waiters of one session send while nothing changes.
async fn requests_of(fixture: &Fixture, key: &Key, count: usize) -> u64 {
    let env = fast();
    let (session, clock) = (fixture.session_in(fixture.place(), env.clone()), env.clock);
    let waiter = |_| Arc::new(fixture.request(key, LONG).waiting(true));
    let waiters: Vec<_> = (0..count).map(waiter).collect();
    let reports: Vec<_> = (0..count).map(|_| Progress::new()).collect();
    let requests = {
        let waiting = waiters.iter().zip(&reports);
        let waiting = waiting.map(|(waiter, report)| session.acquire_in_session(waiter, report));
        let idle = async {
            until(fixture, "a report of each", async || {
                reports.iter().all(|report| report.last().is_some())
            })
            .await;
            // What they send to queue is over by then.
            clock.sleep_until(clock.now() + IDLE / 2).await;
            let before = fixture.requests();
            clock.sleep_until(clock.now() + IDLE).await;
            fixture.requests() - before
        };
        tokio::select! {
            (answer, ..) = select_all(waiting) => panic!("beside their holder: {answer:?}"),
            requests = idle => requests,
        }
    };
    for waiter in &waiters {
        // The answer may come late, by the clock of the waiters.
        let _ = session.release(waiter).await;
    }
    requests
}

fn fast() -> Env {
    Env {
        clock: Arc::new(FastClock::new()),
        entropy: Arc::new(SystemEntropy),
    }
}

/// A clock that runs several times as fast as that of the system.
#[derive(Debug)]
struct FastClock {
    start: BootInstant,
    wall: WallTime,
}

impl FastClock {
    const FACTOR: u32 = 5;

    fn new() -> Self {
        Self {
            start: SystemClock.now(),
            wall: SystemClock.wall(),
        }
    }

    fn elapsed(&self) -> Duration {
        SystemClock.now().since(self.start) * Self::FACTOR
    }
}

impl Clock for FastClock {
    fn now(&self) -> BootInstant {
        self.start + self.elapsed()
    }

    fn wall(&self) -> WallTime {
        WallTime::from_micros(self.wall.as_micros() + self.elapsed().as_micros() as u64)
    }

    fn sleep_until(&self, deadline: BootInstant) -> BoxFuture<'static, ()> {
        SystemClock.sleep_until(self.start + deadline.since(self.start) / Self::FACTOR)
    }

    fn was_paused(&self, span: Duration) {
        SystemClock.was_paused(span);
    }
}
