//! How many times a request crosses the network.

use std::time::Duration;

use leasehold::Client;
use leasehold::clock::{Clock as _, SystemClock};
use leasehold_redis::RedisStore;
use leasehold_testkit::servers::{LIMIT, RedisServer, RedisSet};

use crate::proxy::Turns;
use crate::support::{client_at, hold, pass};

/// A client uses plain commands when it has been connected for this long.
const SETTLED: Duration = Duration::from_millis(1_200);

async fn settle() {
    SystemClock.sleep_until(SystemClock.now() + SETTLED).await;
}

#[tokio::test]
async fn cold_acquire_takes_few_trips() {
    let open = RedisServer::start();
    let closed = RedisServer::builder()
        .password("secret")
        .acl("ann", "on >word ~* +@all")
        .start();
    for (server, login, database) in [
        (&open, "", ""),
        (&open, "", "/3"),
        (&closed, ":secret@", ""),
        (&closed, "ann:word@", "/3"),
    ] {
        let (turns, port) = Turns::through_proxy_to(server.port()).await;
        let locks = client_at(&format!("redis://{login}127.0.0.1:{port}{database}"));
        let guard = hold(&locks, "deploy").await;
        let taken = turns.take();
        assert!(taken.len() <= 6, "{login}{database}: {taken:#?}");
        guard.release().await.unwrap();
    }
}

/// A epoch that was read before the rest could belong to other data.
#[tokio::test]
async fn mark_is_read_behind_each_request() {
    let server = RedisServer::start();
    let (turns, port) = Turns::through_proxy_to(server.port()).await;
    let locks = client_at(&format!("redis://127.0.0.1:{port}"));
    pass(&locks, "deploy").await;
    settle().await;
    for (place, work) in ["SET", "EVALSHA"].into_iter().enumerate() {
        turns.take();
        let guard = hold(&locks, &format!("lock {place}")).await;
        let mut taken = turns.take();
        if work == "EVALSHA" {
            guard.release().await.unwrap();
            taken = turns.take();
        }
        assert_eq!(taken.len(), 1, "{taken:#?}");
        let last = taken.last().unwrap();
        let place = |word: &str| last.rfind(&format!("\r\n{word}\r\n"));
        let (work, epoch) = (place(work).unwrap(), place("HGET").unwrap());
        assert!(work < epoch, "{last}");
    }
}

#[tokio::test]
async fn concurrent_requests_share_one_sample() {
    // A busy machine may send the first few one by one.
    const COUNT: usize = 100;
    let server = RedisServer::start();
    let (turns, port) = Turns::through_proxy_to(server.port()).await;
    let locks = client_at(&format!("redis://127.0.0.1:{port}"));
    pass(&locks, "deploy").await;
    settle().await;
    turns.take();
    let all = (0..COUNT).map(async |number| hold(&locks, &format!("lock {number}")).await);
    let guards = futures_util::future::join_all(all).await;
    let written = turns.take().concat();
    assert_eq!(written.matches("\r\nSET\r\n").count(), COUNT);
    assert!(written.matches("\r\nHGET\r\n").count() < COUNT, "{written}");
    drop(guards);
}

/// Trust rules cause no requests of their own: everything travels with other requests.
#[tokio::test]
async fn warm_acquire_on_five_servers_takes_one_trip() {
    let servers = RedisSet::start(5);
    let (mut turns, mut urls) = (Vec::new(), Vec::new());
    for (place, server) in servers.iter().enumerate() {
        let (heard, port) = Turns::through_proxy_to(server.port()).await;
        turns.push(heard);
        urls.push(format!("redis://127.0.0.1:{port}?id=m{place}"));
    }
    RedisStore::new(&urls).unwrap().init().await.unwrap();
    let locks = Client::new(RedisStore::new(&urls).unwrap());
    pass(&locks, "deploy").await;
    settle().await;
    pass(&locks, "deploy").await;
    released_by_all(&turns).await;
    let _guard = hold(&locks, "deploy").await;
    let trips = turns.iter().map(|turns| turns.take().len());
    assert_eq!(trips.max(), Some(1));
}

/// A release ends at a majority.
async fn released_by_all(turns: &[Turns]) {
    let deadline = SystemClock.now() + LIMIT;
    let quiet = |turns: &Turns| turns.said("\r\nEVALSHA\r\n") && !turns.is_waiting();
    while !turns.iter().all(quiet) {
        assert!(SystemClock.now() < deadline, "not released everywhere");
        tokio::task::yield_now().await;
    }
    turns.iter().for_each(|turns| drop(turns.take()));
}
