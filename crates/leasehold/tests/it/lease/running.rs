//! Work that runs under a guard, and stops when the guard is lost.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use leasehold::LostReason;
use leasehold_testkit::{Fault, StoreCall};

use crate::fixture::{Fixture, is_free};

#[tokio::test(start_paused = true)]
async fn run_releases_only_after_its_body_stopped() {
    struct Stops(Arc<AtomicBool>);
    impl Drop for Stops {
        fn drop(&mut self) {
            self.0.store(true, Ordering::SeqCst);
        }
    }
    let fixture = Fixture::new();
    let guard = fixture.client.lock("x").acquire().await.unwrap();
    fixture.store.set(Fault::Unreachable);
    let stopped = Arc::new(AtomicBool::new(false));
    let stops = Stops(Arc::clone(&stopped));
    let outcome = guard
        .run(async move |_| {
            let _stops = stops;
            std::future::pending::<()>().await;
        })
        .await;
    let reason = outcome.unwrap_err().lost_reason();
    assert_eq!(reason, Some(LostReason::Unreachable));
    assert!(stopped.load(Ordering::SeqCst));
    let releases = fixture.count(|call| matches!(call, StoreCall::Release(_)));
    assert!(releases >= 1, "it is released");
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
