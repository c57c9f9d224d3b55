use std::sync::Arc;
use std::time::Duration;

use leasehold::clock::{BootInstant, Clock, SystemClock};
use leasehold::store::Store;
use leasehold::{Client, Lock};
use leasehold_zookeeper::ZooKeeperStore;

/// Longer than anything takes that works.
pub(crate) const LONG: Duration = Duration::from_secs(30);

/// Returns a client of the servers at this URL.
pub(crate) fn client(url: &str) -> Client {
    Client::new(store(url))
}

pub(crate) fn store(url: &str) -> Arc<dyn Store> {
    ZooKeeperStore::new(url).unwrap().into()
}

/// Returns a lock that waits for long.
pub(crate) fn lock(client: &Client, key: &str) -> Lock {
    client.lock(key).ttl(LONG).wait(LONG)
}

/// Acquires the lock and releases it.
pub(crate) async fn hold_once(client: &Client, key: &str) {
    let guard = lock(client, key).acquire().await.unwrap();
    guard.release().await.unwrap();
}

pub(crate) fn now() -> BootInstant {
    SystemClock.now()
}

/// Waits until `condition` holds.
pub(crate) async fn until(what: &str, condition: impl AsyncFn() -> bool) {
    let end = now() + LONG;
    while !condition().await {
        assert!(now() < end, "{what}: not within {LONG:?}");
        pause(10).await;
    }
}

/// The pause between two looks at a condition.
pub(crate) async fn pause(millis: u64) {
    SystemClock
        .sleep_until(now() + Duration::from_millis(millis))
        .await;
}

/// Waits until this many wait for the lock.
pub(crate) async fn until_waiting(client: &Client, key: &str, count: usize) {
    let what = format!("{count} wait for {key}");
    until(&what, async || {
        client.waiters(key).await.unwrap().len() == count
    })
    .await;
}
