//! A holder announces itself at the resource.

use std::sync::Mutex;
use std::time::Duration;

use leasehold::fencing::{FenceGate, Fenced};
use leasehold::store::BoxFuture;
use leasehold::{Error, ErrorKind, Fence};
use leasehold_testkit::Fault;

use crate::fixture::{Fixture, TTL};

/// A resource that takes its time, and notes what it is shown.
struct Slow {
    fixture: Fixture,
    takes: Duration,
    shown: Mutex<Vec<Fence>>,
}

impl Slow {
    fn new(fixture: Fixture, takes: Duration) -> Self {
        Self {
            fixture,
            takes,
            shown: Mutex::default(),
        }
    }

    fn shown(&self) -> Vec<Fence> {
        self.shown.lock().expect("no panic").clone()
    }
}

impl Fenced for Slow {
    fn fence_off(&self, fence: Fence) -> BoxFuture<'_, Result<(), Error>> {
        self.shown.lock().expect("no panic").push(fence);
        Box::pin(async {
            self.fixture.pass(self.takes).await;
            Ok(())
        })
    }
}

#[tokio::test(start_paused = true)]
async fn fence_off_rejects_the_previous_holder() {
    let fixture = Fixture::new();
    let gate = FenceGate::new();
    let paused = fixture.client.lock("x").acquire().await.unwrap();
    paused.fence_off(&gate).await.unwrap();
    // As a paused process: its renewer does not reach the store, its code is past its check.
    let late = paused.fence();
    fixture.store.set(Fault::Unreachable);
    paused.lost().await;
    fixture.store.set(Fault::None);
    let next = fixture.client.lock("x").acquire().await.unwrap();
    gate.run(late, || ()).expect("nobody told the resource yet");
    next.fence_off(&gate).await.unwrap();
    assert!(gate.run(late, || panic!("it ran")).unwrap_err().is_fenced());
    gate.run(next.fence(), || ()).unwrap();
}

#[tokio::test(start_paused = true)]
async fn refusal_names_lock_and_both_fences() {
    let fixture = Fixture::new();
    let guard = fixture.client.lock("x").acquire().await.unwrap();
    let later = Fence::new(guard.fence().get() + 1).unwrap();
    let error = guard.fence_off(&FenceGate::starting_at(later)).await;
    let error = error.unwrap_err();
    assert!(error.is_fenced(), "{error}");
    let text = error.to_string();
    for part in [
        r#"lock "x""#.into(),
        guard.fence().to_string(),
        later.to_string(),
    ] {
        assert!(text.contains(&part), "{part}: {text}");
    }
}

#[tokio::test(start_paused = true)]
async fn lost_guard_fences_nothing_off() {
    let resource = Slow::new(Fixture::new(), Duration::ZERO);
    let fixture = &resource.fixture;
    let guard = fixture.client.lock("x").acquire().await.unwrap();
    fixture.store.set(Fault::Unreachable);
    guard.lost().await;
    let error = guard.fence_off(&resource).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Lost, "{error}");
    assert!(resource.shown().is_empty());
}

#[tokio::test(start_paused = true)]
async fn silent_resource_blocks_until_the_deadline_only() {
    let resource = Slow::new(Fixture::new(), TTL * 1000);
    let fixture = &resource.fixture;
    let guard = fixture.client.lock("x").acquire().await.unwrap();
    let deadline = guard.deadline().unwrap();
    fixture.store.set(Fault::Frozen);
    let error = guard.fence_off(&resource).await.unwrap_err();
    assert!(error.is_lost(), "{error}");
    assert_eq!(fixture.now(), deadline);
    assert_eq!(resource.shown(), [guard.fence()]);
}

#[tokio::test(start_paused = true)]
async fn late_answer_is_an_error() {
    let fixture = Fixture::new();
    let guard = fixture.client.lock("x").acquire().await.unwrap();
    fixture.store.set(Fault::Frozen);
    let left = guard.remaining();
    let resource = Slow::new(fixture, left);
    // Both are due at the same instant, and the answer is looked at first.
    let error = guard.fence_off(&resource).await.unwrap_err();
    assert!(error.is_lost(), "{error}");
}

#[test]
fn blocking_guard_fences_off_too() {
    let locks = leasehold::blocking::Client::new(leasehold::memory::MemoryStore::new());
    let guard = locks.lock("x").acquire().unwrap();
    let gate = FenceGate::new();
    guard.fence_off(&gate).unwrap();
    assert_eq!(gate.greatest(), Some(guard.fence()));
    // One list can contain resources of several kinds.
    let resources: [&dyn Fenced; 2] = [&gate, &FenceGate::new()];
    for resource in resources {
        guard.fence_off(resource).unwrap();
    }
}
