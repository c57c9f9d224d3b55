//! How many messages a lock takes.

use leasehold_testkit::faults::Proxy;
use leasehold_testkit::servers::Zookeeper;

use crate::support::{client, hold_once, lock, until_waiting};

/// A free lock takes one, which creates the node, draws the fence, and looks at the queue. A release takes one.
#[tokio::test]
async fn zookeeper_free_lock_takes_two_trips() {
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
    assert_eq!(least, 2);
}

/// Only the end of the node ahead concerns it.
#[tokio::test]
async fn zookeeper_waiter_sleeps_until_the_node_ahead_ends() {
    let servers = Zookeeper::start();
    let proxy = Proxy::to(servers.ports()[0]);
    let (first, second) = (client(&servers.url()), client(&servers.url()));
    let third = client(&(servers.url_at([proxy.port()]) + "?timeout=8s"));
    // What would wake the last waiter arrives before the first answer, and it would ask before the last one.
    let look_twice = async |before: u64| {
        third.holders("x").await.unwrap();
        for _ in 0..5 {
            first.holders("x").await.unwrap();
        }
        third.holders("x").await.unwrap();
        proxy.requests() - before
    };
    let (mut idle, mut least) = (u64::MAX, u64::MAX);
    for _ in 0..10 {
        let held = lock(&first, "x").acquire().await.unwrap();
        let (ahead, last) = (lock(&second, "x"), lock(&third, "x"));
        let passing = async {
            until_waiting(&first, "x", 2).await;
            let looks = look_twice(proxy.requests()).await;
            let before = proxy.requests();
            held.release().await.unwrap();
            (looks, before)
        };
        let last_waits = async {
            until_waiting(&first, "x", 1).await;
            last.acquire().await.unwrap()
        };
        let ahead_holds = async {
            let (ahead, (looks, before)) = tokio::join!(ahead.acquire(), passing);
            let asked = look_twice(before).await;
            ahead.unwrap().release().await.unwrap();
            (looks, asked)
        };
        let (last, (looks, asked)) = tokio::join!(last_waits, ahead_holds);
        last.release().await.unwrap();
        // Keep-alives come in between now and then.
        (idle, least) = (idle.min(looks), least.min(asked));
    }
    assert_eq!(least, idle);
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

/// The client draws alone, so the waiter draws together with its look.
#[tokio::test]
async fn zookeeper_hand_over_within_a_client_takes_two_trips() {
    let servers = Zookeeper::start();
    let proxy = Proxy::to(servers.ports()[0]);
    let locks = client(&(servers.url_at([proxy.port()]) + "?timeout=8s"));
    let (looking, mut least) = (client(&servers.url()), u64::MAX);
    for _ in 0..10 {
        let held = lock(&locks, "x").acquire().await.unwrap();
        let next = lock(&locks, "x");
        let (next, before) = tokio::join!(next.acquire(), async {
            until_waiting(&looking, "x", 1).await;
            let before = proxy.requests();
            held.release().await.unwrap();
            before
        });
        least = least.min(proxy.requests() - before);
        next.unwrap().release().await.unwrap();
    }
    assert_eq!(least, 2);
}
