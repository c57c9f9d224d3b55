use std::sync::Arc;

use leasehold::ErrorKind;
use leasehold_quorum::{Event, Operation, Outcome, Reply, Request};
use leasehold_testkit::servers::{RedisServer, RedisSet, until};

use super::fixture::{Client, granted, locks};

async fn cycles(client: &Client, key: &str) {
    let mut last = None;
    for _ in 0..20 {
        let (lock_request, acquired) = client.acquire(key).await;
        assert!(last < Some(acquired.fence), "fences rise");
        last = Some(acquired.fence);
        client.release(lock_request).await;
    }
}

#[test]
fn blocking_caller_needs_no_runtime() {
    for servers in [1, 3] {
        let set = RedisSet::start(servers);
        let client = Client::of(&set);
        pollster::block_on(cycles(&client, "lock"));
        until("the locks are free", || locks(&set).is_empty());
        pollster::block_on(client.driver.close());
    }
}

#[tokio::test]
async fn current_thread_runtime_takes_many_locks() {
    let set = RedisSet::start(3);
    let client = Client::of(&set);
    let keys: Vec<_> = (0..20).map(|n| format!("lock-{n}")).collect();
    let all = keys.iter().map(|key| cycles(&client, key));
    futures_util::future::join_all(all).await;
    client.driver.close().await;
    assert_eq!(locks(&set), []);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn several_threads_take_many_locks() {
    let set = RedisSet::start(3);
    let client = Arc::new(Client::of(&set));
    let tasks = (0..64).map(|n| {
        let client = Arc::clone(&client);
        leasehold::store::background::spawn(
            async move { cycles(&client, &format!("lock-{n}")).await },
        )
    });
    for task in tasks.collect::<Vec<_>>() {
        task.await.unwrap();
    }
    client.driver.close().await;
    assert_eq!(locks(&set), []);
}

#[tokio::test]
async fn waiter_gets_lock_of_another_client() {
    let set = RedisSet::start(3);
    let (one, other) = (Client::of(&set), Client::of(&set));
    let (lock_request, first) = one.acquire("lock").await;
    let mut waiting = one.begin_acquire(one.lock_request("other-lock"));
    let granted_at_once = waiting.event().await;
    assert!(matches!(granted_at_once, Event::Done(Outcome::Acquired(_))));
    let waiter = other.lock_request("lock");
    let mut waiting = other.begin_acquire(Arc::clone(&waiter));
    // The holder's name comes with the first answer.
    let busy = waiting.event().await;
    assert!(matches!(busy, Event::Progress(_)), "{busy:?}");
    one.release(lock_request).await;
    let Outcome::Acquired(second) = waiting.await else {
        panic!("not acquired");
    };
    assert!(first.fence < second.fence);
    other.release(granted(&waiter, &second)).await;
}

#[tokio::test]
async fn dropped_driver_finishes_releases() {
    let set = RedisSet::start(3);
    let client = Client::of(&set);
    let (lock_request, _) = client.acquire("lock").await;
    let released = client.begin_release(lock_request);
    drop(client);
    drop(released);
    until("the lock is free", || locks(&set).is_empty());
}

#[test]
fn driver_is_dropped_without_a_runtime() {
    let set = RedisSet::start(1);
    let client = Client::of(&set);
    let (lock_request, _) = pollster::block_on(client.acquire("lock"));
    drop(client.begin_release(lock_request));
    drop(client);
    until("the lock is free", || locks(&set).is_empty());
    let server = set.iter().next().unwrap();
    until("the connection is closed", || {
        let clients = server.command(&["CLIENT", "LIST", "TYPE", "pubsub"]);
        !format!("{clients:?}").contains("leasehold")
    });
}

#[tokio::test]
async fn closed_driver_begins_nothing() {
    let set = RedisSet::start(1);
    let client = Client::of(&set);
    client.driver.close().await;
    let outcome = client.begin_acquire(client.lock_request("lock")).await;
    let Outcome::Failed(error) = outcome else {
        panic!("{outcome:?}");
    };
    assert_eq!(error.kind(), ErrorKind::Closed);
}

#[tokio::test]
async fn member_answers_administration() {
    let set = RedisSet::start(2);
    let client = Client::of(&set);
    client.acquire("lock").await;
    for member in 0..2 {
        let reply = client
            .driver
            .ask(member.into(), Request::Status)
            .await
            .unwrap();
        assert!(matches!(reply, Reply::Status(_)), "{reply:?}");
    }
    client
        .driver
        .ask(7.into(), Request::Status)
        .await
        .unwrap_err();
}

/// Only the task of an encrypted connection can write to it.
#[tokio::test]
async fn encrypted_connection_needs_no_other_event() {
    let server = RedisServer::builder().tls().start();
    let ca = server.ca().certificate();
    let url = format!("{}?ca={}", server.tls_url(), ca.display());
    let client = Client::at(vec![url]);
    let Outcome::Health(health) = client.driver.start(Operation::Health).await else {
        panic!("no health");
    };
    assert!(health[0].status.is_ok(), "{health:?}");
}
