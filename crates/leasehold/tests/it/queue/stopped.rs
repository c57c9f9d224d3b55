//! A process that is stopped at any point while a lock passes from one of its guards to the next.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::time::Duration;

use leasehold::BoxFuture;
use leasehold::ambient::Ambient;
use leasehold::clock::{BootInstant, Clock, WallTime};

use super::line::assert_nothing_left;
use crate::scene::{Scene, TTL, client, quorum_of};

/// The clock of a process that is stopped right before one of its readings.
#[derive(Debug)]
struct Stopping {
    true_clock: Arc<dyn Clock>,
    /// Which of the next readings that is; zero for none.
    reading: AtomicU64,
}

impl Clock for Stopping {
    fn now(&self) -> BootInstant {
        let next = |reading: u64| reading.checked_sub(1);
        if self.reading.fetch_update(SeqCst, SeqCst, next) == Ok(1) {
            self.true_clock.stood_still(TTL / 2);
        }
        self.true_clock.now()
    }

    fn wall(&self) -> WallTime {
        self.true_clock.wall()
    }

    fn sleep_until(&self, deadline: BootInstant) -> BoxFuture<'static, ()> {
        self.true_clock.sleep_until(deadline)
    }

    fn stood_still(&self, span: Duration) {
        self.true_clock.stood_still(span);
    }
}

#[tokio::test(start_paused = true)]
async fn lease_inherited_before_a_stop_is_freed() {
    for members in [1, 3] {
        for reading in 1..40 {
            let scene = Scene::quorum(members);
            let clock = Arc::new(Stopping {
                true_clock: Arc::clone(&scene.ambient.clock),
                reading: AtomicU64::new(0),
            });
            let ambient = Ambient {
                clock: Arc::clone(&clock) as Arc<dyn Clock>,
                ..scene.ambient.clone()
            };
            let locks = client(quorum_of(&scene.members, &ambient), &ambient);
            let mut guard = locks.lock("line").acquire().await.unwrap();
            let mut waiting = Vec::new();
            for _ in 0..2 {
                waiting.push(leasehold::background::spawn(locks.lock("line").acquire()));
                scene.settle().await;
            }
            for (heir, next) in waiting.into_iter().enumerate() {
                if heir == 1 {
                    clock.reading.store(reading, SeqCst);
                }
                drop(guard);
                guard = tokio::select! {
                    biased;
                    next = next => next.unwrap().unwrap(),
                    () = scene.pass(Duration::from_secs(5)) => {
                        panic!("{members} members, stopped before reading {reading}")
                    }
                };
                scene.settle().await;
            }
            clock.reading.store(0, SeqCst);
            drop(guard);
            scene.settle().await;
            assert_nothing_left(&scene).await;
        }
    }
}
