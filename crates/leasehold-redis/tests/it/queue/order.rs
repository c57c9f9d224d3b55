//! First come, first served.

use leasehold::clock::{Clock as _, SystemClock};
use leasehold::{Admin as _, BreakRecord, Fence, Inspection as _, Member, Mode, Store, Turn};
use leasehold_redis::RedisMember;
use leasehold_testkit::servers::{RedisServer, Reply};

use super::party::Party;
use crate::proxy::Turns;
use crate::support::{key, value};

#[tokio::test]
async fn the_lock_goes_to_those_who_wait_in_the_order_of_their_tickets() {
    let server = RedisServer::start();
    let parties: Vec<Party> = (0..4).map(|_| Party::at(&server)).collect();
    let [holder, a, b, c] = parties.as_slice() else {
        unreachable!()
    };
    let held = holder.takes(Mode::Exclusive).await;
    let (first, second, third) = (a.since(1), b.since(2), c.since(3).shared());
    assert_eq!(c.busy(third).await.place, Some(1));
    assert_eq!(a.busy(first).await.place, Some(1));
    let busy = b.busy(second).await;
    assert_eq!((busy.place, busy.holder), (Some(2), Some(held.owner)));
    assert!(busy.remaining.unwrap() <= held.ttl && !busy.silent);
    assert!(busy.sample.is_some());
    assert_eq!(c.busy(third).await.place, Some(3), "asked again");

    let waiters = a.member.waiters(&key("deploy")).await.unwrap();
    let tickets: Vec<_> = waiters.iter().map(|waiter| waiter.ticket).collect();
    assert_eq!(tickets, [first.ticket, second.ticket, third.ticket]);
    assert_eq!(waiters[1].client.as_ref(), Some(&*b.client));
    let modes: Vec<_> = waiters.iter().map(|waiter| waiter.mode).collect();
    assert_eq!(modes, [Mode::Exclusive, Mode::Exclusive, Mode::Shared]);

    holder.releases(&held).await;
    a.hears_its_turn(first).await;
    assert_eq!(b.hears_soon(second).await, leasehold::RESERVATION);
    c.has_heard_nothing().await;
    let (held, one) = a.granted(first).await;
    a.releases(&held).await;
    b.hears_its_turn(second).await;
    assert_eq!(c.hears_soon(third).await, leasehold::RESERVATION);
    let (held, two) = b.granted(second).await;
    assert!(two.fence > one.fence && two.sample.is_some());
    b.releases(&held).await;
    c.hears_its_turn(third).await;
    let (held, three) = c.granted(third).await;
    assert!(three.fence > two.fence);
    c.releases(&held).await;
    assert_eq!(value(&server, "deploy"), Reply::Nil);
    assert!(a.queue().await.is_empty());
    for party in &parties {
        party.has_heard_nothing().await;
    }
}

#[tokio::test]
async fn who_began_at_the_same_instant_is_ordered_by_the_waiter_whatever_its_mode() {
    let server = RedisServer::start();
    let party = Party::at(&server);
    party.takes(Mode::Exclusive).await;
    let mut tickets = Vec::new();
    for number in 0..20 {
        let mut waiting = party.since(1_763_637_400_000_001);
        if number % 2 == 0 {
            waiting = waiting.shared();
        }
        party.busy(waiting).await;
        tickets.push(waiting.ticket);
    }
    tickets.sort();
    assert_eq!(party.queue().await, tickets);
}

#[tokio::test]
async fn a_free_lock_is_granted_to_who_is_first_and_reserved_for_who_was_before() {
    let server = RedisServer::start();
    let (old, young) = (Party::at(&server), Party::at(&server));
    let (first, second) = (old.since(1), young.since(2));
    let (held, _) = young.granted(second).await;
    old.busy(first).await;
    // As if the holder's lease had run out.
    server.command(&["DEL", "deploy"]);
    let busy = young.busy(second).await;
    assert_eq!((busy.holder, busy.place), (None, Some(1)));
    assert!(busy.remaining.unwrap() <= leasehold::RESERVATION);
    old.hears_its_turn(first).await;
    old.granted(first).await;
    let late = young.member.release(&held).await.unwrap();
    assert_eq!(late, leasehold::Release::WasLost);
    assert_eq!(young.queue().await, [second.ticket]);
}

#[tokio::test]
async fn a_resend_is_granted_again_though_others_wait() {
    let server = RedisServer::start();
    let (mine, other) = (Party::at(&server), Party::at(&server));
    for waiting in [mine.since(5), mine.since(5).shared()] {
        let (claim, grant) = mine.granted(waiting).await;
        let writer = other.since(1);
        other.busy(writer).await;
        let turn = Turn::Queued(waiting.ticket);
        let again = mine.member.acquire_in_turn(&claim, &turn).await.unwrap();
        let leasehold::Attempt::Granted(again) = again else {
            panic!("{again:?}")
        };
        assert!(again.fence > grant.fence);
        other.leaves(writer).await;
        mine.releases(&claim).await;
    }
}

#[tokio::test]
async fn fences_are_exact_to_the_last() {
    let server = RedisServer::start();
    let party = Party::at(&server);
    let counter = "leasehold:fence:0:{deploy}:deploy";
    let last = Fence::MAX.get();
    server.command(&["ZADD", counter, &(last - 3).to_string(), "f"]);
    let held = party.claim(Mode::Exclusive);
    let grant = crate::support::granted(&party.member, &held).await;
    assert_eq!(grant.fence.get(), last - 2);
    party.releases(&held).await;
    let (held, grant) = party.granted(party.since(1)).await;
    assert_eq!(grant.fence.get(), last - 1);
    party.releases(&held).await;
    let (_, grant) = party.granted(party.since(1).shared()).await;
    assert_eq!(grant.fence, Fence::MAX);
}

fn calls(server: &RedisServer, command: &str) -> usize {
    let Reply::Bulk(stats) = server.command(&["INFO", "commandstats"]) else {
        panic!("INFO")
    };
    let line = format!("cmdstat_{command}:calls=");
    let calls = stats.lines().find_map(|stat| stat.strip_prefix(&line));
    calls.map_or(0, |calls| calls.split(',').next().unwrap().parse().unwrap())
}

#[tokio::test]
async fn each_step_is_one_command_and_one_trip() {
    let server = RedisServer::start();
    let (turns, port) = Turns::through_proxy_to(server.port()).await;
    let waiter = Party::of(RedisMember::new(format!("redis://127.0.0.1:{port}")).unwrap());
    let holder = Party::at(&server);
    // The server learns the scripts.
    let (held, _) = holder.granted(holder.since(1)).await;
    holder.releases(&held).await;
    holder.leaves(holder.since(1)).await;
    let held = holder.takes(Mode::Exclusive).await;

    let waiting = waiter.since(2);
    turns.take();
    server.command(&["CONFIG", "RESETSTAT"]);
    waiter.busy(waiting).await;
    let written = turns.take();
    assert_eq!(written.len(), 3, "a cold client: {written:#?}");
    let last = written.last().unwrap();
    let place = |word: &str| last.find(&format!("\r\n{word}\r\n")).unwrap();
    assert!(place("SUBSCRIBE") < place("EVALSHA"), "{last}");
    waiter.busy(waiting).await;
    assert_eq!(turns.take().len(), 1);
    assert_eq!(calls(&server, "evalsha"), 2);
    assert_eq!(calls(&server, "subscribe"), 1);
    holder.releases(&held).await;
    assert_eq!(calls(&server, "evalsha"), 3);
    waiter.hears_its_turn(waiting).await;
    turns.take();
    let (held, _) = waiter.granted(waiting).await;
    let written = turns.take();
    assert_eq!(written.len(), 1);
    assert!(!written[0].contains("TIME") && !written[0].contains("HGET"));
    waiter.leaves(waiting).await;
    waiter.releases(&held).await;
    assert_eq!(turns.take().len(), 2);
    assert_eq!(calls(&server, "evalsha"), 6);
}

/// Nobody waits, and nobody pays for those who might.
#[tokio::test]
async fn a_release_that_nobody_waits_for_asks_one_thing_more() {
    let server = RedisServer::start();
    let party = Party::at(&server);
    let held = party.takes(Mode::Exclusive).await;
    party.releases(&held).await;
    let held = party.takes(Mode::Exclusive).await;
    server.command(&["CONFIG", "RESETSTAT"]);
    party.releases(&held).await;
    let all = ["evalsha", "get", "del", "exists"];
    for command in all {
        assert_eq!(calls(&server, command), 1, "{command}");
    }
    let Reply::Bulk(stats) = server.command(&["INFO", "commandstats"]) else {
        panic!("INFO")
    };
    let others = stats.lines().filter(|stat| {
        let ours = ["config|resetstat", "info"];
        stat.strip_prefix("cmdstat_")
            .and_then(|stat| stat.split_once(':'))
            .is_some_and(|(command, _)| !all.contains(&command) && !ours.contains(&command))
    });
    assert_eq!(others.count(), 0, "{stats}");
}

#[tokio::test]
async fn the_mark_of_the_card_is_shown_as_every_answer_shows_it() {
    let server = RedisServer::start();
    let party = Party::at(&server);
    let shown = async || {
        let busy = party.busy(party.since(1)).await;
        busy.sample.unwrap().incarnation
    };
    party.takes(Mode::Exclusive).await;
    let before = party.member.presence().await.unwrap();
    assert_eq!(shown().await, before.incarnation());
    let edit = crate::support::card_edit(&before, "a");
    assert!(party.member.write_card(&edit).await.unwrap());
    let after = party.member.presence().await.unwrap();
    assert_ne!(after.incarnation(), before.incarnation());
    assert_eq!(shown().await, after.incarnation());
    server.command(&["DEL", "leasehold:card"]);
    server.command(&["SET", "leasehold:card", "text"]);
    assert_eq!(shown().await, before.incarnation(), "no card");
}

#[tokio::test]
async fn a_lock_that_is_broken_at_once_is_kept_for_who_waited_longest() {
    let server = RedisServer::start();
    let [holder, a, b] = [(); 3].map(|()| Party::at(&server));
    let (held, grant) = holder.barges(Mode::Exclusive).await;
    let leasehold::Attempt::Granted(grant) = grant else {
        panic!("a free lock")
    };
    let (first, second) = (a.since(1), b.since(2));
    b.busy(second).await;
    a.busy(first).await;
    let by = (*holder.client).clone();
    let mut record = BreakRecord::new(held.owner, grant.fence, by, SystemClock.wall());
    record.at_once = true;
    b.member.break_lease(&held.key, &record).await.unwrap();
    a.hears_its_turn(first).await;
    b.hears_soon(second).await;
    assert_eq!(value(&server, "deploy"), Reply::Bulk(first.reservation()));
    a.granted(first).await;
}
