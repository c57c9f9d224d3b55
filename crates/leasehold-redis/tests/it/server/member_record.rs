//! The member record at the server.

use std::time::Duration;

use leasehold::env::SystemEntropy;
use leasehold::member::{DataGeneration, Incarnation, MemberHealth, MemberId, MemberRecord};
use leasehold::{Client, ErrorKind};
use leasehold_redis::RedisMember;
use leasehold_testkit::servers::{RedisServer, RedisSet, Reply};

use crate::support::{TTL, eventually, member, member_record_edit, pass, quorum};

const MEMBER_RECORD: &str = "leasehold:member_record";

async fn write(store: &RedisMember) -> MemberRecord {
    let edit = member_record_edit(&store.status().await.unwrap(), "a");
    assert!(store.write_member_record(&edit).await.unwrap());
    store.status().await.unwrap().member_record.unwrap()
}

async fn incarnation(store: &RedisMember) -> Incarnation {
    store.status().await.unwrap().incarnation()
}

#[tokio::test]
async fn lost_data_shows_another_incarnation() {
    for command in [
        &["FLUSHALL"][..],
        &["FLUSHDB"],
        &["DEL", MEMBER_RECORD],
        &["SWAPDB", "0", "1"],
        &["RENAME", MEMBER_RECORD, "elsewhere"],
        &["EXPIRE", MEMBER_RECORD, "-1"],
    ] {
        let server = RedisServer::start();
        let store = member(&server);
        write(&store).await;
        let before = incarnation(&store).await;
        assert_eq!(incarnation(&store).await, before);
        assert!(!matches!(server.command(command), Reply::Error(_)));
        let after = incarnation(&store).await;
        assert_ne!(after, before, "{command:?}");
        write(&store).await;
        let anew = incarnation(&store).await;
        assert!(anew != before && anew != after, "{command:?}");
    }
}

/// The answers to requests for locks show it, without a separate request to the member.
#[tokio::test]
async fn lost_data_takes_the_vote_at_once() {
    let servers = RedisSet::start(3);
    quorum(&servers).init().await.unwrap();
    let locks = Client::new(quorum(&servers));
    pass(&locks, "before").await;
    servers[0].command(&["FLUSHALL"]);
    for number in 0..3 {
        // What the others answered before they noted the loss is void, so an attempt may need a second round.
        let lock = locks.lock(format!("after {number}")).ttl(TTL);
        let guard = lock.wait(TTL).acquire().await.unwrap();
        guard.release().await.unwrap();
    }
    let health = locks.health().await.unwrap();
    let id = format!("127.0.0.1:{}", servers[0].port());
    let lost = |it: &&MemberHealth| it.untrusted_reason.is_some();
    let out: Vec<_> = health
        .iter()
        .filter(lost)
        .map(|it| it.id.as_str())
        .collect();
    assert_eq!(out, [id]);
}

#[tokio::test]
async fn restart_shows_whether_the_record_survived() {
    for (settings, saved, survives) in [
        (RedisServer::builder(), false, false),
        (RedisServer::builder(), true, true),
        (RedisServer::builder().durable(), false, true),
    ] {
        let mut server = settings.start();
        let store = member(&server);
        let member_record = write(&store).await;
        let before = incarnation(&store).await;
        if saved {
            assert_eq!(server.command(&["SAVE"]), Reply::Status("OK".into()));
        }
        server.restart();
        let status = eventually("the server is back", async || store.status().await.ok());
        let status = status.await;
        assert_ne!(status.run, member_record.run);
        assert_ne!(status.incarnation(), before);
        assert_eq!(status.member_record, survives.then_some(member_record));
    }
}

#[tokio::test]
async fn each_database_has_one_record() {
    let server = RedisServer::start();
    let at = |rest: &str| RedisMember::new(format!("{}{rest}", server.url())).unwrap();
    let member_record = write(&at("?prefix=app:")).await;
    let seen = at("").status().await.unwrap().member_record;
    assert_eq!(seen.as_ref(), Some(&member_record));
    assert_eq!(at("/1").status().await.unwrap().member_record, None);
    assert_eq!(server.command(&["PTTL", MEMBER_RECORD]), Reply::Integer(-1));
    assert_ne!(incarnation(&at("/1")).await, incarnation(&at("")).await);
}

#[tokio::test]
async fn damaged_record_is_named() {
    let server = RedisServer::start();
    let store = member(&server);
    for (damage, named) in [
        (&["HSET", MEMBER_RECORD, "since", "soon"][..], r#""since""#),
        (&["HDEL", MEMBER_RECORD, "ids"], r#""ids""#),
        (&["HSET", MEMBER_RECORD, "seen:x", "1"], r#""seen:x""#),
        (
            &["HSET", MEMBER_RECORD, "epoch", "0123456789abcdef.1"],
            r#""epoch""#,
        ),
        (&["HDEL", MEMBER_RECORD, "epoch"], r#""epoch""#),
        (
            &["HSET", MEMBER_RECORD, "data_generation", "\u{1}\""],
            r#""data_generation""#,
        ),
    ] {
        server.command(&["DEL", MEMBER_RECORD]);
        write(&store).await;
        server.command(damage);
        let error = store.status().await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Corrupt, "{error}");
        let text = error.to_string();
        assert!(text.contains(named), "{text}");
        assert!(text.contains("DEL leasehold:member_record"), "{text}");
        assert!(!text.contains('\u{1}'), "{text}");
        // A record without an epoch is still a record.
        server.command(&["HDEL", MEMBER_RECORD, "epoch"]);
        let elsewhere = RedisMember::new(format!("{}/7", server.url())).unwrap();
        let edit = member_record_edit(&elsewhere.status().await.unwrap(), "a");
        assert!(!store.write_member_record(&edit).await.unwrap());
    }
}

#[tokio::test]
async fn key_of_another_type_is_no_record() {
    let server = RedisServer::start();
    let store = member(&server);
    let edit = member_record_edit(&store.status().await.unwrap(), "a");
    server.command(&["SET", MEMBER_RECORD, "text"]);
    let mut expecting = edit.clone();
    expecting.expected = Some(leasehold::member::Epoch::of(edit.data_generation, 1));
    let errors = [
        store.status().await.unwrap_err(),
        store.write_member_record(&expecting).await.unwrap_err(),
        store.observe(&edit.seen).await.unwrap_err(),
    ];
    for error in errors {
        assert_eq!(error.kind(), ErrorKind::Corrupt, "{error}");
        assert!(error.to_string().contains("is not a hash"), "{error}");
    }
    assert!(!store.write_member_record(&edit).await.unwrap());
}

#[tokio::test]
async fn invalid_ids_are_refused() {
    let server = RedisServer::start();
    let store = member(&server);
    let mut edit = member_record_edit(&store.status().await.unwrap(), "a\nb");
    let error = store.write_member_record(&edit).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidInput);
    assert!(error.to_string().contains(r#""a\nb""#), "{error}");
    edit = member_record_edit(&store.status().await.unwrap(), "a");
    edit.seen[0].0 = MemberId::new("");
    for error in [
        store.write_member_record(&edit).await.unwrap_err(),
        store.observe(&edit.seen).await.unwrap_err(),
    ] {
        assert_eq!(error.kind(), ErrorKind::InvalidInput, "{error}");
    }
    assert_eq!(server.command(&["DBSIZE"]), Reply::Integer(0));
}

#[tokio::test]
async fn admission_of_a_peer_changes_the_epoch() {
    let server = RedisServer::start();
    let store = member(&server);
    let first = write(&store).await;
    let before = incarnation(&store).await;
    let peer = MemberId::new("other");
    let drawn = first.seen(&peer).unwrap();
    let restarted = drawn.restarted([drawn], &SystemEntropy);
    store.observe(&[(peer.clone(), restarted)]).await.unwrap();
    assert_eq!(incarnation(&store).await, before, "it is the same server");
    let later = DataGeneration::admitted([drawn], &SystemEntropy);
    store.observe(&[(peer.clone(), later)]).await.unwrap();
    let record = store.status().await.unwrap().member_record.unwrap();
    assert_eq!(
        (record.seen(&peer), record.configuration()),
        (Some(later), 1)
    );
    assert_ne!(incarnation(&store).await, before);
    // An earlier one does not come back.
    store.observe(&[(peer, restarted)]).await.unwrap();
    assert_eq!(store.status().await.unwrap().member_record, Some(record));
    // The record may have forgotten an earlier server of this peer.
    let before = incarnation(&store).await;
    store
        .observe(&[(MemberId::new("new"), drawn)])
        .await
        .unwrap();
    assert_ne!(incarnation(&store).await, before);
}

#[tokio::test]
async fn largest_quorum_and_longest_age_fit() {
    let server = RedisServer::start();
    let store = member(&server);
    let ids = (0..31).map(|n| MemberId::new(format!("{n} {}", "x".repeat(120))));
    let mut edit = member_record_edit(&store.status().await.unwrap(), "a");
    let (tolerance, data_generation) = (Duration::from_millis(20), edit.data_generation);
    edit.set = leasehold::member::MemberSet::new(ids.clone(), Duration::from_secs(3600), tolerance);
    edit.age = Some(Duration::MAX);
    edit.generation = u64::MAX;
    edit.seen = ids.map(|id| (id, data_generation)).collect();
    assert!(store.write_member_record(&edit).await.unwrap());
    let member_record = store.status().await.unwrap().member_record.unwrap();
    assert_eq!(
        (&member_record.set, member_record.since.as_micros()),
        (&edit.set, 0)
    );
    assert_eq!(
        (member_record.generation, member_record.observations.len()),
        (u64::MAX, 31)
    );
    let other = DataGeneration::admitted([data_generation], &SystemEntropy);
    let again = edit.seen.iter().map(|(id, _)| (id.clone(), other));
    store.observe(&again.collect::<Vec<_>>()).await.unwrap();
    let member_record = store.status().await.unwrap().member_record.unwrap();
    assert!(member_record.observations.values().all(|seen| seen.changed));
}
