//! What reaches the ear, and when it goes deaf.

use std::time::Duration;

use leasehold::clock::{Clock, SystemClock, within};
use leasehold::{Heard, Member, Mode, Store, Turn};
use leasehold_redis::RedisMember;
use leasehold_testkit::servers::{RedisServer, Reply};

use super::party::Party;
use crate::support::{connections, eventually, unread};

fn cut_all(server: &RedisServer) {
    server.command(&["CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes"]);
    server.command(&["CLIENT", "KILL", "TYPE", "pubsub", "SKIPME", "yes"]);
}

#[tokio::test]
async fn a_cut_connection_is_heard_of_and_the_next_one_hears_again() {
    let server = RedisServer::start();
    let (holder, waiter) = (Party::at(&server), Party::at(&server));
    holder.takes(Mode::Exclusive).await;
    let waiting = waiter.since(1);
    for _ in 0..2 {
        waiter.busy(waiting).await;
        cut_all(&server);
        assert_eq!(waiter.hears().await, Heard::Deaf);
    }
    let (held, _) = eventually("the holder is connected again", async || {
        holder.asks(holder.since(9)).await.ok()
    })
    .await;
    drop(held);
    waiter.busy(waiting).await;
    server.command(&["DEL", "deploy"]);
    eventually("somebody asks, and the lock is handed over", async || {
        holder.asks(holder.since(9)).await.ok()
    })
    .await;
    waiter.hears_its_turn(waiting).await;
}

#[tokio::test]
async fn a_second_listener_hears_what_does_not_concern_the_first() {
    let server = RedisServer::start();
    let holder = Party::at(&server);
    let member = RedisMember::new(server.url()).unwrap();
    // As that of a quorum which was dropped.
    member.listen(Box::new(|_| false));
    let waiter = Party::of(member);
    let held = holder.takes(Mode::Exclusive).await;
    let waiting = waiter.since(1);
    waiter.busy(waiting).await;
    holder.releases(&held).await;
    waiter.hears_its_turn(waiting).await;
    cut_all(&server);
    assert_eq!(waiter.hears().await, Heard::Deaf);
}

#[tokio::test]
async fn who_never_listened_does_not_go_deaf() {
    let server = RedisServer::start();
    let party = Party::at(&server);
    let held = party.takes(Mode::Exclusive).await;
    cut_all(&server);
    eventually("the connection is replaced", async || {
        party.member.release(&held).await.ok()
    })
    .await;
    assert_eq!(connections(&server), 1);
    party.has_heard_nothing().await;
}

#[tokio::test]
async fn an_attempt_that_is_given_up_takes_the_hearing_of_the_others_with_it() {
    let server = RedisServer::start();
    let (holder, waiter) = (Party::at(&server), Party::at(&server));
    holder.takes(Mode::Exclusive).await;
    waiter.busy(waiter.since(1)).await;
    server.freeze();
    {
        let claim = waiter.claim(Mode::Exclusive);
        let turn = Turn::Queued(waiter.since(2).ticket);
        let mut attempt = waiter.member.acquire_in_turn(&claim, &turn);
        eventually("the attempt arrives", async || {
            let soon = SystemClock.now() + Duration::from_millis(5);
            let answer = within(&SystemClock, soon, &mut attempt).await;
            assert!(answer.is_none(), "a frozen server answered");
            (unread(server.port()) > 0).then_some(())
        })
        .await;
    }
    assert_eq!(waiter.hears().await, Heard::Deaf);
    server.thaw();
    waiter.busy(waiter.since(1)).await;
}

#[tokio::test]
async fn an_ear_goes_deaf_with_its_server() {
    let mut server = RedisServer::start();
    let waiter = Party::at(&server);
    waiter.granted(waiter.since(1)).await;
    server.kill();
    assert_eq!(waiter.hears().await, Heard::Deaf);
}

#[tokio::test]
async fn words_name_the_lock_as_its_users_do() {
    let server = RedisServer::start();
    let at = |prefix: &str| {
        let url = format!("{}?prefix={prefix}", server.url());
        Party::of(RedisMember::new(url).unwrap())
    };
    let (holder, waiter) = (at("app:"), at("app:"));
    let held = holder.takes(Mode::Exclusive).await;
    let waiting = waiter.since(1);
    waiter.busy(waiting).await;
    assert_eq!(
        server.command(&["EXISTS", "leasehold:queue:{app:deploy}:app:deploy"]),
        Reply::Integer(1)
    );
    // Whatever else somebody writes to the channel is not for us.
    let inbox = format!("leasehold:inbox:{}", waiter.client.id);
    let waiter_id = waiting.ticket.waiter;
    for noise in [
        "hello".to_owned(),
        format!("turn {waiter_id} other:deploy"),
        format!("soon x {waiter_id} app:deploy"),
    ] {
        let heard = server.command(&["PUBLISH", &inbox, &noise]);
        assert_eq!(heard, Reply::Integer(1));
    }
    waiter.has_heard_nothing().await;
    holder.releases(&held).await;
    waiter.hears_its_turn(waiting).await;
}

/// One member may serve several clients.
#[tokio::test]
async fn each_client_has_its_inbox_on_the_one_connection() {
    let server = RedisServer::start();
    let holder = Party::at(&server);
    let mut waiter = Party::at(&server);
    let held = holder.takes(Mode::Exclusive).await;
    let first = waiter.since(1);
    waiter.busy(first).await;
    waiter.client = holder.client.clone();
    let second = waiter.since(2);
    waiter.busy(second).await;
    assert_eq!(connections(&server), 2);
    holder.releases(&held).await;
    waiter.hears_soon(second).await;
    waiter.hears_its_turn(first).await;
}
