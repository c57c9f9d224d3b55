//! A machine that stands still without its own clock noticing, as a paused virtual machine does.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::time::Duration;

use leasehold::BoxFuture;
use leasehold::ambient::Ambient;
use leasehold::clock::{BootInstant, Clock, WallTime};

use crate::scene::{Scene, TTL, client, quorum_of};

/// The clock of a machine that can be made to stand still without knowing it.
#[derive(Debug)]
struct PausedMachine {
    true_clock: Arc<dyn Clock>,
    /// How far it has fallen behind, less what it was told of; nanoseconds.
    behind: AtomicU64,
}

impl PausedMachine {
    fn stand_still(&self, span: Duration) {
        self.behind.fetch_add(span.as_nanos() as u64, SeqCst);
    }

    fn behind(&self) -> Duration {
        Duration::from_nanos(self.behind.load(SeqCst))
    }
}

impl Clock for PausedMachine {
    fn now(&self) -> BootInstant {
        self.true_clock.now() - self.behind()
    }

    fn wall(&self) -> WallTime {
        self.true_clock.wall()
    }

    fn sleep_until(&self, deadline: BootInstant) -> BoxFuture<'static, ()> {
        self.true_clock.sleep_until(deadline + self.behind())
    }

    fn stood_still(&self, span: Duration) {
        self.behind.fetch_sub(span.as_nanos() as u64, SeqCst);
    }
}

#[tokio::test(start_paused = true)]
async fn a_machine_that_was_paused_unawares_learns_it_by_the_members_and_loses_its_guards() {
    let scene = Scene::quorum(5);
    let machine = Arc::new(PausedMachine {
        true_clock: Arc::clone(&scene.ambient.clock),
        behind: AtomicU64::new(0),
    });
    let ambient = Ambient {
        clock: Arc::clone(&machine) as Arc<dyn Clock>,
        ..scene.ambient.clone()
    };
    let paused = client(quorum_of(&scene.members, &ambient), &ambient);
    let guard = paused.lock("x").acquire().await.unwrap();
    // The machine is paused for longer than the lease lives. Its clock says that no time passed.
    machine.stand_still(TTL);
    scene.pass(TTL).await;
    let next = scene.client.lock("x").try_acquire().await.unwrap();
    let next = next.expect("the lease is over");
    assert!(guard.is_valid(), "nobody could tell it");
    // Its next question, about any lock, tells it; the answer is then half a minute old.
    let outcome = paused.lock("y").try_acquire().await;
    assert!(outcome.is_err());
    scene.pass(Duration::from_millis(1)).await;
    assert!(
        machine.behind() < Duration::from_secs(1),
        "{:?}",
        machine.behind()
    );
    assert!(!guard.is_valid());
    assert!(next.is_valid() && next.fence() > guard.fence());
    let after = paused.lock("y").try_acquire().await.unwrap();
    assert!(after.is_some(), "nobody is distrusted for it");
}
