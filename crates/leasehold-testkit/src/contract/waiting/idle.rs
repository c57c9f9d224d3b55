use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

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
    let env = Env {
        clock: Arc::new(FastClock::new()),
        entropy: Arc::new(SystemEntropy),
    };
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
