//! Users and servers that cannot tell anybody anything.

use leasehold::{Attempt, ErrorKind, Inspection as _, Member, Mode, Store, Turn};
use leasehold_redis::RedisMember;
use leasehold_testkit::servers::{RedisServer, Reply};

use super::party::{OFFERED, Party, QUEUE};
use crate::support::{eventually, value};

/// A party whose user has all rights but `without`.
fn party(server: &RedisServer, user: &str, without: &[&str]) -> Party {
    let mut command = vec!["ACL", "SETUSER", user, "reset", "on", ">secret", "~*"];
    command.extend(["+@all", "allchannels"]);
    command.extend(without);
    assert_eq!(server.command(&command), Reply::Status("OK".into()));
    let url = format!("redis://{user}:secret@127.0.0.1:{}", server.port());
    Party::of(RedisMember::new(url).unwrap())
}

#[tokio::test]
async fn who_may_not_use_the_channels_still_locks_in_turn() {
    for without in [
        &["resetchannels"][..],
        &["-subscribe"],
        &["-publish"],
        &["-publish", "-subscribe"],
    ] {
        let server = RedisServer::start();
        let (mine, other) = (
            party(&server, "ann", without),
            party(&server, "ben", without),
        );
        let (held, _) = mine.granted(mine.since(1)).await;
        let waiting = other.since(2);
        other.busy(waiting).await;
        let busy = other.busy(waiting).await;
        assert_eq!(busy.place, Some(1), "{without:?}");
        // Who may not tell others learns of it when it has something to tell.
        let may_hear = without == ["-publish"];
        assert_eq!(busy.untold, !may_hear, "{without:?}");
        mine.releases(&held).await;
        // Where nobody can be told anything everybody counts as alive; where nobody hears, as dead.
        let offered = server.command(&["EXISTS", OFFERED]) == Reply::Integer(1);
        assert_eq!(offered, without != ["-subscribe"], "{without:?}");
        let (held, _) = other.granted(waiting).await;
        let reader = mine.since(3).shared();
        mine.busy(reader).await;
        mine.leaves(reader).await;
        let waiting = mine.since(4);
        mine.busy(waiting).await;
        assert!(mine.busy(waiting).await.untold, "{without:?}");
        mine.leaves(waiting).await;
        other.releases(&held).await;
        assert_eq!(value(&server, "deploy"), Reply::Nil);
    }
}

#[tokio::test]
async fn who_may_not_hear_does_not_go_deaf() {
    let server = RedisServer::start();
    let party = party(&server, "ann", &["-subscribe"]);
    let (held, _) = party.granted(party.since(1)).await;
    server.command(&["CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes"]);
    eventually("the connection is replaced", async || {
        party.member.release(&held).await.ok()
    })
    .await;
    party.has_heard_nothing().await;
}

#[tokio::test]
async fn a_server_that_knows_only_the_old_protocol_is_a_member() {
    let server = RedisServer::builder()
        .directive("rename-command", "HELLO \"\"")
        .password("secret")
        .start();
    let (mine, other) = (Party::at(&server), Party::at(&server));
    let held = mine.takes(Mode::Exclusive).await;
    let waiting = other.since(1);
    let busy = other.busy(waiting).await;
    assert_eq!(busy.place, Some(1));
    assert!(busy.untold);
    assert_eq!(other.queue().await, [waiting.ticket]);
    let reader = mine.claim(Mode::Shared);
    mine.releases(&held).await;
    let (held, _) = other.granted(waiting).await;
    other.releases(&held).await;
    crate::support::granted(&mine.member, &reader).await;
    let holders = mine.member.holders(&crate::support::key("deploy")).await;
    assert_eq!(holders.unwrap()[0].client.as_ref(), Some(&*mine.client));
    assert!(mine.member.presence().await.unwrap().unfit.is_none());
}

#[tokio::test]
async fn a_right_that_the_queue_needs_is_named() {
    let server = RedisServer::start();
    let party = party(&server, "ann", &["-zrank"]);
    let held = party.takes(Mode::Exclusive).await;
    let claim = party.claim(Mode::Exclusive);
    let turn = Turn::Queued(party.since(1).ticket);
    let error = party.member.acquire_in_turn(&claim, &turn).await;
    let error = error.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Refused);
    assert!(error.to_string().contains("+zrank"), "{error}");
    party.releases(&held).await;
    server.command(&["DEL", QUEUE]);
    let attempt = party.member.acquire_in_turn(&claim, &turn).await;
    assert!(matches!(attempt, Ok(Attempt::Granted(_))), "{attempt:?}");
}
