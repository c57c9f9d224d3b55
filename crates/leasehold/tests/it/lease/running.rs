//! Work that runs under a guard, and stops when the guard is lost.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

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
        .run(async move {
            let _stops = stops;
            std::future::pending::<()>().await;
        })
        .await;
    assert!(outcome.unwrap_err().is_lost());
    assert!(stopped.load(Ordering::SeqCst));
    let releases = fixture.count(|call| matches!(call, StoreCall::Release(_)));
    assert_eq!(releases, 1);
}

#[tokio::test(start_paused = true)]
async fn run_waits_for_a_body_that_stops_itself() {
    let fixture = Fixture::new();
    let guard = fixture.client.lock("x").acquire().await.unwrap();
    let deadline = guard.deadline().unwrap();
    fixture.store.set(Fault::Unreachable);
    let releases = || fixture.count(|call| matches!(call, StoreCall::Release(_)));
    let (during, freed) = (&fixture, &releases);
    let outcome = guard.run_to_its_end(|lost| async move {
        assert_eq!(lost.await, LostReason::Unreachable);
        assert_eq!(during.now(), deadline);
        during.pass(Duration::from_secs(5)).await;
        assert_eq!(freed(), 0, "the body is still at it");
    });
    assert!(outcome.await.unwrap_err().is_lost());
    assert_eq!(releases(), 1);

    fixture.store.set(Fault::None);
    let guard = fixture.client.lock("y").acquire().await.unwrap();
    assert_eq!(guard.run_to_its_end(|_| async { 7 }).await.unwrap(), 7);
}

#[tokio::test(start_paused = true)]
async fn run_returns_the_output_of_its_body() {
    let fixture = Fixture::new();
    let guard = fixture.client.lock("x").acquire().await.unwrap();
    assert_eq!(guard.run(async { "done" }).await.unwrap(), "done");
    assert!(is_free(&fixture.client, "x").await);
}
