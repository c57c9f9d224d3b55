//! Work that runs under a guard, and stops when the guard is lost.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use leasehold::LostReason;
use leasehold_testkit::{Fault, FaultyStore, StoreCall};

use crate::fixture::{Fixture, is_free};

#[tokio::test(start_paused = true)]
async fn run_releases_only_after_its_body_stopped() {
    fn releases(store: &FaultyStore) -> usize {
        let is_release = |call: &&StoreCall| matches!(call, StoreCall::Release(_));
        store.calls().iter().filter(is_release).count()
    }
    struct Stops(Arc<AtomicBool>, FaultyStore);
    impl Drop for Stops {
        fn drop(&mut self) {
            self.0.store(releases(&self.1) == 0, Ordering::SeqCst);
        }
    }
    let fixture = Fixture::new();
    let guard = fixture.client.lock("x").acquire().await.unwrap();
    fixture.store.set(Fault::Unreachable);
    let stopped_first = Arc::new(AtomicBool::new(false));
    let stops = Stops(Arc::clone(&stopped_first), fixture.store.clone());
    let outcome = guard
        .run(async move |_| {
            let _stops = stops;
            std::future::pending::<()>().await;
        })
        .await;
    let reason = outcome.unwrap_err().lost_reason();
    assert_eq!(reason, Some(LostReason::Unreachable));
    assert!(stopped_first.load(Ordering::SeqCst));
    assert!(releases(&fixture.store) > 0);
}

#[tokio::test(start_paused = true)]
async fn run_returns_the_output_of_its_body() {
    let fixture = Fixture::new();
    let guard = fixture.client.lock("x").acquire().await.unwrap();
    let fence = guard.fence();
    let done = guard.run(async |guard| (guard.fence(), "done")).await;
    assert_eq!(done.unwrap(), (fence, "done"));
    assert!(is_free(&fixture.client, "x").await);
}

#[tokio::test(start_paused = true)]
async fn body_that_slept_through_a_loss_fails() {
    let fixture = Fixture::new();
    let guard = fixture.client.lock("x").acquire().await.unwrap();
    let outcome = guard.until_lost(async { guard.give_up() }).await;
    assert_eq!(
        outcome.unwrap_err().lost_reason(),
        Some(LostReason::GivenUp)
    );
}
