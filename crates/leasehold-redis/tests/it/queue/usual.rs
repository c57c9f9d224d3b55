//! What a hand-over costs the server where all is as usual, and that nothing else is taken for that.

use leasehold::{Departure, Mode, Release};
use leasehold_testkit::servers::{RedisServer, Reply};

use super::party::{OFFERED, Party, QUEUE, Waiting};
use crate::support::{commands, eventually, value};

/// The lock is kept, the head told, and one of another client that it stands in.
const HANDING_OVER: [(&str, u64); 11] = [
    ("evalsha", 1),
    ("exists", 1),
    ("get", 1),
    ("pexpire", 1),
    ("publish", 2),
    ("set", 1),
    ("time", 1),
    ("zadd", 1),
    ("zrange", 1),
    ("zrem", 1),
    ("zscore", 2),
];

/// What is kept is taken, and its fence drawn in one command.
const TAKING: [(&str, u64); 8] = [
    ("evalsha", 1),
    ("get", 1),
    ("hget", 1),
    ("pexpire", 1),
    ("set", 1),
    ("time", 1),
    ("zadd", 1),
    ("zrem", 2),
];

/// Somebody holds the lock.
const QUEUING: [(&str, u64); 9] = [
    ("evalsha", 1),
    ("get", 1),
    ("hget", 1),
    ("pexpire", 1),
    ("pttl", 1),
    ("time", 1),
    ("zadd", 1),
    ("zrank", 1),
    ("zrem", 2),
];

pub(super) const FENCE: &str = "leasehold:fence:0:{deploy}:deploy";

async fn hands_over(party: &Party, held: &leasehold::Claim) {
    let released = party.departs(held, Departure::HandOver).await;
    assert_eq!(released, Release::Released);
}

/// What the server ran since the last call.
pub(super) fn ran(server: &RedisServer) -> Vec<(String, u64)> {
    let mut ran = commands(server);
    ran.retain(|(name, _)| !name.starts_with("config"));
    ran.sort();
    server.command(&["CONFIG", "RESETSTAT"]);
    ran
}

pub(super) fn assert_ran(server: &RedisServer, expected: &[(&str, u64)]) {
    let expected: Vec<_> = expected
        .iter()
        .map(|(name, count)| ((*name).to_owned(), *count))
        .collect();
    assert_eq!(ran(server), expected);
}

#[tokio::test]
async fn a_usual_hand_over_runs_few_commands_and_defines_nothing_else() {
    let server = RedisServer::start();
    let (first, second, third) = (Party::at(&server), Party::at(&server), Party::at(&server));
    // Once before it counts: the server is told the scripts, and by each client who it is. The counter's
    // rest is set once on each connection, also where attempts of both kinds follow one another.
    let mut held = first.takes(Mode::Exclusive).await;
    let (mine, other) = (first.since(3), third.since(4));
    for since in [1, 2] {
        let next = second.since(since);
        second.busy(next).await;
        third.busy(other).await;
        ran(&server);
        hands_over(&first, &held).await;
        if since == 2 {
            assert_ran(&server, &HANDING_OVER);
        }
        second.hears_its_turn(next).await;
        assert_eq!(third.hears_soon(other).await, leasehold::RESERVATION);
        assert_eq!(value(&server, "deploy"), Reply::Bulk(next.reservation()));
        ran(&server);
        let (taken, grant) = second.granted(next).await;
        assert_eq!(grant.fence.get(), taken.proposal.as_micros() + 1);
        if since == 2 {
            assert_ran(&server, &TAKING);
        }
        assert_eq!(server.command(&["EXISTS", OFFERED]), Reply::Integer(0));
        first.busy(mine).await;
        assert_eq!(first.queue().await, [mine.ticket, other.ticket]);
        hands_over(&second, &taken).await;
        first.hears_its_turn(mine).await;
        third.hears_soon(other).await;
        held = first.granted(mine).await.0;
    }
    let last = second.since(5);
    ran(&server);
    let refused = second.busy(last).await;
    assert_eq!((refused.holder, refused.place), (Some(held.owner), Some(2)));
    assert_ran(&server, &QUEUING);
}

#[tokio::test]
async fn who_is_handed_a_lock_draws_its_fence_above_a_counter_that_is_ahead() {
    let server = RedisServer::start();
    let (holder, waiter) = (Party::at(&server), Party::at(&server));
    let held = holder.takes(Mode::Exclusive).await;
    let waiting = waiter.since(1);
    waiter.busy(waiting).await;
    hands_over(&holder, &held).await;
    let ahead = held.proposal.as_micros() + 60_000_000;
    server.command(&["ZADD", FENCE, &ahead.to_string(), "f"]);
    let (_, grant) = waiter.granted(waiting).await;
    assert_eq!(grant.fence.get(), ahead + 1);
    let counter = server.command(&["ZSCORE", FENCE, "f"]);
    assert_eq!(counter, Reply::Bulk((ahead + 1).to_string()));
}

/// Its waiter, whose connection is gone by the time the server looks.
async fn goes_after_asking(server: &RedisServer, since: u64) -> Waiting {
    let gone = Party::at(server);
    let waiting = gone.since(since);
    gone.busy(waiting).await;
    let inbox = format!("leasehold:inbox:{}", gone.client.id);
    drop(gone);
    eventually("the server sees that the client is gone", async || {
        let hear = server.command(&["PUBSUB", "NUMSUB", &inbox]);
        (hear == Reply::Array(vec![Reply::Bulk(inbox.clone()), Reply::Integer(0)])).then_some(())
    })
    .await;
    waiting
}

#[tokio::test]
async fn somebody_who_lives_stands_in_where_the_first_of_others_is_gone() {
    let server = RedisServer::start();
    let (holder, head, lives) = (Party::at(&server), Party::at(&server), Party::at(&server));
    let held = holder.takes(Mode::Exclusive).await;
    let (first, last) = (head.since(1), lives.since(9));
    head.busy(first).await;
    let gone = goes_after_asking(&server, 2).await;
    lives.busy(last).await;
    assert_eq!(
        lives.queue().await,
        [first.ticket, gone.ticket, last.ticket]
    );
    hands_over(&holder, &held).await;
    head.hears_its_turn(first).await;
    assert_eq!(lives.hears_soon(last).await, leasehold::RESERVATION);
    // The lock is kept for the first, and the second is no more.
    assert_eq!(lives.queue().await, [first.ticket, last.ticket]);
    head.granted(first).await;
    head.has_heard_nothing().await;
}

#[tokio::test]
async fn a_head_that_is_gone_leaves_no_mark_and_the_next_one_has_its_turn() {
    let server = RedisServer::start();
    let (holder, lives) = (Party::at(&server), Party::at(&server));
    let held = holder.takes(Mode::Exclusive).await;
    goes_after_asking(&server, 1).await;
    let next = lives.since(2);
    lives.busy(next).await;
    hands_over(&holder, &held).await;
    // Who is to stand in is told first, and that the head hears nothing shows only then.
    lives.hears_soon(next).await;
    lives.hears_its_turn(next).await;
    let offered = server.command(&["ZRANGE", OFFERED, "0", "-1"]);
    let client = Reply::Bulk(lives.client.id.to_string());
    assert_eq!(offered, Reply::Array(vec![client]));
    assert_eq!(server.command(&["EXISTS", QUEUE]), Reply::Integer(0));
    lives.granted(next).await;
}

#[tokio::test]
async fn one_of_the_last_stands_in_where_those_behind_the_head_are_its_fellows() {
    let server = RedisServer::start();
    let (holder, head, other) = (Party::at(&server), Party::at(&server), Party::at(&server));
    let held = holder.takes(Mode::Exclusive).await;
    let fellows: Vec<Waiting> = (1..=8).map(|since| head.since(since)).collect();
    for fellow in &fellows {
        head.busy(*fellow).await;
    }
    let last = other.since(9);
    other.busy(last).await;
    hands_over(&holder, &held).await;
    head.hears_its_turn(fellows[0]).await;
    assert_eq!(other.hears_soon(last).await, leasehold::RESERVATION);
    head.has_heard_nothing().await;
}
