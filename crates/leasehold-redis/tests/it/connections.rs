//! Connections that break, servers that stop, and answers that make no sense.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use leasehold::clock::{Clock, SystemClock, within};
use leasehold::look::Pattern;
use leasehold::store::Store;
use leasehold::{Client, Effect, ErrorKind};
use leasehold_testkit::faults::{Cut, NetworkFault, Proxy};
use leasehold_testkit::servers::{LIMIT, RedisServer, Reply, until};

use crate::proxy::{End, SlowNetwork, endless, flooding, parrot, reconnecting_proxy};
use crate::support::{
    client, client_at, connections, eventually, hold, pass, refused, start, store, value,
};

#[tokio::test]
async fn late_attempt_finds_its_connection_closed() {
    let server = RedisServer::start();
    let mut network = SlowNetwork::to(server.port()).await;
    let locks = client_at(&format!("redis://127.0.0.1:{}", network.port));
    pass(&locks, "other").await;
    network.hold();
    let lock = locks.lock("deploy").ttl(Duration::from_secs(60));
    let error = lock.try_acquire().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unreachable, "{error}");
    // The client releases on a new connection what it may hold.
    eventually("another connection works", async || {
        locks.holders("deploy").await.ok()
    })
    .await;
    assert!(network.held() > 0);
    assert_eq!(network.deliver().await, End::Aborted);
    until("the late attempt is released", || {
        value(&server, "deploy") == Reply::Nil
    });
}

#[tokio::test]
async fn attempts_at_a_stopped_server_leave_nothing() {
    let (server, locks) = start();
    pass(&locks, "other").await;
    server.freeze();
    let waits: Vec<_> = (0..200)
        .map(|number| locks.lock(format!("lock {number}")).try_acquire())
        .collect();
    let soon = SystemClock.now() + Duration::from_millis(100);
    let all = futures_util::future::join_all(waits);
    assert!(within(&SystemClock, soon, all).await.is_none());
    server.thaw();
    until("all of them are free", || {
        let left = server.command(&["KEYS", "lock *"]);
        left == Reply::Array(Vec::new())
    });
}

/// The server carried the attempt out, and the connection broke before its answer.
#[tokio::test]
async fn ending_client_releases_on_another_connection() {
    let server = RedisServer::start();
    let path = Proxy::to(server.port());
    let locks = client_at(&format!("redis://127.0.0.1:{}", path.port()));
    pass(&locks, "other").await;
    path.cut_at(1, Cut::BeforeAnswer);
    let error = refused(&locks, "deploy").await;
    assert_eq!(error.kind(), ErrorKind::Unreachable, "{error}");
    assert!(path.has_cut());
    locks.close(Duration::from_secs(30)).await.unwrap();
    assert_eq!(value(&server, "deploy"), Reply::Nil);
}

#[tokio::test]
async fn many_callers_share_one_connection() {
    let (server, locks) = start();
    let all = (0..100).map(async |number| hold(&locks, &format!("lock {number}")).await);
    let guards = futures_util::future::join_all(all).await;
    assert_eq!(connections(&server), 1);
    for guard in guards {
        guard.release().await.unwrap();
    }
    drop(locks);
    let ended = "the connection ends with the client";
    eventually(ended, async || (connections(&server) == 0).then_some(())).await;
}

#[tokio::test]
async fn views_and_records_share_the_connection() {
    let (server, locks) = start();
    let guard = hold(&locks, "deploy").await;
    locks.holders("deploy").await.unwrap();
    locks.waiters("deploy").await.unwrap();
    let all = Pattern::new("*").unwrap();
    locks.list_locks(&all, 10).await.unwrap();
    let record = guard.record();
    record
        .write(*b"value", Duration::from_secs(60))
        .await
        .unwrap();
    assert_eq!(connections(&server), 1);
}

#[tokio::test]
async fn client_that_only_looks_is_no_client_of_the_server() {
    let (server, locks) = start();
    let all = Pattern::new("*").unwrap();
    locks.list_locks(&all, 10).await.unwrap();
    let Reply::Array(written) = server.command(&["KEYS", "*"]) else {
        panic!("no keys")
    };
    assert_eq!(written, []);
    assert_eq!(connections(&server), 1);
}

#[tokio::test]
async fn ended_client_of_a_shared_store_disconnects() {
    let server = RedisServer::start();
    let shared: Arc<dyn Store> = Arc::new(store(&server));
    let other = Client::new(Arc::clone(&shared));
    let guard = hold(&other, "other").await;
    for _ in 0..10 {
        let locks = Client::new(Arc::clone(&shared));
        pass(&locks, "deploy").await;
        locks.close(Duration::from_secs(30)).await.unwrap();
    }
    let ended = "one connection is left";
    eventually(ended, async || (connections(&server) == 1).then_some(())).await;
    guard.release().await.unwrap();
}

/// A client acts for the client that made a handle.
#[tokio::test]
async fn released_handles_keep_no_connections() {
    let (server, locks) = start();
    let use_another = async || {
        let other = client(&server);
        let handle = hold(&other, "deploy").await.into_handle().unwrap();
        drop(other);
        let handle = locks.renew(&handle).await.unwrap();
        locks.release(&handle).await.unwrap();
    };
    for _ in 0..10 {
        use_another().await;
    }
    eventually("at most two are left", async || {
        use_another().await;
        (connections(&server) <= 2).then_some(())
    })
    .await;
}

/// A router forgets the connection, and tells neither side.
#[tokio::test]
async fn short_lease_survives_a_dropped_connection() {
    let server = RedisServer::start();
    let path = Proxy::to(server.port());
    let locks = client_at(&format!("redis://127.0.0.1:{}", path.port()));
    let lock = locks.lock("deploy").ttl(Duration::from_secs(3));
    let guard = lock.try_acquire().await.unwrap().expect("a free lock");
    let deadline = guard.deadline();
    path.set(NetworkFault::HalfOpen);
    eventually("a renewal is lost", async || path.has_lost().then_some(())).await;
    path.set(NetworkFault::None);
    eventually("another connection renews it", async || {
        assert!(guard.is_valid(), "{:?}", guard.state());
        (guard.deadline() != deadline).then_some(())
    })
    .await;
    guard.release().await.unwrap();
}

#[tokio::test]
async fn dead_server_is_unreachable_until_it_returns() {
    let mut server = RedisServer::start();
    let locks = client(&server);
    let guard = hold(&locks, "deploy").await;
    server.kill();
    eventually("the connection is refused", async || {
        let error = refused(&locks, "other").await;
        assert_eq!(error.kind(), ErrorKind::Unreachable);
        let is_refused = error.to_string().contains("refused");
        (is_refused && error.effect() == Effect::None).then_some(())
    })
    .await;
    guard.release().await.unwrap_err();
    server.restart();
    let again = eventually("the server answers", async || {
        locks.lock("deploy").try_acquire().await.ok()?
    });
    again.await.release().await.unwrap();
}

#[tokio::test]
async fn restart_behind_a_reconnecting_proxy_is_noticed() {
    let mut server = RedisServer::start();
    let (port, mut opened) = reconnecting_proxy(server.port()).await;
    let locks = client_at(&format!("redis://127.0.0.1:{port}"));
    let guard = hold(&locks, "deploy").await;
    server.restart();
    opened.wait_for(|count| *count >= 2).await.unwrap();
    let health = locks.health().await.unwrap();
    let error = health[0].status.as_ref().unwrap_err();
    assert!(error.to_string().contains("a proxy in between"), "{error}");
    drop(guard);
    opened.wait_for(|count| *count >= 3).await.unwrap();
    let lock = locks.lock("deploy").wait(Duration::from_secs(10));
    lock.acquire().await.unwrap().release().await.unwrap();
}

#[tokio::test]
async fn forgotten_scripts_are_loaded_again() {
    let (server, locks) = start();
    for _ in 0..3 {
        let lock = locks.lock("deploy").ttl(Duration::from_secs(1));
        let guard = lock.wait(LIMIT).acquire().await.unwrap();
        server.command(&["SCRIPT", "FLUSH"]);
        guard.deadline_moved(guard.deadline()).await;
        assert!(guard.is_valid(), "{:?}", guard.state());
        server.command(&["SCRIPT", "FLUSH"]);
        // The client repeats a release that failed.
        let _ = guard.release().await;
    }
}

#[tokio::test]
async fn unintelligible_answers_are_an_error() {
    for answer in [
        &b"HTTP/1.1 400 Bad Request\r\n\r\n"[..],
        b"+OK\r\n+OK\r\n+OK\r\n+OK\r\n+OK\r\n+OK\r\n+OK\r\n+OK\r\n+OK\r\n+OK\r\n+OK\r\n+OK\r\n",
        b":seven\r\n",
        b"\0\0\0\0\r\n",
    ] {
        let port = parrot(answer).await;
        let locks = client_at(&format!("redis://127.0.0.1:{port}"));
        let error = refused(&locks, "deploy").await;
        assert_eq!(
            error.kind(),
            ErrorKind::InvalidResponse,
            "{answer:?}: {error}"
        );
    }
}

#[tokio::test]
async fn endless_reply_costs_only_its_own_connection() {
    let server = RedisServer::start();
    let other = Client::new(store(&server));
    let guard = hold(&other, "deploy").await;
    let (port, ended) = endless().await;
    let locks = client_at(&format!("redis://127.0.0.1:{port}"));
    let error = refused(&locks, "deploy").await;
    assert_eq!(error.kind(), ErrorKind::InvalidResponse, "{error}");
    let text = error.to_string();
    assert!(text.contains(&format!("127.0.0.1:{port}: ")), "{text}");
    assert!(text.contains("the limit is 8388608 bytes"), "{text}");
    let end = SystemClock.now() + LIMIT;
    within(&SystemClock, end, ended).await.unwrap().unwrap();
    assert!(guard.is_valid());
    guard.release().await.unwrap();
}

#[tokio::test]
async fn flood_of_notifications_is_not_kept() {
    let server = RedisServer::start();
    let floods = Arc::new(AtomicBool::new(false));
    let message = format!("turn 0123456789abcdef.{:032x} {}", 7, "x".repeat(400));
    let push = format!(
        ">3\r\n$7\r\nmessage\r\n$5\r\ninbox\r\n${}\r\n{message}\r\n",
        message.len()
    );
    let (port, ended) = flooding(server.port(), Arc::clone(&floods), push).await;
    let locks = client_at(&format!("redis://127.0.0.1:{port}"));
    pass(&locks, "deploy").await;
    floods.store(true, Ordering::Relaxed);
    let error = refused(&locks, "deploy").await;
    assert_eq!(error.kind(), ErrorKind::InvalidResponse, "{error}");
    assert!(error.to_string().contains("notifications"), "{error}");
    let end = SystemClock.now() + LIMIT;
    let taken = within(&SystemClock, end, ended).await.unwrap().unwrap();
    // What the kernel and one look at the connection take.
    assert!(taken < 32 << 20, "{taken} bytes");
}
