//! A lock that is kept for the one whose turn it is.

use std::time::Duration;

use leasehold::{Attempt, Inspection as _, LostReason, Member, Mode, Renewal, Store};
use leasehold_testkit::servers::{RedisServer, Reply, until};

use super::party::{OFFERED, Party, is_granted};
use crate::support::{busy, eventually, held, key, value};

#[tokio::test]
async fn what_is_reserved_is_held_by_nobody_and_taken_by_nobody_else() {
    let server = RedisServer::start();
    let (mine, other) = (Party::at(&server), Party::at(&server));
    let waiting = mine.since(1);
    waiting.is_next_at(&server);
    for mode in [Mode::Exclusive, Mode::Shared] {
        let answer = busy(&other.member, &other.claim(mode)).await;
        assert_eq!(answer.holder, None);
        assert!(!answer.silent);
    }
    let younger = other.since(2);
    let answer = other.busy(younger).await;
    assert_eq!((answer.holder, answer.place), (None, Some(1)));
    assert!(answer.remaining.is_some() && !answer.silent);
    assert!(
        mine.member
            .holders(&key("deploy"))
            .await
            .unwrap()
            .is_empty()
    );
    assert!(mine.member.list("", 10).await.unwrap().is_empty());
    assert_eq!(other.queue().await, [waiting.ticket, younger.ticket]);
    mine.granted(waiting).await;
    assert_eq!(other.queue().await, [younger.ticket]);
    let holders = mine.member.holders(&key("deploy")).await.unwrap();
    assert_eq!(holders.len(), 1);
}

#[tokio::test]
async fn a_reservation_is_no_lease() {
    let server = RedisServer::start();
    let party = Party::at(&server);
    let claim = party.claim(Mode::Exclusive);
    let grant = crate::support::granted(&party.member, &claim).await;
    let lease = [held(&claim, &grant)];
    party.since(1).is_next_at(&server);
    let reserved = value(&server, "deploy");
    let answers = party.member.renew(&lease).await;
    assert!(
        matches!(answers[..], [Renewal::Lost(LostReason::Gone)]),
        "{answers:?}"
    );
    party.member.heal(&lease).await.unwrap();
    let seal = party.member.seal(&claim, grant.fence).await.unwrap();
    assert_eq!(seal.answer, leasehold::Seal::NotHeld);
    let release = party.member.release(&claim).await.unwrap();
    assert_eq!(release, leasehold::Release::WasLost);
    assert_eq!(value(&server, "deploy"), reserved);
}

#[tokio::test]
async fn an_older_ticket_takes_a_reservation_over_and_the_younger_waits_on() {
    let server = RedisServer::start();
    let (old, young) = (Party::at(&server), Party::at(&server));
    for shared in [false, true] {
        let mut younger = young.since(1_763_637_400_000_001);
        if shared {
            younger = younger.shared();
        }
        younger.is_next_at(&server);
        let (claim, _) = old.granted(old.since(1_763_637_400_000_000)).await;
        let waiters = young.member.waiters(&key("deploy")).await.unwrap();
        assert_eq!(waiters.len(), 1);
        assert_eq!(
            (waiters[0].ticket, waiters[0].mode),
            (younger.ticket, younger.mode)
        );
        old.releases(&claim).await;
        // It never asked here, so that nobody hears for it.
        assert!(young.queue().await.is_empty());
        assert_eq!(value(&server, "deploy"), Reply::Nil);
    }
}

#[tokio::test]
async fn barging_takes_what_is_reserved_and_nothing_else() {
    let server = RedisServer::start();
    let (waiter, barger) = (Party::at(&server), Party::at(&server));
    let waiting = waiter.since(1);
    waiting.is_next_at(&server);
    let (claim, attempt) = barger.barges(Mode::Exclusive).await;
    assert!(is_granted(&attempt), "{attempt:?}");
    assert_eq!(waiter.queue().await, [waiting.ticket]);
    let (_, refused) = barger.barges(Mode::Exclusive).await;
    let Attempt::Busy(refused) = refused else {
        panic!("{refused:?}")
    };
    assert_eq!((refused.holder, refused.place), (Some(claim.owner), None));
    assert_eq!(waiter.queue().await, [waiting.ticket]);
    waiter.busy(waiting).await;
    barger.releases(&claim).await;
    waiter.hears_its_turn(waiting).await;
    waiter.granted(waiting).await;
}

#[tokio::test]
async fn who_is_gone_is_passed_over_at_once() {
    let server = RedisServer::start();
    let (holder, lives) = (Party::at(&server), Party::at(&server));
    let held = holder.takes(Mode::Exclusive).await;
    let mut tickets = Vec::new();
    for since in [1, 2] {
        let dies = Party::at(&server);
        let waiting = dies.since(since);
        dies.busy(waiting).await;
        tickets.push(waiting.ticket);
        let inbox = format!("leasehold:inbox:{}", dies.client.id);
        drop(dies);
        eventually("the server sees that the client is gone", async || {
            let hear = server.command(&["PUBSUB", "NUMSUB", &inbox]);
            let nobody = Reply::Array(vec![Reply::Bulk(inbox.clone()), Reply::Integer(0)]);
            (hear == nobody).then_some(())
        })
        .await;
    }
    let waiting = lives.since(3);
    lives.busy(waiting).await;
    tickets.push(waiting.ticket);
    assert_eq!(lives.queue().await, tickets);
    holder.releases(&held).await;
    lives.hears_its_turn(waiting).await;
    lives.granted(waiting).await;
    assert!(lives.queue().await.is_empty());
}

#[tokio::test]
async fn a_client_that_let_its_turn_pass_loses_the_places_of_all_its_waiters() {
    let server = RedisServer::start();
    let [holder, sleeper, awake] = [0, 1, 2].map(|_| Party::at(&server));
    let held = holder.takes(Mode::Exclusive).await;
    let (first, second, third) = (sleeper.since(1), sleeper.since(5), awake.since(3));
    sleeper.busy(first).await;
    sleeper.busy(sleeper.since(2)).await;
    sleeper.busy(second).await;
    awake.busy(third).await;
    holder.releases(&held).await;
    sleeper.hears_its_turn(first).await;
    // Not the sleeper's other waiter: where one is dead, all are.
    assert_eq!(awake.hears_soon(third).await, leasehold::RESERVATION);
    until("the reservation lapses", || {
        value(&server, "deploy") == Reply::Nil
    });
    let (held, _) = awake.granted(third).await;
    assert!(awake.queue().await.is_empty());

    // It is heard again, with its old ticket, and has its place again.
    let fourth = awake.since(7);
    awake.busy(fourth).await;
    sleeper.busy(second).await;
    assert_eq!(awake.queue().await, [second.ticket, fourth.ticket]);
    awake.releases(&held).await;
    sleeper.hears_its_turn(second).await;
}

#[tokio::test]
async fn what_is_kept_for_one_that_owes_an_answer_lapses_when_it_is_late() {
    let server = RedisServer::start();
    let [holder, silent, awake] = [0, 1, 2].map(|_| Party::at(&server));
    let (first, second) = (silent.since(1), awake.since(2));
    let client = silent.client.id.to_string();
    let told = |left: i64| {
        let script = "local t = redis.call('TIME') return redis.call('ZADD', KEYS[1], \
            t[1] * 1000 + math.floor(t[2] / 1000) + ARGV[1], ARGV[2])";
        let left = left.to_string();
        server.command(&["EVAL", script, "1", OFFERED, &left, &client]);
    };
    // The last one as if a clock had been set back.
    for (left, most) in [(900, 900), (3_600_000, 1_000)] {
        let held = holder.takes(Mode::Exclusive).await;
        silent.busy(first).await;
        awake.busy(second).await;
        told(left);
        holder.releases(&held).await;
        silent.hears_its_turn(first).await;
        let most = Duration::from_millis(most);
        assert!(awake.hears_soon(second).await <= most);
        let Reply::Integer(kept) = server.command(&["PTTL", "deploy"]) else {
            panic!("it is kept")
        };
        assert!(kept <= most.as_millis() as i64, "{kept}");
        silent.leaves(first).await;
        awake.hears_its_turn(second).await;
        awake.leaves(second).await;
    }
}

#[tokio::test]
async fn somebody_else_behind_the_reserved_is_told_though_many_between_are_dead() {
    let server = RedisServer::start();
    let [holder, next, awake] = [0, 1, 2].map(|_| Party::at(&server));
    let held = holder.takes(Mode::Exclusive).await;
    let (first, last) = (next.since(1), awake.since(30));
    next.busy(first).await;
    awake.busy(last).await;
    // Many of one client, and many of clients that nobody ever heard of.
    for since in 2..20 {
        next.busy(next.since(since)).await;
    }
    for _ in 0..20 {
        let unheard = Party::at(&server).since(25).ticket.waiter.to_string();
        server.command(&["ZADD", super::party::QUEUE, "25", &unheard]);
    }
    holder.releases(&held).await;
    next.hears_its_turn(first).await;
    assert_eq!(awake.hears_soon(last).await, leasehold::RESERVATION);
    // The search looks at four behind the first, and at the last four.
    assert_eq!(awake.queue().await.len(), 37, "without the dead it met");
    assert_eq!(
        server.command(&["ZCARD", OFFERED]),
        Reply::Integer(1),
        "only the first was offered the lock"
    );
}
