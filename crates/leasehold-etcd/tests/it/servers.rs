//! Several servers: the client stays with one that answers.

use std::time::Duration;

use futures_util::future::{join_all, try_join_all};
use leasehold::store::background::spawn;
use leasehold_testkit::faults::{NetworkFault, Proxy};
use leasehold_testkit::servers::{EtcdServer, EtcdSet};

use crate::{client, lock};

#[tokio::test]
async fn dead_server_is_asked_once() {
    let server = EtcdServer::start();
    let (dead, live) = (Proxy::to(server.port()), Proxy::to(server.port()));
    dead.set(NetworkFault::Frozen);
    let client = client(&format!(
        "etcd://127.0.0.1:{},127.0.0.1:{}",
        dead.port(),
        live.port()
    ));
    for number in 0..50 {
        let name = format!("job-{number}");
        let guard = lock(&client, &name).acquire().await.unwrap();
        guard.release().await.unwrap();
    }
    assert!(dead.opened() <= 1, "{}", dead.opened());
    // A caller drives one connection, and the thread of the client may have another one.
    assert!(live.opened() <= 2, "{}", live.opened());
}

/// One attempt is enough, whichever of the members a client begins with: it accepts connections, and says nothing.
#[tokio::test]
async fn try_succeeds_beside_a_frozen_member() {
    let server = EtcdServer::start();
    let (dead, live) = (Proxy::to(server.port()), Proxy::to(server.port()));
    dead.set(NetworkFault::Frozen);
    let (dead, live) = (dead.port(), live.port());
    let url = format!("etcd://127.0.0.1:{dead},127.0.0.1:{dead},127.0.0.1:{live}");
    for _ in 0..6 {
        let client = client(&url);
        let guard = lock(&client, "job").try_acquire().await.unwrap();
        let guard = guard.expect("the lock is free");
        assert_eq!(client.holders("job").await.unwrap().len(), 1);
        guard.release().await.unwrap();
    }
}

#[tokio::test]
async fn hundreds_of_leases_are_renewed_together() {
    const LOCKS: usize = 300;
    let server = EtcdServer::start();
    let client = client(&crate::url(&server));
    let locks = (0..LOCKS).map(|number| {
        let key = leasehold::Key::new(format!("job-{number}")).unwrap();
        client.lock(key).ttl(Duration::from_secs(12)).acquire()
    });
    let guards = try_join_all(locks).await.unwrap();
    let moved = guards.iter().map(async |guard| {
        let first = guard.deadline();
        guard.deadline_moved(first).await > first
    });
    assert!(join_all(moved).await.into_iter().all(|moved| moved));
    let released = guards.into_iter().map(leasehold::Guard::release);
    try_join_all(released).await.unwrap();
}

#[tokio::test]
async fn waiter_keeps_its_place_when_its_server_dies() {
    let mut set = EtcdSet::start_with(3, EtcdServer::builder().fast_elections());
    let leader = set.leader();
    let follower = (leader + 1) % 3;
    // The holder uses the leader, and the waiter begins at the follower that is killed.
    let port = |member: usize| set[member].port();
    let holder = client(&format!("etcd://127.0.0.1:{}", port(leader)));
    let url = format!(
        "etcd://127.0.0.1:{},127.0.0.1:{}",
        port(follower),
        port(leader)
    );
    let (first, second) = (client(&url), client(&url));
    let held = lock(&holder, "job").acquire().await.unwrap();
    let waits = |client: &leasehold::Client| {
        let lock = lock(client, "job").wait(crate::LONG);
        spawn(async move {
            let guard = lock.acquire().await.unwrap();
            let fence = guard.fence();
            guard.release().await.unwrap();
            fence
        })
    };
    let waiting = async |count: usize| {
        while holder.waiters(held.key()).await.unwrap().len() != count {
            tokio::task::yield_now().await;
        }
    };
    let one = waits(&first);
    waiting(1).await;
    let two = waits(&second);
    waiting(2).await;
    set[follower].kill();
    let fence = held.fence();
    held.release().await.unwrap();
    let (one, two) = (one.await.unwrap(), two.await.unwrap());
    assert!(fence < one && one < two, "{fence} {one} {two}");
}
