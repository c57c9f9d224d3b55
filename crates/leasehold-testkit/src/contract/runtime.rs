use std::sync::{Arc, Mutex};

use leasehold::store::background::thread;
use leasehold::store::{Progress, ReleaseReply, Report, locked};
use tokio::sync::oneshot;

use super::fixture::{Fixture, LONG, granted, released};

pub(crate) async fn a9_waiter_needs_no_runtime(fixture: &Fixture) {
    let (store, key) = (fixture.open(), fixture.key());
    let holder = fixture.request(&key, LONG);
    granted(&store, &holder).await;
    let (refused, was_refused) = oneshot::channel();
    let (done, outcome) = oneshot::channel();
    let (session, waiter) = (store.session(), fixture.request(&key, LONG).waiting(true));
    let wait = move || {
        let refused = Mutex::new(Some(refused));
        let report = |_: &Report| {
            let refused = locked(&refused).take();
            refused.map(|refused| refused.send(()));
        };
        let waiter = Arc::new(waiter);
        let progress = Progress::heard_by(&report);
        let taken = session.acquire(&waiter, &progress);
        let Ok(grant) = pollster::block_on(taken) else {
            return;
        };
        let owner = grant.owner.unwrap_or(waiter.owner);
        let holder = Arc::new((*waiter).clone().with_owner(owner));
        let _ = done.send(pollster::block_on(session.release(&holder)));
    };
    thread("no runtime", wait).expect("a thread");
    was_refused.await.expect("a report");
    released(&store, &holder).await;
    let outcome = outcome.await.expect("a grant");
    assert!(matches!(outcome, Ok(ReleaseReply::Released)), "{outcome:?}");
}
