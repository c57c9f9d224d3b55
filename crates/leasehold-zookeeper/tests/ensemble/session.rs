//! Sessions that move, expire and end.

use std::time::Duration;

use leasehold::Mode;
use leasehold_testkit::faults::Proxy;
use leasehold_testkit::servers::{Zookeeper, ZookeeperConnection};

use crate::support::{client, lock, until, until_waiting};

#[tokio::test]
async fn zookeeper_session_moves_with_its_locks() {
    let mut servers = Zookeeper::builder().members(3).start();
    let holder = client(&(servers.url() + "?timeout=8s"));
    let guard = lock(&holder, "moves").acquire().await.unwrap();
    let other = client(&servers.url());
    // Every server restarts in turn, so the session moves at least once.
    for number in 0..3 {
        servers.kill(number);
        servers.leader();
        servers.restart(number);
        let moved = guard.deadline_moved(guard.deadline()).await;
        assert!(moved.is_some() && guard.is_valid(), "after server {number}");
    }
    assert!(other.lock("moves").try_acquire().await.unwrap().is_none());
    guard.release().await.unwrap();
    assert!(other.lock("moves").try_acquire().await.unwrap().is_some());
}

#[tokio::test]
async fn zookeeper_waiter_keeps_its_place_while_it_reconnects() {
    let servers = Zookeeper::start();
    let proxy = Proxy::to(servers.ports()[0]);
    let (holder, near) = (
        client(&servers.url()),
        client(&servers.url_at([proxy.port()])),
    );
    let held = lock(&holder, "place").acquire().await.unwrap();
    let (first, second) = (lock(&near, "place"), lock(&holder, "place"));
    let order = std::cell::RefCell::new(Vec::new());
    let waits = async |number: u32, lock: &leasehold::Lock| {
        let guard = lock.acquire().await.unwrap();
        order.borrow_mut().push(number);
        guard.release().await.unwrap();
    };
    let cut = async {
        until_waiting(&holder, "place", 2).await;
        proxy.cut();
        until("it is back", async || proxy.connections() == 1).await;
        held.release().await.unwrap();
    };
    let later = async {
        until_waiting(&holder, "place", 1).await;
        waits(2, &second).await;
    };
    tokio::join!(waits(1, &first), later, cut);
    assert_eq!(order.into_inner(), [1, 2]);
}

#[tokio::test]
async fn zookeeper_folders_of_free_locks_go() {
    let servers = Zookeeper::start();
    let holder = client(&(servers.url() + "/gone"));
    let guard = lock(&holder, "a/b").acquire().await.unwrap();
    let fence = guard.fence();
    let mut server = ZookeeperConnection::open(servers.ports()[0], None);
    assert!(server.children("/gone").contains(&"a%2Fb".to_owned()));
    guard.release().await.unwrap();
    until("the folder is gone", async || {
        let mut server = ZookeeperConnection::open(servers.ports()[0], None);
        !server.children("/gone").contains(&"a%2Fb".to_owned())
    })
    .await;
    let again = lock(&holder, "a/b").acquire().await.unwrap();
    assert!(again.fence() > fence);
    // The counter is elsewhere, and stays.
    let counters = server.children("/gone/leasehold:fences");
    assert_eq!(counters.len(), 1, "{counters:?}");
    let counter = server.data(&format!("/gone/leasehold:fences/{}", counters[0]));
    assert_eq!(counter, Some(again.fence().to_string()));
    again.release().await.unwrap();
}

#[tokio::test]
async fn zookeeper_deleted_node_is_a_lost_lock() {
    let servers = Zookeeper::start();
    let holder = client(&(servers.url() + "/lost?timeout=2s"));
    let guard = lock(&holder, "x")
        .mode(Mode::Shared)
        .acquire()
        .await
        .unwrap();
    let mut server = ZookeeperConnection::open(servers.ports()[0], None);
    server.delete_all("/lost/x");
    until("the loss is noticed", async || !guard.is_valid()).await;
    assert!(guard.ensure(Duration::ZERO).is_err());
}

#[tokio::test]
async fn zookeeper_holder_that_stops_frees_its_locks() {
    let servers = Zookeeper::start();
    let proxy = Proxy::to(servers.ports()[0]);
    let (gone, other) = (
        client(&(servers.url_at([proxy.port()]) + "?timeout=1s")),
        client(&servers.url()),
    );
    let guard = lock(&gone, "stops").acquire().await.unwrap();
    proxy.set(leasehold_testkit::faults::NetworkFault::Frozen);
    let next = lock(&other, "stops")
        .wait(Duration::from_secs(20))
        .acquire()
        .await
        .unwrap();
    assert!(!guard.is_valid());
    next.release().await.unwrap();
}
