//! Who waits for one of the permits of a lock.

use leasehold::{Attempt, Busy, Claim, Departure, ErrorKind, Mode, Permits, RESERVATION, Slot};
use leasehold_testkit::servers::{RedisServer, Reply};

use super::party::{OFFERED, Party, QUEUE, Waiting, is_granted, nobody_else_is_to_show_itself};
use crate::support::{busy, eventually, value};

fn one_of(count: u32) -> Mode {
    Mode::Permit(Permits::new(count).unwrap())
}

fn parties<const N: usize>(server: &RedisServer) -> [Party; N] {
    std::array::from_fn(|_| Party::at(server))
}

fn free(busy: &Busy) -> Vec<u32> {
    busy.free.iter().map(Slot::get).collect()
}

fn refusal(attempt: Attempt) -> Busy {
    match attempt {
        Attempt::Busy(busy) => busy,
        Attempt::Granted(grant) => panic!("{grant:?}"),
    }
}

/// Takes so many of the permits.
async fn take(party: &Party, taken: u32, count: u32) -> Vec<Claim> {
    let mut held = Vec::new();
    for _ in 0..taken {
        held.push(party.takes(one_of(count)).await);
    }
    held
}

/// Has what was offered to `party` lapse by now.
fn lapses(server: &RedisServer, entry: &str) {
    let set = server.command(&["ZADD", OFFERED, "XX", "CH", "1", entry]);
    assert_eq!(set, Reply::Integer(1), "{entry}");
}

fn entry(waiting: Waiting) -> String {
    let value = waiting.reservation();
    value.rsplit_once(':').unwrap().1.to_owned()
}

#[tokio::test]
async fn permits_that_are_freed_are_offered_in_order_and_kept_by_a_place() {
    let server = RedisServer::start();
    let [holder, a, b, c] = parties(&server);
    let held = take(&holder, 3, 3).await;
    let [first, second, third] = [a.since(1), b.since(2), c.since(3)].map(|it| it.for_one_of(3));
    for (place, party, waiting) in [(1, &a, first), (2, &b, second), (3, &c, third)] {
        assert_eq!(party.busy(waiting).await.place, Some(place));
    }
    let marked = server.command(&["ZSCORE", QUEUE, &entry(first)]);
    assert_eq!(marked, Reply::Bulk("1".into()));
    assert!(entry(first).ends_with("/p3"));
    holder.releases(&held[2]).await;
    assert_eq!(a.hears_its_permit(first).await, 2);
    assert_eq!(b.hears_soon(second).await, RESERVATION);
    holder.releases(&held[0]).await;
    assert_eq!(b.hears_its_permit(second).await, 0, "not the same one");
    assert_eq!(c.hears_soon(third).await, RESERVATION);
    assert_eq!(c.queue().await.len(), 3, "they stay until they come");
    // Not twice, and nobody passes those who have their turn.
    let refused = c.busy(third).await;
    assert_eq!((refused.place, free(&refused)), (Some(3), vec![]));
    busy(&holder.member, &holder.claim(one_of(3))).await;
    a.has_heard_nothing().await;
    b.has_heard_nothing().await;
    assert!(is_granted(&b.asks_for(second, 0).await.1));
    assert!(is_granted(&a.asks_for(first, 2).await.1));
    assert_eq!(c.queue().await, [third.ticket]);
    holder.releases(&held[1]).await;
    assert_eq!(c.hears_its_permit(third).await, 1);
    c.granted(third).await;
    assert_eq!(server.command(&["EXISTS", QUEUE]), Reply::Integer(0));
}

#[tokio::test]
async fn whose_turn_it_is_and_wants_one_that_is_taken_is_told_of_the_others_and_not_told_again() {
    let server = RedisServer::start();
    let [holder, a, b] = parties(&server);
    let held = take(&holder, 2, 2).await;
    let [first, second] = [a.since(1), b.since(2)].map(|it| it.for_one_of(2));
    a.busy(first).await;
    b.busy(second).await;
    holder.releases(&held[1]).await;
    a.hears_its_permit(first).await;
    b.hears_soon(second).await;
    let refused = refusal(a.asks_for(first, 0).await.1);
    assert_eq!((free(&refused), refused.place), (vec![1], Some(1)));
    let refused = refusal(b.asks_for(second, 1).await.1);
    assert_eq!(free(&refused), [], "not its turn");
    a.has_heard_nothing().await;
    assert!(is_granted(&a.asks_for(first, 1).await.1));
}

#[tokio::test]
async fn nobody_passes_one_who_wants_the_lock_in_another_way() {
    let server = RedisServer::start();
    for other in [Mode::Exclusive, Mode::Shared] {
        let [holder, a, writer, b] = parties(&server);
        let held = take(&holder, 3, 3).await;
        let first = a.since(1).for_one_of(3);
        let mut second = writer.since(2);
        second.mode = other;
        let third = b.since(3).for_one_of(3);
        a.busy(first).await;
        writer.busy(second).await;
        b.busy(third).await;
        holder.releases(&held[0]).await;
        holder.releases(&held[1]).await;
        a.hears_its_permit(first).await;
        writer.is_to_show_itself(second).await;
        nobody_else_is_to_show_itself(&server);
        let (mine, _) = a.granted(first).await;
        let refused = b.busy(third).await;
        assert_eq!(free(&refused), []);
        assert!(!is_granted(&b.asks_for(third, 1).await.1));
        a.releases(&mine).await;
        holder.releases(&held[2]).await;
        writer.hears_its_turn(second).await;
        assert_eq!(value(&server, "deploy"), Reply::Bulk(second.reservation()));
        let (alone, _) = writer.granted(second).await;
        writer.releases(&alone).await;
        b.granted(third).await;
        server.command(&["FLUSHALL"]);
    }
}

#[tokio::test]
async fn a_dead_waiter_keeps_nobody_from_a_permit() {
    let server = RedisServer::start();
    for mode in [Mode::Exclusive, one_of(2)] {
        let [holder, dead, next] = parties(&server);
        let held = take(&holder, 2, 2).await;
        let mut first = dead.since(1);
        first.mode = mode;
        dead.busy(first).await;
        let client = dead.client.id;
        drop(dead);
        eventually("its connection is gone", async || {
            let inbox = format!("leasehold:inbox:{client}");
            let heard = server.command(&["PUBLISH", &inbox, "hello"]);
            (heard == Reply::Integer(0)).then_some(())
        })
        .await;
        let second = next.since(2).for_one_of(2);
        next.busy(second).await;
        holder.releases(&held[0]).await;
        assert_eq!(next.hears_its_permit(second).await, 0);
        assert_eq!(next.queue().await, [second.ticket]);
        next.granted(second).await;
        server.command(&["FLUSHALL"]);
    }
}

#[tokio::test]
async fn a_client_that_let_its_turn_lapse_is_passed_over_until_it_is_heard() {
    let server = RedisServer::start();
    let [holder, silent, next] = parties(&server);
    let held = take(&holder, 2, 2).await;
    let [first, other] = [1, 2].map(|since| silent.since(since).for_one_of(2));
    let last = next.since(3).for_one_of(2);
    silent.busy(first).await;
    silent.busy(other).await;
    next.busy(last).await;
    holder.releases(&held[0]).await;
    silent.hears_its_permit(first).await;
    assert_eq!(next.hears_soon(last).await, RESERVATION);
    // It counts as silent since the first offer that it let lapse.
    lapses(&server, &silent.client.id.to_string());
    next.granted(last).await;
    assert!(next.queue().await.is_empty(), "its other waiter is as dead");
    holder.releases(&held[1]).await;
    silent.granted(first).await;
}

#[tokio::test]
async fn two_waiters_of_one_client_are_both_told_and_again_once_that_lapsed() {
    let server = RedisServer::start();
    let [holder, party, other] = parties(&server);
    let held = take(&holder, 3, 3).await;
    let [first, second] = [1, 2].map(|since| party.since(since).for_one_of(3));
    party.busy(first).await;
    party.busy(second).await;
    holder.releases(&held[0]).await;
    assert_eq!(party.hears_its_permit(first).await, 0);
    // What it does not answer counts from the first offer on.
    let (client, then) = (party.client.id.to_string(), "9000000000000");
    server.command(&["ZADD", OFFERED, "XX", then, &client]);
    holder.releases(&held[1]).await;
    assert_eq!(party.hears_its_permit(second).await, 1);
    let lapses_at = server.command(&["ZSCORE", OFFERED, &client]);
    assert_eq!(lapses_at, Reply::Bulk(then.into()));
    let third = other.since(3).for_one_of(3);
    other.busy(third).await;
    party.has_heard_nothing().await;
    // Heard since, so the client lives; but one of its waiters did not come.
    party.granted(first).await;
    lapses(&server, &entry(second));
    other.busy(third).await;
    assert_eq!(party.hears_its_permit(second).await, 1);
    party.granted(second).await;
}

#[tokio::test]
async fn the_first_of_many_calls_those_behind_it_to_the_other_permits() {
    let server = RedisServer::start();
    let [holder, a, b, c, d] = parties(&server);
    let held = holder.takes(Mode::Exclusive).await;
    let waiting = [a.since(1), b.since(2), c.since(3), d.since(4)].map(|it| it.for_one_of(3));
    for (party, waiting) in [&a, &b, &c, &d].into_iter().zip(waiting) {
        party.busy(waiting).await;
    }
    holder.releases(&held).await;
    a.hears_its_turn(waiting[0]).await;
    b.hears_soon(waiting[1]).await;
    let reserved = Reply::Bulk(waiting[0].reservation());
    assert_eq!(value(&server, "deploy"), reserved);
    b.busy(waiting[1]).await;
    assert!(is_granted(&a.asks_for(waiting[0], 1).await.1));
    assert_eq!(b.hears_its_permit(waiting[1]).await, 0);
    assert_eq!(c.hears_its_permit(waiting[2]).await, 2);
    assert_eq!(d.hears_soon(waiting[3]).await, RESERVATION);
    b.granted(waiting[1]).await;
    c.granted(waiting[2]).await;
    assert_eq!(free(&d.busy(waiting[3]).await), []);
}

#[tokio::test]
async fn holders_that_all_end_at_once_let_as_many_in() {
    let server = RedisServer::start();
    let [holder, a, b, c] = parties(&server);
    take(&holder, 3, 3).await;
    let waiting = [a.since(1), b.since(2), c.since(3)].map(|it| it.for_one_of(3));
    for (party, waiting) in [&a, &b, &c].into_iter().zip(waiting) {
        party.busy(waiting).await;
    }
    for (record, answer) in [("readers", 0), ("slots", 0)] {
        let name = format!("leasehold:{record}:{{deploy}}:deploy");
        server.command(&["PEXPIRE", &name, "0"]);
        assert_eq!(server.command(&["EXISTS", &name]), Reply::Integer(answer));
    }
    server.command(&["PEXPIRE", "deploy", "0"]);
    a.granted(waiting[0]).await;
    assert_eq!(b.hears_its_permit(waiting[1]).await, 1);
    assert_eq!(c.hears_its_permit(waiting[2]).await, 2);
    c.granted(waiting[2]).await;
    b.granted(waiting[1]).await;
}

#[tokio::test]
async fn who_leaves_is_out_of_the_queue_whatever_the_lock_holds() {
    let server = RedisServer::start();
    for mode in [
        Some(Mode::Exclusive),
        Some(Mode::Shared),
        Some(one_of(3)),
        None,
    ] {
        let [holder, a, b] = parties(&server);
        let held = match mode {
            Some(Mode::Permit(_)) => take(&holder, 3, 3).await,
            Some(mode) => vec![holder.takes(mode).await],
            None => vec![],
        };
        let [first, second] = [a.since(1), b.since(2)].map(|it| it.for_one_of(3));
        if mode.is_some() {
            a.busy(first).await;
        } else {
            first.is_next_at(&server);
        }
        b.busy(second).await;
        a.leaves(first).await;
        assert_eq!(b.queue().await, [second.ticket], "{mode:?}");
        b.leaves(second).await;
        assert!(b.queue().await.is_empty(), "{mode:?}");
        let gone = server.command(&["EXISTS", QUEUE]);
        assert_eq!(gone, Reply::Integer(0));
        for claim in &held {
            holder.releases(claim).await;
        }
        assert_eq!(value(&server, "deploy"), Reply::Nil, "{mode:?}");
        server.command(&["FLUSHALL"]);
    }
}

#[tokio::test]
async fn the_turn_of_one_who_leaves_passes_to_the_next() {
    let server = RedisServer::start();
    let [holder, a, b, c] = parties(&server);
    let held = take(&holder, 2, 2).await;
    let [first, second, third] = [a.since(1), b.since(2), c.since(3)].map(|it| it.for_one_of(2));
    for (party, waiting) in [(&a, first), (&b, second), (&c, third)] {
        party.busy(waiting).await;
    }
    holder.releases(&held[1]).await;
    a.hears_its_permit(first).await;
    b.hears_soon(second).await;
    a.leaves(first).await;
    assert_eq!(b.hears_its_permit(second).await, 1);
    assert_eq!(c.hears_soon(third).await, RESERVATION);
    b.granted(second).await;
    // Behind it the next keeps the timer: until the first of those that hold it ends.
    b.leaves(second).await;
    let [late] = parties(&server);
    let fourth = late.since(0).for_one_of(2);
    late.busy(fourth).await;
    late.leaves(fourth).await;
    let rest = c.hears_soon(third).await;
    assert!(rest > RESERVATION && rest <= held[0].ttl, "{rest:?}");
}

#[tokio::test]
async fn a_writer_that_leaves_opens_the_way_to_free_permits() {
    let server = RedisServer::start();
    let [holder, writer, a] = parties(&server);
    take(&holder, 1, 2).await;
    let (first, second) = (writer.since(1), a.since(2).for_one_of(2));
    writer.busy(first).await;
    a.busy(second).await;
    writer.leaves(first).await;
    assert_eq!(a.hears_its_permit(second).await, 1);
    a.granted(second).await;
}

#[tokio::test]
async fn one_that_is_put_back_keeps_its_place_and_a_gap_is_not_for_permits() {
    let server = RedisServer::start();
    let [holder, a, b] = parties(&server);
    let held = take(&holder, 2, 2).await;
    let [first, second] = [a.since(1), b.since(2)].map(|it| it.for_one_of(2));
    a.busy(first).await;
    b.busy(second).await;
    let gap = Departure::LeaveFree(RESERVATION);
    holder.departs(&held[0], gap).await;
    assert_eq!(a.hears_its_permit(first).await, 0);
    b.hears_soon(second).await;
    let (mine, _) = a.granted(first).await;
    a.departs(&mine, Departure::Requeue(first.ticket)).await;
    assert_eq!(a.queue().await, [first.ticket, second.ticket]);
    assert_eq!(a.hears_its_permit(first).await, 0);
    // Where the attempt does not hold it is put back too.
    a.granted(first).await;
    let other = b.claim(second.mode);
    b.departs(&other, Departure::Requeue(second.ticket)).await;
    assert_eq!(b.queue().await, [second.ticket]);
}

#[tokio::test]
async fn barging_takes_what_is_free_ahead_of_all() {
    let server = RedisServer::start();
    let [holder, a, barger] = parties(&server);
    let held = take(&holder, 2, 2).await;
    let first = a.since(1).for_one_of(2);
    a.busy(first).await;
    let (_, attempt) = barger.barges(one_of(2)).await;
    assert_eq!(
        (free(&refusal(attempt)), a.queue().await.len()),
        (vec![], 1)
    );
    holder.releases(&held[0]).await;
    a.hears_its_permit(first).await;
    let (barged, attempt) = barger.barges(one_of(2)).await;
    assert!(is_granted(&attempt));
    assert!(!is_granted(&a.asks_for(first, 0).await.1));
    // Also what is kept as a whole: who had it waits again, and is called to the rest.
    barger.releases(&barged).await;
    a.hears_its_permit(first).await;
    holder.releases(&held[1]).await;
    a.hears_its_turn(first).await;
    assert!(is_granted(&barger.barges(one_of(2)).await.1));
    assert_eq!(a.hears_its_permit(first).await, 1);
    a.granted(first).await;
}

#[tokio::test]
async fn an_older_ticket_takes_over_what_is_reserved_for_a_younger_one() {
    let server = RedisServer::start();
    let [a, b] = parties(&server);
    let [older, younger] = [a.since(1), b.since(2)].map(|it| it.for_one_of(2));
    server.command(&["SET", "deploy", "token"]);
    b.busy(younger).await;
    server.command(&["DEL", QUEUE]);
    younger.is_next_at(&server);
    a.granted(older).await;
    assert_eq!(b.hears_its_permit(younger).await, 1);
    b.granted(younger).await;
}

#[tokio::test]
async fn waiters_for_another_number_learn_so_and_keep_nobody_out() {
    let server = RedisServer::start();
    let [holder, a, b, c] = parties(&server);
    let held = holder.takes(Mode::Exclusive).await;
    let (first, other) = (a.since(1).for_one_of(2), b.since(2).for_one_of(5));
    let third = c.since(3).for_one_of(2);
    a.busy(first).await;
    b.busy(other).await;
    c.busy(third).await;
    let waiters = a.modes().await;
    assert_eq!(waiters, [one_of(2), one_of(5), one_of(2)]);
    holder.releases(&held).await;
    a.hears_its_turn(first).await;
    b.hears_soon(other).await;
    a.granted(first).await;
    b.hears_its_turn(other).await;
    assert_eq!(c.hears_its_permit(third).await, 1);
    let error = b.asks(other).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::PermitsDiffer);
    assert_eq!(c.queue().await, [third.ticket]);
}
