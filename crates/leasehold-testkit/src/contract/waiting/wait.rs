use std::time::Duration;

use leasehold::Client;

use crate::contract::fixture::{Fixture, LONG, TIMEOUT, granted, now, released};

pub(crate) async fn w1_waiting_is_no_busy_loop(fixture: &Fixture) {
    let (store, key) = (fixture.open(), fixture.key());
    let holder = fixture.claim(&key, LONG);
    granted(&store, &holder).await;
    let waiter = fixture.claim(&key, LONG);
    let began = now();
    for _ in 0..10 {
        store.wait(&waiter).await;
    }
    let waited = began.elapsed();
    assert!(
        waited >= Duration::from_millis(50),
        "ten waits for a held lock took {waited:?}"
    );
    released(&store, &holder).await;
}

pub(crate) async fn w2_waiter_gets_a_freed_lock(fixture: &Fixture) {
    let (store, client, key) = (fixture.open(), Client::new(fixture.open()), fixture.key());
    let holder = fixture.claim(&key, LONG);
    granted(&store, &holder).await;
    let lock = client.lock(&key).ttl(LONG).wait(TIMEOUT);
    let waiting = lock.acquire();
    let freeing = async {
        // Waits for several rounds, so that the waiter has been refused before.
        for _ in 0..5 {
            store.wait(&holder).await;
        }
        released(&store, &holder).await;
    };
    let (guard, ()) = futures_util::join!(waiting, freeing);
    let guard = guard.expect("granted once it was free");
    assert!(guard.is_valid());
    guard.release().await.expect("a release");
}
