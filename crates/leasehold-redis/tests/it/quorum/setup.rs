//! Operators initialize a quorum, change its members and readmit one.

use std::time::Duration;

use leasehold::clock::{Clock as _, SystemClock};
use leasehold::member::{MemberHealth, MemberRecord};
use leasehold::{Client, ErrorKind};
use leasehold_redis::RedisStore;
use leasehold_testkit::servers::{RedisServer, RedisSet};

use crate::support::{client, hold, pass, quorum};

fn of_first(servers: &RedisSet, count: usize) -> RedisStore {
    RedisStore::new(&servers.urls()[..count]).unwrap()
}

async fn assert_all_vote(store: RedisStore) {
    let ids: Vec<_> = store.member_ids().cloned().collect();
    let health = Client::new(store).health().await.unwrap();
    let of: Vec<_> = health.iter().map(|it| it.id.clone()).collect();
    assert_eq!(of, ids);
    for member in health {
        assert!(member.status.is_ok(), "{member:?}");
        assert!(member.untrusted_reason.is_none(), "{member:?}");
    }
}

fn is_initialized(member: &MemberHealth) -> bool {
    let status = member.status.as_ref().ok();
    let record = status.and_then(|status| status.member_record.as_ref());
    record.is_some_and(MemberRecord::is_formed)
}

/// Waits until a client has initialized the quorum.
async fn until_initialized(client: &Client) {
    while !client.health().await.unwrap().iter().all(is_initialized) {
        let next = SystemClock.now() + Duration::from_millis(20);
        SystemClock.sleep_until(next).await;
    }
}

#[tokio::test]
async fn initialized_members_vote_at_once() {
    let servers = RedisSet::start(3);
    quorum(&servers).init().await.unwrap();
    assert_all_vote(quorum(&servers)).await;
    assert!(!quorum(&servers).init().await.unwrap());
}

#[tokio::test]
async fn quorum_is_initialized_beside_a_client() {
    let servers = RedisSet::start(3);
    for _ in 0..10 {
        let (first, operator) = (Client::new(quorum(&servers)), quorum(&servers));
        let (health, initialized) = tokio::join!(first.health(), operator.init());
        health.unwrap();
        initialized.unwrap();
        let members = Client::new(quorum(&servers)).health().await.unwrap();
        assert!(members.iter().all(is_initialized), "{members:?}");
        for server in servers.iter() {
            server.command(&["FLUSHALL"]);
        }
    }
}

#[tokio::test]
async fn operator_ends_the_wait_of_new_members() {
    let servers = RedisSet::start_each(3, &RedisServer::builder().durable());
    let client = Client::new(quorum(&servers));
    until_initialized(&client).await;
    let error = client.lock("x").try_acquire().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NoQuorum, "{error}");
    // No member had a vote yet, so no lock was granted.
    assert!(quorum(&servers).init().await.unwrap());
    assert!(!quorum(&servers).init().await.unwrap());
    assert_all_vote(quorum(&servers)).await;
    let request = Client::new(quorum(&servers)).once("pay/1");
    let answer = request.run(async |_| Ok::<_, ()>("paid")).await.unwrap();
    assert_eq!(&*answer.unwrap().bytes, b"paid");
}

#[tokio::test]
async fn member_that_holds_a_lock_is_not_initialized() {
    let servers = RedisSet::start(3);
    let guard = hold(&client(&servers[1]), "deploy").await;
    let error = quorum(&servers).init().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidInput);
    let [failure] = error.members() else {
        panic!("{error}");
    };
    assert!(failure.to_string().contains("holds lock"), "{failure}");
    guard.release().await.unwrap();
    quorum(&servers).init().await.unwrap();
}

#[tokio::test]
async fn members_join_and_leave_one_by_one() {
    let servers = RedisSet::start(4);
    let old = of_first(&servers, 3);
    old.init().await.unwrap();
    let new = of_first(&servers, 4);
    new.succeed(&old).await.unwrap();
    // It can be repeated, and changes nothing.
    new.succeed(&old).await.unwrap();
    assert_all_vote(of_first(&servers, 4)).await;
    let error = Client::new(old).lock("x").try_acquire().await.unwrap_err();
    let text = error.to_string();
    assert!(text.contains("belongs to another quorum"), "{text}");
    let early = of_first(&servers, 3).succeed(&new).await.unwrap_err();
    assert!(
        early.to_string().contains("the quorum was changed"),
        "{early}"
    );
}

#[tokio::test]
async fn one_member_is_enough_to_readmit_another() {
    let mut servers = RedisSet::start(3);
    let store = quorum(&servers);
    store.init().await.unwrap();
    let ids: Vec<_> = store.member_ids().cloned().collect();
    assert!(!store.readmit(&ids[0]).await.unwrap());
    servers[0].command(&["FLUSHALL"]);
    servers[2].kill();
    assert!(store.readmit(&ids[0]).await.unwrap());
    assert!(!store.readmit(&ids[0]).await.unwrap());
    let health = Client::new(store).health().await.unwrap();
    let out = health[0].untrusted_reason.as_ref().expect("a new record");
    assert!(out.eligible_after.is_some(), "{out}");
    assert!(health[1].untrusted_reason.is_none());
    let error = health[2].status.as_ref().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unreachable, "{error}");
}

#[tokio::test]
async fn health_is_asked_anew_each_time() {
    let mut servers = RedisSet::start(3);
    quorum(&servers).init().await.unwrap();
    let locks = Client::new(quorum(&servers));
    pass(&locks, "deploy").await;
    servers[1].kill();
    let health = locks.health().await.unwrap();
    assert!(health[0].status.is_ok() && health[2].status.is_ok());
    assert!(health[1].status.is_err(), "{:?}", health[1]);
}

#[tokio::test]
async fn default_ttl_fits_a_shorter_max_ttl() {
    let servers = RedisSet::start(3);
    let longest = Duration::from_secs(5);
    let store = quorum(&servers).max_ttl(longest);
    store.init().await.unwrap();
    let guard = Client::new(store).lock("x").acquire().await.unwrap();
    assert_eq!(guard.ttl(), longest);
    guard.release().await.unwrap();
}
