//! Waiters for permits, which watch the waiter before them.

use std::time::Duration;

use leasehold::store::Permits;
use leasehold::store::background::spawn;
use leasehold::{Lock, Mode};
use leasehold_testkit::faults::{NetworkFault, Proxy};
use leasehold_testkit::servers::Zookeeper;

use crate::support::{client, lock, until_waiting};

/// The last waiter reads the queue, and its next request takes long. Meanwhile the waiter before it gets a permit.
#[tokio::test]
async fn zookeeper_waiter_gets_a_permit_behind_a_lasting_holder() {
    let servers = Zookeeper::start();
    let network = Proxy::to(servers.ports()[0]);
    let (near, far) = (
        client(&servers.url()),
        client(&servers.url_at([network.port()])),
    );
    assert!(far.holders("pool").await.unwrap().is_empty());
    let two = Mode::Permit(Permits::new(2).unwrap());
    let permit = |lock: Lock| lock.mode(two);
    let first = permit(lock(&near, "pool")).acquire().await.unwrap();
    let second = permit(lock(&near, "pool")).acquire().await.unwrap();
    let third = spawn(permit(lock(&near, "pool")).acquire());
    until_waiting(&near, "pool", 1).await;
    network.set(NetworkFault::SlowRequests(Duration::from_secs(1)));
    let last = spawn(permit(lock(&far, "pool")).acquire());
    until_waiting(&near, "pool", 2).await;
    first.release().await.unwrap();
    let third = third.await.unwrap().unwrap();
    network.set(NetworkFault::None);
    second.release().await.unwrap();
    let last = last.await.unwrap().unwrap();
    assert!(third.is_valid());
    last.release().await.unwrap();
    third.release().await.unwrap();
}
