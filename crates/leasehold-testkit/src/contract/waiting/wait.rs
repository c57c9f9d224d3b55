use std::time::Duration;

use leasehold::Key;
use leasehold::store::{LockRequest, Progress, ReleaseReply, Report};

use crate::contract::fixture::{Fixture, LONG, granted, released, until};

fn waiting(fixture: &Fixture, key: &Key) -> LockRequest {
    fixture.request(key, LONG).waiting(true)
}

pub(crate) async fn w1_freed_lock_is_granted_to_the_waiter(fixture: &Fixture) {
    let (store, other, key) = (fixture.open(), fixture.open(), fixture.key());
    let holder = fixture.request(&key, LONG);
    granted(&store, &holder).await;
    let (waiter, progress) = (waiting(fixture, &key), Progress::new());
    let freeing = async {
        // Only after the waiter has been refused.
        until(fixture, "a report", async || progress.last().is_some()).await;
        released(&store, &holder).await;
    };
    let (grant, ()) = futures_util::join!(other.acquire_with(&waiter, &progress), freeing);
    let grant = grant.expect("granted once it was free");
    let owner = grant.owner.unwrap_or(waiter.owner);
    released(&other, &waiter.with_owner(owner)).await;
}

pub(crate) async fn w2_busy_lock_is_reported(fixture: &Fixture) {
    let (store, other, key) = (fixture.open(), fixture.open(), fixture.key());
    let holder = fixture.request(&key, LONG);
    granted(&store, &holder).await;
    let (waiter, progress) = (waiting(fixture, &key), Progress::new());
    let reported = until(fixture, "a report", async || progress.last().is_some());
    tokio::select! {
        answer = other.acquire_with(&waiter, &progress) => panic!("beside its holder: {answer:?}"),
        () = reported => {}
    }
    let Some(Report::Busy(busy)) = progress.last() else {
        panic!("{:?}", progress.last());
    };
    let is_holder = busy.holder.is_none_or(|owner| owner == holder.owner);
    assert!(is_holder, "{busy:?}");
    let left = other.release(&waiter).await;
    assert!(matches!(left, Ok(ReleaseReply::WasLost)), "{left:?}");
    released(&store, &holder).await;
}

/// The counter of fences may be lost while a request waits.
pub(crate) async fn a4_fence_of_a_waiter_exceeds_the_clock(fixture: &Fixture) {
    const WAITED: Duration = Duration::from_millis(1_500);
    let (store, other, key) = (fixture.open(), fixture.open(), fixture.key());
    let holder = fixture.request(&key, LONG);
    granted(&store, &holder).await;
    let (waiter, progress) = (waiting(fixture, &key), Progress::new());
    let freeing = async {
        until(fixture, "a report", async || progress.last().is_some()).await;
        until(fixture, "a while", async || {
            fixture.wall().distance(waiter.proposal) > WAITED
        })
        .await;
        let freed = fixture.wall();
        released(&store, &holder).await;
        freed
    };
    let (grant, freed) = futures_util::join!(other.acquire_with(&waiter, &progress), freeing);
    let grant = grant.expect("granted once it was free");
    assert!(grant.fence.get() > freed.as_micros(), "{grant:?}");
    let owner = grant.owner.unwrap_or(waiter.owner);
    released(&other, &waiter.with_owner(owner)).await;
}
