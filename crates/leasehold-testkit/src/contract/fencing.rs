use leasehold::Fence;
use leasehold::clock::WallTime;

use super::fixture::{Fixture, LONG, granted, released};

pub(crate) async fn a4_every_fence_is_greater_than_all_before(fixture: &Fixture) {
    let (stores, key) = ([fixture.open(), fixture.open()], fixture.key());
    let mut last = None;
    for round in 0..20 {
        let store = &stores[round % 2];
        let request = fixture.request(&key, LONG);
        let fence = granted(store, &request).await;
        assert!(
            fence.get() > request.proposal.as_micros(),
            "greater than the proposal"
        );
        assert!(Some(fence) > last, "{last:?} then {fence}");
        last = Some(fence);
        released(store, &request).await;
    }
}

pub(crate) async fn a4_fences_grow_though_a_clock_went_back(fixture: &Fixture) {
    let (store, key) = (fixture.open(), fixture.key());
    let request = fixture.request(&key, LONG);
    let first = granted(&store, &request).await;
    released(&store, &request).await;
    let mut late = fixture.request(&key, LONG);
    late.proposal = WallTime::from_micros(late.proposal.as_micros() - 3_600_000_000);
    let second = granted(&store, &late).await;
    assert!(
        second > first,
        "{first} then {second}, proposed an hour earlier"
    );
    released(&store, &late).await;
}

pub(crate) async fn a4_fences_grow_across_processes(fixture: &Fixture) {
    let (store, key) = (fixture.open(), fixture.key());
    let mut last: Option<Fence> = None;
    for _ in 0..2 {
        let request = fixture.request(&key, LONG);
        let own = granted(&store, &request).await;
        assert!(Some(own) > last);
        released(&store, &request).await;
        let (worker, theirs) = fixture.worker(&key, LONG);
        worker.finish();
        assert!(
            theirs > own.get(),
            "{own} here, then {theirs} in another process"
        );
        last = Fence::new(theirs);
    }
}

pub(crate) async fn a4_fences_grow_after_key_is_forgotten(fixture: &Fixture) {
    let (store, key) = (fixture.open(), fixture.key());
    let request = fixture.request(&key, LONG);
    let before = granted(&store, &request).await;
    released(&store, &request).await;
    fixture.harness.forget(&key);
    let request = fixture.request(&key, LONG);
    let after = granted(&store, &request).await;
    assert!(
        after > before,
        "the proposal carries the order: {before} then {after}"
    );
    released(&store, &request).await;
}
