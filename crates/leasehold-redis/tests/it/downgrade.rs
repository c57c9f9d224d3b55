//! An exclusive lease that becomes a shared one.

use std::time::Duration;

use futures_util::future::join_all;
use leasehold::{
    Claim, Client, Inspection as _, Key, LostReason, Member, Mode, Quorum, Release, Renewal, Seal,
    Store,
};
use leasehold_redis::RedisMember;
use leasehold_testkit::servers::{RedisServer, RedisSet, Reply};

use crate::support::{
    busy, claim, claim_for, eventually, granted, held, key, member, next, queued, released, shared,
    value,
};

const READERS: &str = "leasehold:readers:{doc}:doc";

fn as_reader(claim: &Claim) -> Claim {
    claim.clone().with_mode(Mode::Shared)
}

fn sentinel() -> Reply {
    Reply::Bulk("leasehold:shared".into())
}

#[tokio::test]
async fn a_writer_that_renews_as_a_reader_lets_readers_in_and_no_writer() {
    let server = RedisServer::start();
    let store = member(&server);
    let writer = claim("doc");
    let grant = granted(&store, &writer).await;
    busy(&store, &shared("doc")).await;
    let reader = as_reader(&writer);
    for _ in 0..2 {
        let answers = store.renew(&[held(&reader, &grant)]).await;
        assert!(matches!(answers[..], [Renewal::Renewed]), "{answers:?}");
        assert_eq!(value(&server, "doc"), sentinel());
        let foreign = server.command(&["SET", "doc", "token", "NX", "PX", "1000"]);
        assert_eq!(foreign, Reply::Nil);
        busy(&store, &claim("doc")).await;
    }
    let holders = store.holders(&key("doc")).await.unwrap();
    assert_eq!(holders.len(), 1);
    assert_eq!(
        (holders[0].owner, holders[0].mode),
        (Some(writer.owner), Mode::Shared)
    );
    let sealed = store.seal(&reader, next(&grant)).await.unwrap();
    assert_eq!(sealed.answer, Seal::Sealed);
    let other = shared("doc");
    assert!(granted(&store, &other).await.fence > grant.fence);
    released(&store, &reader).await;
    busy(&store, &claim("doc")).await;
    released(&store, &other).await;
    assert_eq!(value(&server, "doc"), Reply::Nil);
}

#[tokio::test]
async fn a_late_renewal_of_the_writer_is_lost_and_changes_nothing() {
    let server = RedisServer::start();
    let store = member(&server);
    let writer = claim("doc");
    let grant = granted(&store, &writer).await;
    let reader = as_reader(&writer);
    store.renew(&[held(&reader, &grant)]).await;
    let late = [held(&writer, &grant)];
    let answers = store.renew(&late).await;
    assert!(
        matches!(answers[..], [Renewal::Lost(LostReason::Taken)]),
        "{answers:?}"
    );
    store.heal(&late).await.unwrap();
    assert_eq!(store.release(&writer).await.unwrap(), Release::WasLost);
    assert_eq!(value(&server, "doc"), sentinel());
    released(&store, &reader).await;
}

#[tokio::test]
async fn releasing_the_reader_frees_the_lock_that_is_still_the_writer_s() {
    let server = RedisServer::start();
    let store = member(&server);
    let (writer, next) = (claim("doc"), claim("doc"));
    granted(&store, &writer).await;
    let stranger = shared("doc");
    assert_eq!(store.release(&stranger).await.unwrap(), Release::WasLost);
    busy(&store, &next).await;
    let answer = store.acquire_in_turn(&next, &queued(&next)).await;
    assert!(
        matches!(answer, Ok(leasehold::Attempt::Busy(_))),
        "{answer:?}"
    );
    released(&store, &as_reader(&writer)).await;
    let Reply::Bulk(reserved) = value(&server, "doc") else {
        panic!("it is not handed over")
    };
    assert!(reserved.starts_with("leasehold:next:"), "{reserved}");
    store.leave_queue(&next.key, next.owner).await.unwrap();
    assert_eq!(store.release(&writer).await.unwrap(), Release::WasLost);
}

#[tokio::test]
async fn the_lease_does_not_become_shorter_and_readers_of_before_do_not_rise() {
    let server = RedisServer::start();
    let store = member(&server);
    let old = shared("doc");
    let lease = held(&old, &granted(&store, &old).await);
    server.command(&["DEL", "doc"]);
    let writer = claim("doc");
    let grant = granted(&store, &writer).await;
    assert_eq!(server.command(&["ZCARD", READERS]), Reply::Integer(1));
    let mut reader = as_reader(&writer);
    reader.ttl = Duration::from_millis(500);
    store.renew(&[held(&reader, &grant)]).await;
    let ends = server.command(&["ZSCORE", READERS, &writer.owner.to_string()]);
    let Reply::Integer(sentinel) = server.command(&["PEXPIRETIME", "doc"]) else {
        panic!("PEXPIRETIME")
    };
    assert_eq!(ends, Reply::Bulk(sentinel.to_string()));
    let left = server.command(&["PTTL", "doc"]);
    assert!(
        matches!(left, Reply::Integer(left) if left > 30_000),
        "{left:?}"
    );
    let answers = store.renew(&[lease]).await;
    assert!(matches!(answers[..], [Renewal::Lost(_)]), "{answers:?}");
}

#[tokio::test]
async fn nobody_else_s_lock_becomes_shared_nor_one_that_is_over() {
    let server = RedisServer::start();
    let store = member(&server);
    let (mine, other) = (claim_for("doc", Duration::from_secs(50)), claim("doc"));
    let grant = granted(&store, &mine).await;
    let reader = held(&as_reader(&mine), &grant);
    released(&store, &mine).await;
    let answers = store.renew(std::slice::from_ref(&reader)).await;
    assert!(
        matches!(answers[..], [Renewal::Lost(LostReason::Gone)]),
        "{answers:?}"
    );
    assert_eq!(value(&server, "doc"), Reply::Nil);
    granted(&store, &other).await;
    let answers = store.renew(std::slice::from_ref(&reader)).await;
    assert!(
        matches!(answers[..], [Renewal::Lost(LostReason::Taken)]),
        "{answers:?}"
    );
    assert_eq!(value(&server, "doc"), Reply::Bulk(other.owner.to_string()));
    server.command(&["DEL", "doc"]);
    server.command(&["HSET", "doc", "uuid:1", "1"]);
    let answers = store.renew(&[reader]).await;
    assert!(
        matches!(answers[..], [Renewal::Lost(LostReason::Taken)]),
        "{answers:?}"
    );
}

/// Those far behind ask only every few seconds: who comes in first calls them.
#[tokio::test]
async fn all_readers_that_wait_are_called_wherever_the_first_of_them_comes_in() {
    const READERS: usize = 24;
    for members in [1, 5] {
        let servers = RedisSet::start(members);
        let quorum = || {
            let members = RedisMember::all(servers.urls()).unwrap();
            Quorum::new(members).unwrap()
        };
        if members > 1 {
            quorum().init().await.unwrap();
        }
        let (writer, clients) = (
            Client::new(quorum()),
            [(); 4].map(|()| Client::new(quorum())),
        );
        let guard = writer.lock("doc").acquire().await.unwrap();
        let reading = (0..READERS).map(|number| {
            let lock = clients[number % clients.len()].lock("doc");
            lock.mode(Mode::Shared).acquire()
        });
        let downgrading = async {
            let (looks, name) = (quorum(), Key::new("doc").unwrap());
            eventually("all wait", async || {
                let waiters = looks.waiters(&name).await.unwrap();
                (waiters.len() == READERS).then_some(())
            })
            .await;
            guard.downgrade().await.unwrap();
        };
        let (entered, ()) = tokio::join!(join_all(reading), downgrading);
        for reader in entered {
            assert!(reader.unwrap().is_valid());
        }
        let called = servers
            .iter()
            .filter(|server| called(server) + 1 >= READERS);
        assert!(called.count() > members / 2);
        drop(guard);
    }
}

/// How often somebody was told something.
fn called(server: &RedisServer) -> usize {
    let Reply::Bulk(stats) = server.command(&["INFO", "commandstats"]) else {
        panic!("INFO")
    };
    let figures = stats.split_once("cmdstat_publish:calls=");
    let calls = figures.and_then(|(_, figures)| figures.split_once(','));
    calls.map_or(0, |(calls, _)| calls.parse().unwrap())
}
