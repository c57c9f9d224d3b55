use std::net::Ipv4Addr;
use std::sync::Arc;
use std::time::Duration;

use leasehold::clock::{Clock as _, SystemClock};
use leasehold_quorum::{Outcome, Request};
use leasehold_testkit::faults::{NetworkFault, Proxy};
use leasehold_testkit::servers::{RedisServer, RedisSet, Reply, until};
use tokio::net::TcpListener;

use super::fixture::{Client, granted, locks};

#[tokio::test]
async fn restarted_server_is_used_again() {
    let mut set = RedisSet::start(1);
    let client = Client::of(&set);
    let (lock_request, _) = client.acquire("lock").await;
    client.release(lock_request).await;
    set.iter_mut().for_each(RedisServer::restart);
    // The restarted server has no scripts.
    let (lock_request, _) = client.acquire("lock").await;
    client.release(lock_request).await;
    client.driver.close().await;
    assert_eq!(locks(&set), []);
}

#[tokio::test]
async fn two_of_three_servers_suffice() {
    let mut set = RedisSet::start(3);
    let client = Client::of(&set);
    let (lock_request, _) = client.acquire("lock").await;
    client.release(lock_request).await;
    set.iter_mut().next().unwrap().kill();
    for _ in 0..10 {
        let (lock_request, _) = client.acquire("lock").await;
        client.release(lock_request).await;
    }
}

#[tokio::test]
async fn cut_connections_are_opened_again() {
    let set = RedisSet::start(3);
    let client = Client::of(&set);
    for round in 0..8 {
        let lock_request = client.lock_request("lock");
        let call = client.begin_acquire(Arc::clone(&lock_request));
        for server in set.iter().skip(round % 3) {
            server.command(&["CLIENT", "KILL", "TYPE", "pubsub"]);
        }
        let outcome = call.await;
        let Outcome::Acquired(acquired) = outcome else {
            panic!("{outcome:?}");
        };
        // The release fails if no majority is connected again. The engine releases once there is one.
        let held = granted(&lock_request, &acquired);
        client.begin_release(held).await;
    }
    until("the lock is free", || locks(&set).is_empty());
}

/// Each connection breaks before the server answers.
#[tokio::test]
async fn failing_server_is_tried_less_and_less() {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let _client = Client::at(vec![format!("redis://127.0.0.1:{port}")]);
    listener.accept().await.unwrap();
    let began = SystemClock.now();
    for _ in 0..6 {
        listener.accept().await.unwrap();
    }
    // The pauses double from at least 10 ms.
    let took = SystemClock.now().since(began);
    assert!(took >= Duration::from_millis(630), "{took:?}");
}

/// Each connection breaks after the server answered.
#[tokio::test]
async fn cut_connection_is_replaced_without_a_growing_pause() {
    let server = RedisServer::start();
    let path = Proxy::to(server.port());
    let client = Client::at(vec![format!("redis://127.0.0.1:{}", path.port())]);
    let began = SystemClock.now();
    for _ in 0..12 {
        let opened = path.opened();
        until("the server answers", || {
            let answer = client.driver.ask(0.into(), Request::Status);
            pollster::block_on(answer).is_ok()
        });
        path.cut();
        until("there is another connection", || path.opened() > opened);
    }
    // Pauses that double take at least 3.6 s.
    let took = SystemClock.now().since(began);
    assert!(took < Duration::from_secs(3), "{took:?}");
}

#[tokio::test]
async fn caller_learns_of_a_broken_connection() {
    let mut set = RedisSet::start(1);
    let client = Client::of(&set);
    client.acquire("lock").await;
    let server = set.iter_mut().next().unwrap();
    server.freeze();
    let asked = client.driver.ask(0.into(), Request::Status);
    let killed = async {
        // This runs once the request has been polled. A server that continued first could reply.
        server.kill();
    };
    let (reply, ()) = futures_util::future::join(asked, killed).await;
    reply.unwrap_err();
    client
        .driver
        .ask(0.into(), Request::Status)
        .await
        .unwrap_err();
}

#[tokio::test]
async fn forgotten_connection_is_replaced() {
    let server = RedisServer::start();
    let path = Proxy::to(server.port());
    let client = Client::at(vec![format!("redis://127.0.0.1:{}", path.port())]);
    let (lock_request, _) = client.acquire("lock").await;
    path.set(NetworkFault::HalfOpen);
    client
        .driver
        .ask(0.into(), Request::Status)
        .await
        .unwrap_err();
    path.set(NetworkFault::None);
    // The old connection stays dead.
    let waiting = client
        .begin_acquire(client.lock_request("other-lock"))
        .await;
    assert!(matches!(waiting, Outcome::Acquired(_)), "{waiting:?}");
    client.release(lock_request).await;
    // What the server had received on the old connection must not take effect late.
    let Reply::Bulk(clients) = server.command(&["CLIENT", "LIST"]) else {
        panic!("no list of clients");
    };
    assert_eq!(clients.matches("name=leasehold ").count(), 1, "{clients}");
}
