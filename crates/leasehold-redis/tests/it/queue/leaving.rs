//! Who gives up its place, or is put back into it.

use leasehold::{Departure, Mode, RESERVATION, Release};
use leasehold_testkit::servers::{RedisServer, Reply};

use super::party::{OFFERED, Party};
use crate::support::value;

#[tokio::test]
async fn what_is_reserved_for_one_who_leaves_is_handed_on() {
    let server = RedisServer::start();
    let [first, second, third] = [0, 1, 2].map(|_| Party::at(&server));
    for shared in [false, true] {
        let mut leaver = first.since(1);
        if shared {
            leaver = leaver.shared();
        }
        leaver.is_next_at(&server);
        let (heir, runner_up) = (second.since(2), third.since(3));
        second.busy(heir).await;
        third.busy(runner_up).await;
        first.leaves(leaver).await;
        second.hears_its_turn(heir).await;
        assert_eq!(third.hears_soon(runner_up).await, RESERVATION);
        let (held, _) = second.granted(heir).await;
        third.leaves(runner_up).await;
        second.releases(&held).await;
        assert_eq!(value(&server, "deploy"), Reply::Nil);
    }
}

#[tokio::test]
async fn who_leaves_from_the_front_lets_the_next_two_know_how_long_it_takes() {
    let server = RedisServer::start();
    let parties: Vec<Party> = (0..6).map(|_| Party::at(&server)).collect();
    let held = parties[0].takes(Mode::Exclusive).await;
    let mut waiting = Vec::new();
    for (since, party) in (1..).zip(&parties[1..]) {
        waiting.push(party.since(since));
        party.busy(waiting[waiting.len() - 1]).await;
    }
    parties[3].leaves(waiting[2]).await;
    for party in &parties {
        party.has_heard_nothing().await;
    }
    parties[1].leaves(waiting[0]).await;
    for index in [2, 4] {
        let rest = parties[index].hears_soon(waiting[index - 1]).await;
        assert!(rest > RESERVATION && rest <= held.ttl, "{rest:?}");
    }
    parties[5].has_heard_nothing().await;
    parties[4].leaves(waiting[3]).await;
    parties[2].hears_soon(waiting[1]).await;
    parties[5].hears_soon(waiting[4]).await;
    // A lock of another library may have no end that anybody knows.
    server.command(&["SET", "deploy", "token"]);
    parties[2].leaves(waiting[1]).await;
    assert_eq!(parties[5].hears_soon(waiting[4]).await, RESERVATION);
}

#[tokio::test]
async fn leaving_twice_or_without_a_place_changes_nothing() {
    let server = RedisServer::start();
    let (holder, waiter) = (Party::at(&server), Party::at(&server));
    let stranger = holder.since(1);
    holder.leaves(stranger).await;
    assert_eq!(server.command(&["DBSIZE"]), Reply::Integer(0));
    holder.takes(Mode::Exclusive).await;
    let before = value(&server, "deploy");
    let waiting = waiter.since(2).shared();
    waiter.busy(waiting).await;
    holder.leaves(stranger).await;
    assert_eq!(waiter.queue().await, [waiting.ticket]);
    for _ in 0..2 {
        waiter.leaves(waiting).await;
        assert!(waiter.queue().await.is_empty());
    }
    assert_eq!(value(&server, "deploy"), before);
    waiter.has_heard_nothing().await;
}

#[tokio::test]
async fn who_leaves_was_heard() {
    let server = RedisServer::start();
    let party = Party::at(&server);
    let id = party.client.id.to_string();
    server.command(&["ZADD", OFFERED, "5", &id]);
    party.leaves(party.since(1)).await;
    assert_eq!(server.command(&["ZSCORE", OFFERED, &id]), Reply::Nil);
}

#[tokio::test]
async fn who_won_in_vain_goes_back_into_its_place() {
    let server = RedisServer::start();
    let (mine, other) = (Party::at(&server), Party::at(&server));
    let (first, second) = (mine.since(1), other.since(2));
    let (held, _) = mine.granted(first).await;
    other.busy(second).await;
    // The older one is chosen again, and told as everybody is.
    let release = mine.departs(&held, Departure::Requeue(first.ticket)).await;
    assert_eq!(release, Release::Released);
    mine.hears_its_turn(first).await;
    other.hears_soon(second).await;
    first.is_next_at(&server);
    mine.leaves(first).await;
    other.hears_its_turn(second).await;
    let (held, _) = other.granted(second).await;

    // The younger one lets the older in.
    mine.busy(first).await;
    other
        .departs(&held, Departure::Requeue(second.ticket))
        .await;
    mine.hears_its_turn(first).await;
    let (held, _) = mine.granted(first).await;
    assert_eq!(mine.queue().await, [second.ticket]);

    // One that holds nothing here is put back all the same, and takes nothing away.
    let third = other.since(3).shared();
    let claim = other.claim(Mode::Shared);
    let release = other
        .departs(&claim, Departure::Requeue(third.ticket))
        .await;
    assert_eq!(release, Release::WasLost);
    assert_eq!(mine.queue().await, [second.ticket, third.ticket]);
    assert_eq!(
        value(&server, "deploy"),
        Reply::Bulk(held.owner.to_string())
    );
    server.command(&["DEL", "deploy"]);
    other
        .departs(&claim, Departure::Requeue(third.ticket))
        .await;
    other.hears_soon(second).await;
    other.hears_its_turn(second).await;
}

#[tokio::test]
async fn a_release_of_what_is_not_held_hands_nothing_over() {
    let server = RedisServer::start();
    let (stranger, waiter) = (Party::at(&server), Party::at(&server));
    let held = stranger.takes(Mode::Exclusive).await;
    waiter.busy(waiter.since(1)).await;
    server.command(&["DEL", "deploy"]);
    let release = stranger.departs(&held, Departure::HandOver).await;
    assert_eq!(release, Release::WasLost);
    waiter.has_heard_nothing().await;
    assert_eq!(waiter.queue().await.len(), 1);
    assert_eq!(value(&server, "deploy"), Reply::Nil);
}
