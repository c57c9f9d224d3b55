use super::fixture::{
    Fixture, LONG, TIMEOUT, expires, granted, granted_in_time, now, released, short_ttl,
};

pub(crate) async fn a6_lease_ends_by_itself(fixture: &Fixture) {
    let (store, key) = (fixture.open(), fixture.key());
    let ttl = short_ttl(&store);
    let asked = now();
    let request = fixture.request(&key, ttl);
    granted(&store, &request).await;
    if !expires(store.guarantees()) {
        // The kernel's locks outlive any TTL, so this watches for longer than the request's TTL.
        while asked.elapsed() < ttl * 2 {
            super::fixture::busy(&store, &fixture.request(&key, ttl)).await;
            fixture.pause().await;
        }
        return released(&store, &request).await;
    }
    let (next, _) = granted_in_time(fixture, &store, &key).await;
    let lived = asked.elapsed();
    assert!(
        lived >= ttl.mul_f64(0.95),
        "free again after {lived:?}, before its TTL of {ttl:?}"
    );
    released(&store, &next).await;
}

pub(crate) async fn a6_a_killed_holder_frees_the_lock(fixture: &Fixture) {
    let (store, key) = (fixture.open(), fixture.key());
    let ttl = if expires(store.guarantees()) {
        short_ttl(&store)
    } else {
        LONG
    };
    let (worker, fence) = fixture.worker(&key, ttl);
    super::fixture::busy(&store, &fixture.request(&key, LONG)).await;
    worker.kill();
    let (request, waited) = granted_in_time(fixture, &store, &key).await;
    assert!(waited < TIMEOUT);
    released(&store, &request).await;
    let next = fixture.request(&key, LONG);
    assert!(granted(&store, &next).await.get() > fence);
    released(&store, &next).await;
}
