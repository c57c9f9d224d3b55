//! A candidate that leads again and again until its program stops.

use std::future::pending;
use std::sync::Mutex;
use std::time::Duration;

use leasehold::store::{background, locked};
use leasehold::{Error, ErrorKind, Fence};
use leasehold_testkit::Fault;
use tokio_util::sync::CancellationToken;

use super::leading::{can_be_spawned, election};
use crate::fixture::{Fixture, TTL, client, is_free};

#[tokio::test(start_paused = true)]
async fn stopped_leader_resigns_after_its_body() {
    let fixture = Fixture::new();
    let stop = CancellationToken::new();
    let candidate = election(&fixture.client, "a");
    let led = candidate.lead(stop.cancelled(), async |leadership| {
        assert!(leadership.is_valid());
        stop.cancel();
        pending::<()>().await;
    });
    assert_eq!(can_be_spawned(led).await.unwrap(), None);
    assert!(candidate.leader().await.unwrap().is_none());
    assert!(is_free(&fixture.client, "x").await);
}

#[tokio::test(start_paused = true)]
async fn body_that_ends_resigns_with_its_output() {
    let fixture = Fixture::new();
    let candidate = election(&fixture.client, "a");
    let led = candidate.lead(pending(), async |leadership| leadership.fence());
    let fence: Option<Fence> = led.await.unwrap();
    assert!(fence.is_some());
    assert!(is_free(&fixture.client, "x").await);
}

#[tokio::test(start_paused = true)]
async fn lost_leader_campaigns_again_with_greater_fence() {
    let fixture = Fixture::new();
    let fences = Mutex::new(Vec::new());
    let candidate = election(&fixture.client, "a");
    let led = candidate.lead(pending(), async |leadership| {
        let terms = {
            let mut fences = locked(&fences);
            fences.push(leadership.fence());
            fences.len()
        };
        if terms == 1 {
            fixture.store.set(Fault::Unreachable);
            pending::<()>().await;
        }
    });
    let recovery = async {
        fixture.pass(2 * TTL).await;
        fixture.store.set(Fault::None);
    };
    let (led, ()) = tokio::join!(led, recovery);
    assert_eq!(led.unwrap(), Some(()));
    let fences = locked(&fences);
    assert!(fences.len() == 2 && fences[1] > fences[0], "{fences:?}");
}

#[tokio::test(start_paused = true)]
async fn stopped_candidate_leaves_the_queue() {
    let fixture = Fixture::new();
    let (other, _) = fixture.client_apart();
    let leader = election(&fixture.client, "a").campaign().await.unwrap();
    let stop = CancellationToken::new();
    let candidate = election(&other, "b").wait(Duration::from_secs(1));
    let stopped = stop.clone();
    let led = background::spawn(async move {
        let body = async |_: &_| panic!("another one leads");
        candidate.lead(stopped.cancelled(), body).await
    });
    fixture.pass(4 * TTL).await;
    assert!(!led.is_finished(), "the wait of the election has no effect");
    stop.cancel();
    let led: Option<()> = led.await.unwrap().unwrap();
    assert!(led.is_none());
    assert!(leader.is_valid());
    leader.resign().await.unwrap();
    assert!(is_free(&fixture.client, "x").await);
}

#[tokio::test(start_paused = true)]
async fn errors_that_last_end_the_call() {
    let fixture = Fixture::new();
    let lead = async |value: &str| -> Result<Option<()>, Error> {
        election(&fixture.client, value)
            .lead(pending(), async |_| ())
            .await
    };
    let error = lead(&"x".repeat(5_000)).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidInput, "{error}");

    fixture.store.set(Fault::Unreachable);
    let never_answered = client(fixture.store.clone(), &fixture.env);
    let led = election(&never_answered, "a").lead(pending(), async |_| ());
    assert!(led.await.unwrap_err().is_unreachable());
}

#[tokio::test(start_paused = true)]
async fn stop_before_the_campaign_asks_nothing() {
    let fixture = Fixture::new();
    let led = election(&fixture.client, "a").lead(async {}, async |_| ());
    assert_eq!(led.await.unwrap(), None);
    assert_eq!(fixture.count(|_| true), 0);
}
