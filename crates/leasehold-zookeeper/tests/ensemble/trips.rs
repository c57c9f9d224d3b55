//! How many messages a lock takes.

use leasehold_testkit::faults::Proxy;
use leasehold_testkit::servers::Zookeeper;

use crate::support::{client, hold_once, lock, until_waiting};

/// A free lock takes two: one that creates the node and looks at the queue, and one that draws the fence. A release takes
/// one.
#[tokio::test]
async fn zookeeper_free_lock_takes_three_trips() {
    let servers = Zookeeper::start();
    let proxy = Proxy::to(servers.ports()[0]);
    let locks = client(&(servers.url_at([proxy.port()]) + "?timeout=8s"));
    let mut least = u64::MAX;
    for _ in 0..20 {
        let before = proxy.requests();
        hold_once(&locks, "x").await;
        // Keep-alives come in between now and then.
        least = least.min(proxy.requests() - before);
    }
    assert_eq!(least, 3);
}

/// The waiter looks at the queue when the holder's node is gone, and draws its fence.
#[tokio::test]
async fn zookeeper_hand_over_takes_two_trips_of_the_waiter() {
    let servers = Zookeeper::start();
    let proxy = Proxy::to(servers.ports()[0]);
    let holder = client(&servers.url());
    let waiter = client(&(servers.url_at([proxy.port()]) + "?timeout=8s"));
    let mut least = u64::MAX;
    for _ in 0..10 {
        let held = lock(&holder, "x").acquire().await.unwrap();
        let next = lock(&waiter, "x");
        let (next, before) = tokio::join!(next.acquire(), async {
            until_waiting(&holder, "x", 1).await;
            let before = proxy.requests();
            held.release().await.unwrap();
            before
        });
        least = least.min(proxy.requests() - before);
        next.unwrap().release().await.unwrap();
    }
    assert!(least <= 3, "{least}");
}
