//! How often a request has to cross the network, and what crosses together.

use std::sync::Arc;
use std::time::Duration;

use leasehold::background;
use leasehold::clock::{Clock, SystemClock};
use leasehold::{Client, Member, Quorum};
use leasehold_redis::RedisMember;
use leasehold_testkit::servers::{LIMIT, RedisServer, RedisSet, Reply};

use crate::proxy::Turns;
use crate::support::{card_edit, claim, commands, granted, held, released, shared};

pub(crate) fn at(port: u16, login: &str, database: &str) -> RedisMember {
    RedisMember::new(format!("redis://{login}127.0.0.1:{port}{database}")).unwrap()
}

#[tokio::test]
async fn a_cold_acquire_takes_three_trips_with_or_without_a_look_before() {
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
        for looks in [false, true] {
            let (turns, port) = Turns::through_proxy_to(server.port()).await;
            let store = at(port, login, database);
            if looks {
                store.presence().await.unwrap();
            }
            let mine = claim("deploy");
            granted(&store, &mine).await;
            let taken = turns.take();
            assert_eq!(taken.len(), 3, "{login}{database}: {taken:#?}");
            released(&store, &mine).await;
        }
    }
}

#[tokio::test]
async fn a_look_at_an_open_connection_asks_again_in_one_trip() {
    let server = RedisServer::start();
    let (turns, port) = Turns::through_proxy_to(server.port()).await;
    let store = at(port, "", "");
    let before = store.presence().await.unwrap();
    turns.take();
    let after = store.presence().await.unwrap();
    assert_eq!(turns.take().len(), 1);
    assert_eq!(after.run, before.run);
    assert!(after.clock > before.clock);
    let opened = at(port, "", "");
    granted(&opened, &claim("deploy")).await;
    turns.take();
    server.command(&["CONFIG", "SET", "maxmemory", "100mb"]);
    server.command(&["CONFIG", "SET", "maxmemory-policy", "volatile-ttl"]);
    let unfit = opened.presence().await.unwrap().unfit;
    assert!(unfit.is_some(), "what was asked before the call is stale");
    assert_eq!(turns.take().len(), 1);
}

/// A mark that was read before the rest would be that of data which the rest may not have seen.
#[tokio::test]
async fn every_sampled_request_reads_the_mark_in_the_same_write_after_all_else() {
    let server = RedisServer::start();
    let (turns, port) = Turns::through_proxy_to(server.port()).await;
    let store = at(port, "", "");
    let edit = card_edit(&store.presence().await.unwrap(), "a");
    assert!(store.write_card(&edit).await.unwrap());
    // Twice, since the server does not know the scripts at first, and is asked again with them.
    for trips in [2, 1] {
        let (writer, reader) = (claim("deploy"), shared("doc"));
        turns.take();
        let grant = granted(&store, &writer).await;
        assert_read_last(turns.take(), "ZADD", 1);
        granted(&store, &reader).await;
        assert_read_last(turns.take(), "EVALSHA", trips);
        store.seal(&writer, grant.fence).await.unwrap();
        assert_read_last(turns.take(), "EVALSHA", trips);
        let leases = [held(&writer, &grant)];
        store.renew_sampled(&leases).await.unwrap();
        assert_read_last(turns.take(), "EVALSHA", trips);
        released(&store, &writer).await;
        released(&store, &reader).await;
    }
}

fn assert_read_last(written: Vec<String>, work: &str, trips: usize) {
    assert_eq!(written.len(), trips, "{written:#?}");
    let last = written.last().unwrap();
    let place = |word: &str| last.rfind(&format!("\r\n{word}\r\n"));
    let (work, mark) = (place(work).unwrap(), place("HGET").unwrap());
    assert!(work < mark, "{last}");
    assert!(mark < place("TIME").unwrap(), "{last}");
}

/// What there is for permits is not paid for where there are none.
#[tokio::test]
async fn a_mutex_runs_the_same_commands_as_if_there_were_no_permits() {
    let server = RedisServer::start();
    let (turns, port) = Turns::through_proxy_to(server.port()).await;
    let store = at(port, "", "");
    let (mut calls, mut written) = (Vec::new(), String::new());
    // Twice, since the server does not know the scripts at first.
    for _ in 0..2 {
        let writer = claim("deploy");
        turns.take();
        server.command(&["CONFIG", "RESETSTAT"]);
        let grant = granted(&store, &writer).await;
        // For longer: a lease that ends late enough is left as it is.
        let mut longer = writer.clone();
        longer.ttl *= 2;
        let lease = [held(&longer, &grant)];
        store.renew_sampled(&lease).await.unwrap();
        released(&store, &writer).await;
        calls = commands(&server);
        written = turns.take().concat();
    }
    for word in ["slots", "permits"] {
        assert!(!written.contains(word), "{word}: {written}");
    }
    let expected = [
        // The attempt: one write, no script.
        ("set", 1),
        // And two in the first renewal, which notes the fence, in place of those before.
        ("zadd", 3),
        ("zscore", 1),
        ("zremrangebyscore", 1),
        // Two scripts, each of which asks whose the lock is.
        ("evalsha", 2),
        ("get", 2),
        ("pttl", 1),
        ("del", 1),
        ("exists", 1),
        // In the renewal: the lease, and the counter's rest, which the attempt and the release leave
        // as it was set lately.
        ("pexpire", 2),
        // The attempt and the renewal are sampled.
        ("hget", 2),
        ("time", 2),
    ];
    for (command, count) in expected {
        let found = calls.iter().find(|(name, _)| name == command);
        assert_eq!(
            found.map(|(_, count)| *count),
            Some(count),
            "{command}: {calls:?}"
        );
    }
    let known = |name: &str| expected.iter().any(|(known, _)| *known == name);
    let others = calls
        .iter()
        .filter(|(name, _)| !known(name) && !name.starts_with("config"));
    assert_eq!(others.count(), 0, "{calls:?}");
}

#[tokio::test]
async fn a_later_renewal_looks_after_the_fence_and_writes_nothing_of_it() {
    let server = RedisServer::start();
    let store = at(server.port(), "", "");
    let writer = claim("deploy");
    let grant = granted(&store, &writer).await;
    let lease = [held(&writer, &grant)];
    store.renew_sampled(&lease).await.unwrap();
    server.command(&["CONFIG", "RESETSTAT"]);
    store.renew_sampled(&lease).await.unwrap();
    let calls = commands(&server);
    let count = |name: &str| calls.iter().find(|(found, _)| found == name).map(|it| it.1);
    assert_eq!(count("zscore"), Some(1), "{calls:?}");
    assert_eq!(count("zadd"), None, "{calls:?}");
    assert_eq!(count("zremrangebyscore"), None, "{calls:?}");
}

/// Several runs of the script, one look at the mark: it is that of all of them.
#[tokio::test]
async fn many_renewals_are_sampled_once() {
    let server = RedisServer::start();
    let (turns, port) = Turns::through_proxy_to(server.port()).await;
    let store = at(port, "", "");
    let mut leases = Vec::new();
    for number in 0..150 {
        let mine = claim(&format!("lock {number}"));
        leases.push(held(&mine, &granted(&store, &mine).await));
    }
    store.renew_sampled(&leases[..1]).await.unwrap();
    turns.take();
    let renewed = store.renew_sampled(&leases).await.unwrap();
    assert_eq!(renewed.answer.len(), 150);
    // So much may arrive in parts, which the server answers one by one.
    let written = turns.take().concat();
    assert_eq!(written.matches("\r\nEVALSHA\r\n").count(), 3);
    assert_eq!(written.matches("\r\nHGET\r\n").count(), 1);
    assert_read_last(vec![written], "EVALSHA", 1);
}

/// One look at the mark behind all requests of a write is as good as one behind each.
#[tokio::test]
async fn what_is_asked_together_is_sampled_once() {
    let server = RedisServer::start();
    let (turns, port) = Turns::through_proxy_to(server.port()).await;
    let store = at(port, "", "");
    let edit = card_edit(&store.presence().await.unwrap(), "a");
    assert!(store.write_card(&edit).await.unwrap());
    turns.take();
    let claims: Vec<_> = (0..10)
        .map(|number| claim(&format!("lock {number}")))
        .collect();
    let attempts = claims.iter().map(|claim| granted(&store, claim));
    let grants = futures_util::future::join_all(attempts).await;
    let written = turns.take().concat();
    assert_eq!(written.matches("\r\nSET\r\n").count(), 10);
    assert_eq!(written.matches("\r\nHGET\r\n").count(), 1);
    assert_read_last(vec![written], "SET", 1);
    let samples: Vec<_> = grants.iter().map(|grant| grant.sample.clone()).collect();
    assert!(samples[0].is_some());
    assert!(samples.iter().all(|sample| *sample == samples[0]));
}

/// A counter that is ahead has to be asked for its next fence. From then on it is asked at once.
#[tokio::test]
async fn a_clock_that_is_behind_the_counter_costs_one_more_trip_and_then_none() {
    let server = RedisServer::start();
    let (turns, port) = Turns::through_proxy_to(server.port()).await;
    let store = at(port, "", "");
    let mine = claim("deploy");
    let ahead = mine.proposal.as_micros() + 60_000_000;
    let fence = "leasehold:fence:0:{deploy}:deploy";
    server.command(&["ZADD", fence, &ahead.to_string(), "f"]);
    store.presence().await.unwrap();
    // The server does not know the script at first.
    for (drawn, trips) in [(1, 3), (2, 1), (3, 1)] {
        let mine = claim("deploy");
        turns.take();
        let grant = granted(&store, &mine).await;
        assert_eq!(grant.fence.get(), ahead + drawn);
        assert_read_last(turns.take(), "EVALSHA", trips);
        released(&store, &mine).await;
    }
    server.command(&["DEL", fence]);
    for drawn_by in ["EVALSHA", "ZADD"] {
        let mine = claim("deploy");
        turns.take();
        let grant = granted(&store, &mine).await;
        assert_eq!(grant.fence.get(), mine.proposal.as_micros() + 1);
        let written = turns.take();
        let counted = written.concat().contains("\r\nEVALSHA\r\n");
        assert_eq!(counted, drawn_by == "EVALSHA", "one command says all again");
        assert_read_last(written, drawn_by, 1);
        released(&store, &mine).await;
    }
}

/// The trust rules ask for nothing that does not travel with something else.
#[tokio::test]
async fn a_client_of_five_holds_the_lock_after_three_trips_and_then_after_one() {
    let servers = RedisSet::start(5);
    let (mut turns, mut urls) = (Vec::new(), Vec::new());
    for (place, server) in servers.iter().enumerate() {
        let (heard, port) = Turns::through_proxy_to(server.port()).await;
        turns.push(heard);
        urls.push(format!("redis://127.0.0.1:{port}?id=m{place}"));
    }
    let quorum = || Quorum::new(RedisMember::all(&urls).unwrap()).unwrap();
    quorum().init().await.unwrap();
    let trips = || {
        let taken = turns.iter().map(Turns::take);
        taken.map(|taken| taken.len()).max().unwrap()
    };
    trips();
    let locks = Client::new(quorum());
    let guard = locks.lock("deploy").acquire().await.unwrap();
    assert_eq!(trips(), 3);
    guard.release().await.unwrap();
    // Until all servers know the script that releases, it is sent twice.
    for _ in 0..5 {
        released_by_all(&turns).await;
        let guard = locks.lock("deploy").acquire().await.unwrap();
        guard.release().await.unwrap();
    }
    released_by_all(&turns).await;
    let guard = locks.lock("deploy").acquire().await.unwrap();
    assert_eq!(trips(), 1);
    drop(guard);
}

/// A release is over at a majority; the others are asked for it behind our back.
async fn released_by_all(turns: &[Turns]) {
    let deadline = SystemClock.now() + LIMIT;
    let quiet = |turns: &Turns| turns.said("\r\nEVALSHA\r\n") && !turns.is_waiting();
    while !turns.iter().all(quiet) {
        assert!(SystemClock.now() < deadline, "not released everywhere");
        tokio::task::yield_now().await;
    }
    turns.iter().for_each(|turns| drop(turns.take()));
}

/// Whoever is next at the client that gives the lock back asks in the same write, where the lease is too
/// short for it to go over.
#[tokio::test]
async fn a_lock_that_stays_with_its_client_is_handed_over_in_one_trip() {
    let server = RedisServer::start();
    let (turns, port) = Turns::through_proxy_to(server.port()).await;
    let locks = Client::new(Quorum::of_one(Arc::new(at(port, "", ""))));
    let lock = |ttl| locks.lock("line").ttl(Duration::from_secs(ttl));
    let mut guard = lock(5).acquire().await.unwrap();
    let mut waiting = Vec::new();
    for (place, ttl) in [(1, 12), (2, 28), (3, 60)] {
        waiting.push(background::spawn(lock(ttl).acquire()));
        queued(&server, place).await;
    }
    // At first the script that hands over is not known there.
    for (number, next) in waiting.into_iter().enumerate() {
        turns.take();
        guard.release().await.unwrap();
        guard = next.await.unwrap().unwrap();
        let said = turns.take().concat();
        if number >= 1 {
            // Release and attempt in one. With three keys the server is asked to count for heirs.
            let scripts = said.split("\r\nEVALSHA\r\n").skip(1);
            let of_six_keys =
                |script: &&str| script["$40\r\n".len() + 42..].starts_with("$1\r\n6\r\n");
            assert_eq!(
                scripts.filter(of_six_keys).count(),
                1,
                "hand-over {number}: {said}"
            );
        }
    }
}

/// Until so many wait for the lock.
pub(crate) async fn queued(server: &RedisServer, count: i64) {
    let deadline = SystemClock.now() + LIMIT;
    let queue = ["ZCARD", "leasehold:queue:{line}:line"];
    while server.command(&queue) != Reply::Integer(count) {
        assert!(SystemClock.now() < deadline, "{count} are not queued");
        tokio::task::yield_now().await;
    }
}
