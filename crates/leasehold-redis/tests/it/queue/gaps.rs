//! A lock that is left free for those who poll.

use std::time::Duration;

use leasehold::{Departure, Member, Mode, Release};
use leasehold_testkit::servers::{RedisServer, Reply, until};

use super::party::{OFFERED, Party, is_granted};
use crate::support::{held, value};

/// Longer than any test takes.
const LONG: Duration = Duration::from_secs(600);

#[tokio::test]
async fn a_gap_is_for_all_but_those_who_wait() {
    let server = RedisServer::start();
    let [holder, a, b] = [0, 1, 2].map(|_| Party::at(&server));
    let claim = holder.claim(Mode::Exclusive);
    let grant = crate::support::granted(&holder.member, &claim).await;
    let (first, second) = (a.since(1), b.since(2));
    a.busy(first).await;
    b.busy(second).await;
    let release = holder.departs(&claim, Departure::LeaveFree(LONG)).await;
    assert_eq!(release, Release::Released);
    assert_eq!(a.hears_soon(first).await, LONG);
    // Should the first one be dead.
    assert_eq!(b.hears_soon(second).await, LONG);
    assert_eq!(value(&server, "deploy"), Reply::Nil);
    assert_eq!(a.queue().await, [first.ticket, second.ticket]);

    let busy = a.busy(first).await;
    assert_eq!(
        (busy.holder, busy.place, busy.silent),
        (None, Some(1), false)
    );
    let left = busy.remaining.unwrap();
    assert!(left <= LONG && left > LONG / 2, "{left:?}");
    let lease = [held(&claim, &grant)];
    holder.member.heal(&lease).await.unwrap();
    assert_eq!(value(&server, "deploy"), Reply::Nil, "nothing is put back");

    let (barger, attempt) = holder.barges(Mode::Exclusive).await;
    assert!(is_granted(&attempt), "{attempt:?}");
    holder.releases(&barger).await;
    let plain = holder.takes(Mode::Exclusive).await;
    holder.releases(&plain).await;
    assert_eq!(value(&server, "deploy"), Reply::Nil, "the gap is still on");
    assert_eq!(a.queue().await, [first.ticket, second.ticket]);
    for released in ["by who went ahead", "plainly"] {
        let rest = a.hears_soon(first).await;
        assert!(rest < LONG && rest > LONG / 2, "{released}: {rest:?}");
    }
    a.has_heard_nothing().await;
}

#[tokio::test]
async fn after_a_gap_the_lock_is_handed_over_again() {
    let server = RedisServer::start();
    let (holder, waiter) = (Party::at(&server), Party::at(&server));
    let held = holder.takes(Mode::Exclusive).await;
    let waiting = waiter.since(1);
    waiter.busy(waiting).await;
    let short = Duration::from_millis(20);
    holder.departs(&held, Departure::LeaveFree(short)).await;
    assert_eq!(waiter.hears_soon(waiting).await, short);
    let ends = match server.command(&["ZSCORE", OFFERED, "gap"]) {
        Reply::Bulk(ends) => ends.parse::<u64>().unwrap(),
        other => panic!("{other:?}"),
    };
    until("the gap is over", || match server.command(&["TIME"]) {
        Reply::Array(time) => match &time[0] {
            Reply::Bulk(seconds) => seconds.parse::<u64>().unwrap() * 1000 > ends,
            other => panic!("{other:?}"),
        },
        other => panic!("{other:?}"),
    });
    waiter.granted(waiting).await;
}

#[tokio::test]
async fn who_had_the_lock_within_a_gap_lets_those_who_wait_know_when_that_is_over() {
    let server = RedisServer::start();
    let [holder, first, second, stranger] = [(); 4].map(|()| Party::at(&server));
    let held = holder.takes(Mode::Exclusive).await;
    let (one, two) = (first.since(1), second.since(2));
    first.busy(one).await;
    second.busy(two).await;
    holder.departs(&held, Departure::LeaveFree(LONG)).await;
    let short = stranger.takes(Mode::Exclusive).await;
    for (party, waiting) in [(&first, one), (&second, two)] {
        assert_eq!(party.hears_soon(waiting).await, LONG);
        party.busy(waiting).await;
    }
    stranger.releases(&short).await;
    for (party, waiting) in [(&first, one), (&second, two)] {
        let rest = party.hears_soon(waiting).await;
        assert!(rest <= LONG && rest > LONG / 2, "{rest:?}");
    }
}

#[tokio::test]
async fn a_gap_is_left_only_by_who_held_the_lock_and_only_to_those_who_wait() {
    let server = RedisServer::start();
    let party = Party::at(&server);
    let alone = party.takes(Mode::Exclusive).await;
    party.departs(&alone, Departure::LeaveFree(LONG)).await;
    assert_eq!(server.command(&["EXISTS", OFFERED]), Reply::Integer(0));
    let stranger = party.claim(Mode::Exclusive);
    let release = party.departs(&stranger, Departure::LeaveFree(LONG)).await;
    assert_eq!(release, Release::WasLost);
    let readers = [
        party.takes(Mode::Shared).await,
        party.takes(Mode::Shared).await,
    ];
    party.busy(party.since(1)).await;
    party.departs(&readers[0], Departure::LeaveFree(LONG)).await;
    assert_eq!(server.command(&["EXISTS", OFFERED]), Reply::Integer(0));
    party.departs(&readers[1], Departure::LeaveFree(LONG)).await;
    assert_eq!(server.command(&["ZCARD", OFFERED]), Reply::Integer(1));
}

#[tokio::test]
async fn who_let_its_turn_pass_is_not_told_of_a_gap() {
    let server = RedisServer::start();
    let [holder, sleeper, awake] = [0, 1, 2].map(|_| Party::at(&server));
    let claim = holder.takes(Mode::Exclusive).await;
    let (first, second) = (sleeper.since(1), awake.since(2));
    sleeper.busy(first).await;
    awake.busy(second).await;
    let id = sleeper.client.id.to_string();
    server.command(&["ZADD", OFFERED, "1", &id]);
    holder.departs(&claim, Departure::LeaveFree(LONG)).await;
    assert_eq!(awake.hears_soon(second).await, LONG);
    sleeper.has_heard_nothing().await;
    assert_eq!(awake.queue().await, [first.ticket, second.ticket]);
}
