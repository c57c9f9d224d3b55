//! The card at the server: what becomes of it, and of its mark in every answer.

use std::time::Duration;

use leasehold::clock::{Clock, SystemClock, within};
use leasehold::{Card, ErrorKind, Incarnation, Life, Member, MemberId};
use leasehold_redis::RedisMember;
use leasehold_testkit::servers::{RedisServer, Reply};

use crate::proxy::{End, SlowNetwork};
use crate::support::{card_edit, claim, eventually, granted, member, released};

const CARD: &str = "leasehold:card";

async fn write(store: &RedisMember) -> Card {
    let edit = card_edit(&store.presence().await.unwrap(), "a");
    assert!(store.write_card(&edit).await.unwrap());
    store.presence().await.unwrap().card.unwrap()
}

/// The incarnation that an attempt shows, which is the one of the presence.
async fn shown(store: &RedisMember) -> Incarnation {
    let mine = claim("shown");
    let shown = granted(store, &mine).await.sample.unwrap().incarnation;
    released(store, &mine).await;
    assert_eq!(store.presence().await.unwrap().incarnation(), shown);
    shown
}

#[tokio::test]
async fn whoever_takes_the_data_away_shows_in_the_next_answer() {
    for command in [
        &["FLUSHALL"][..],
        &["FLUSHDB"],
        &["DEL", CARD],
        &["SWAPDB", "0", "1"],
        &["RENAME", CARD, "elsewhere"],
        &["EXPIRE", CARD, "-1"],
    ] {
        let server = RedisServer::start();
        let store = member(&server);
        write(&store).await;
        let before = shown(&store).await;
        assert_eq!(shown(&store).await, before);
        assert!(!matches!(server.command(command), Reply::Error(_)));
        let after = shown(&store).await;
        assert_ne!(after, before, "{command:?}");
        write(&store).await;
        let anew = shown(&store).await;
        assert!(anew != before && anew != after, "{command:?}");
    }
}

#[tokio::test]
async fn a_restart_shows_whether_the_card_survived() {
    for (settings, saved, survives) in [
        (RedisServer::builder(), false, false),
        (RedisServer::builder(), true, true),
        (RedisServer::builder().durable(), false, true),
    ] {
        let mut server = settings.start();
        let store = member(&server);
        let card = write(&store).await;
        let before = shown(&store).await;
        if saved {
            assert_eq!(server.command(&["SAVE"]), Reply::Status("OK".into()));
        }
        server.restart();
        let presence = eventually("the server is back", async || store.presence().await.ok());
        let presence = presence.await;
        assert_ne!(presence.run, card.run);
        assert_eq!(presence.card, survives.then_some(card));
        assert_ne!(shown(&store).await, before);
    }
}

#[tokio::test]
async fn one_card_for_each_database_and_none_for_a_prefix() {
    let server = RedisServer::start();
    let at = |rest: &str| RedisMember::new(format!("{}{rest}", server.url())).unwrap();
    let card = write(&at("?prefix=app:")).await;
    let seen = at("").presence().await.unwrap().card;
    assert_eq!(seen.as_ref(), Some(&card));
    assert_eq!(at("/1").presence().await.unwrap().card, None);
    assert_eq!(server.command(&["PTTL", CARD]), Reply::Integer(-1));
    assert_eq!(shown(&at("")).await, shown(&at("?prefix=app:")).await);
    assert_ne!(shown(&at("/1")).await, shown(&at("")).await);
}

#[tokio::test]
async fn a_damaged_card_is_named_and_hinders_no_lock() {
    let server = RedisServer::start();
    let store = member(&server);
    for (damage, named) in [
        (&["HSET", CARD, "since", "soon"][..], r#""since""#),
        (&["HDEL", CARD, "ids"], r#""ids""#),
        (&["HSET", CARD, "seen:x", "1"], r#""seen:x""#),
        (&["HSET", CARD, "mark", "0123456789abcdef.1"], r#""mark""#),
        (&["HDEL", CARD, "mark"], r#""mark""#),
        (&["HSET", CARD, "life", "\u{1}\""], r#""life""#),
    ] {
        server.command(&["DEL", CARD]);
        write(&store).await;
        server.command(damage);
        let error = store.presence().await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Corrupt, "{error}");
        let text = error.to_string();
        assert!(text.contains(named), "{text}");
        assert!(text.contains("DEL leasehold:card"), "{text}");
        assert!(!text.contains('\u{1}'), "{text}");
        let mine = claim("deploy");
        granted(&store, &mine).await;
        released(&store, &mine).await;
        let blank = member(&server);
        server.command(&["HDEL", CARD, "mark"]);
        // Not even a card without a mark is no card.
        let mut edit = card_edit(&member_without_card(&server).await, "a");
        edit.expected = None;
        assert!(!blank.write_card(&edit).await.unwrap());
    }
}

/// How a member is whose card is in another database.
async fn member_without_card(server: &RedisServer) -> leasehold::Presence {
    let store = RedisMember::new(format!("{}/7", server.url())).unwrap();
    store.presence().await.unwrap()
}

#[tokio::test]
async fn a_record_of_another_type_is_no_card() {
    let server = RedisServer::start();
    let store = member(&server);
    let edit = card_edit(&store.presence().await.unwrap(), "a");
    server.command(&["SET", CARD, "text"]);
    let mut expecting = edit.clone();
    expecting.expected = Some(leasehold::Mark::of(edit.life, 1));
    let errors = [
        store.presence().await.unwrap_err(),
        store.write_card(&expecting).await.unwrap_err(),
        store.witness(&edit.seen).await.unwrap_err(),
    ];
    for error in errors {
        assert_eq!(error.kind(), ErrorKind::Corrupt, "{error}");
        assert!(error.to_string().contains("is not a hash"), "{error}");
    }
    assert!(!store.write_card(&edit).await.unwrap());
    let mine = claim("deploy");
    granted(&store, &mine).await;
    released(&store, &mine).await;
}

#[tokio::test]
async fn ids_that_cannot_stand_on_a_card_are_refused() {
    let server = RedisServer::start();
    let store = member(&server);
    let mut edit = card_edit(&store.presence().await.unwrap(), "a\nb");
    let error = store.write_card(&edit).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidInput);
    assert!(error.to_string().contains(r#""a\nb""#), "{error}");
    edit = card_edit(&store.presence().await.unwrap(), "a");
    edit.seen[0].0 = MemberId::new("");
    for error in [
        store.write_card(&edit).await.unwrap_err(),
        store.witness(&edit.seen).await.unwrap_err(),
    ] {
        assert_eq!(error.kind(), ErrorKind::InvalidInput, "{error}");
    }
    assert_eq!(server.command(&["DBSIZE"]), Reply::Integer(0));
}

#[tokio::test]
async fn the_largest_set_and_the_longest_age_fit_on_a_card() {
    let server = RedisServer::start();
    let store = member(&server);
    let ids = (0..31).map(|n| MemberId::new(format!("{n} {}", "x".repeat(120))));
    let mut edit = card_edit(&store.presence().await.unwrap(), "a");
    let (tolerance, life) = (Duration::from_millis(20), edit.life);
    edit.set = leasehold::MemberSet::new(ids.clone(), Duration::from_secs(3600), tolerance);
    edit.age = Some(Duration::MAX);
    edit.generation = u64::MAX;
    edit.seen = ids.map(|id| (id, life)).collect();
    assert!(store.write_card(&edit).await.unwrap());
    let card = store.presence().await.unwrap().card.unwrap();
    assert_eq!((&card.set, card.since.as_micros()), (&edit.set, 0));
    assert_eq!((card.generation, card.sightings.len()), (u64::MAX, 31));
    shown(&store).await;
    let again: Vec<_> = edit
        .seen
        .iter()
        .map(|(id, _)| (id.clone(), other(life)))
        .collect();
    store.witness(&again).await.unwrap();
    let card = store.presence().await.unwrap().card.unwrap();
    assert!(card.sightings.values().all(|seen| seen.changed));
}

fn other(life: Life) -> Life {
    let turned: String = life.to_string().chars().rev().collect();
    Life::parse(&turned).unwrap()
}

#[tokio::test]
async fn a_card_that_arrives_late_finds_its_connection_closed() {
    let server = RedisServer::start();
    let mut network = SlowNetwork::to(server.port()).await;
    let store = RedisMember::new(format!("redis://127.0.0.1:{}", network.port)).unwrap();
    let edit = card_edit(&store.presence().await.unwrap(), "a");
    network.hold();
    {
        let mut writing = store.write_card(&edit);
        eventually("the card is on its way", async || {
            let soon = SystemClock.now() + Duration::from_millis(5);
            let answer = within(&SystemClock, soon, &mut writing).await;
            assert!(answer.is_none(), "a card was answered that never arrived");
            (network.held() > 0).then_some(())
        })
        .await;
    }
    let present = eventually("a new connection", async || {
        let limit = SystemClock.now() + Duration::from_secs(5);
        within(&SystemClock, limit, store.presence()).await?.ok()
    });
    present.await;
    assert_eq!(network.deliver().await, End::Aborted);
    assert_eq!(store.presence().await.unwrap().card, None);
}
