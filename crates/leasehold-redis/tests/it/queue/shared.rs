//! Readers and writers in one queue.

use std::time::Duration;

use leasehold::{Attempt, Claim, Mode, RESERVATION};
use leasehold_testkit::servers::{RedisServer, Reply};

use super::party::{
    OFFERED, Party, QUEUE, Waiting, is_granted, nobody_else_is_to_show_itself,
    nobody_is_called_again,
};
use crate::support::{busy, granted, value};

#[tokio::test]
async fn the_first_of_many_readers_calls_those_behind_it_up_to_the_next_writer() {
    let server = RedisServer::start();
    let parties: Vec<Party> = (0..6).map(|_| Party::at(&server)).collect();
    let [holder, a, b, c, writer, late] = parties.as_slice() else {
        unreachable!()
    };
    let held = holder.takes(Mode::Exclusive).await;
    let readers = [a.since(1), b.since(2), c.since(3)].map(Waiting::shared);
    let (fourth, fifth) = (writer.since(4), late.since(5).shared());
    for (party, reader) in [a, b, c].into_iter().zip(readers) {
        party.busy(reader).await;
    }
    writer.busy(fourth).await;
    late.busy(fifth).await;
    holder.releases(&held).await;
    a.hears_its_turn(readers[0]).await;
    b.hears_soon(readers[1]).await;
    let (one, _) = a.granted(readers[0]).await;
    nobody_is_called_again(&server);
    b.hears_its_turn(readers[1]).await;
    c.hears_its_turn(readers[2]).await;
    // It keeps one out that could join, who is to look should it not come.
    writer.is_to_show_itself(fourth).await;
    assert_eq!(late.hears_soon(fifth).await, RESERVATION);
    assert_eq!(a.queue().await.len(), 4, "they stay until they come");
    nobody_else_is_to_show_itself(&server);

    let (two, _) = b.granted(readers[1]).await;
    c.has_heard_nothing().await;
    // A reader behind the writer does not pass it, and learns how long it may take.
    let refused = late.busy(fifth).await;
    assert_eq!((refused.holder, refused.place), (None, Some(3)));
    let rest = refused.remaining.unwrap();
    assert!(rest > RESERVATION && rest <= one.ttl, "{rest:?}");
    let (three, _) = c.granted(readers[2]).await;
    a.releases(&one).await;
    b.releases(&two).await;
    writer.has_heard_nothing().await;
    c.releases(&three).await;
    writer.hears_its_turn(fourth).await;
    let (held, _) = writer.granted(fourth).await;
    writer.releases(&held).await;
    late.hears_soon(fifth).await;
    late.hears_its_turn(fifth).await;
    late.granted(fifth).await;
}

#[tokio::test]
async fn who_does_not_show_itself_is_asked_once_until_it_is_late() {
    let server = RedisServer::start();
    let [holder, silent, reader] = [(); 3].map(|()| Party::at(&server));
    holder.takes(Mode::Shared).await;
    let (writer, behind) = (silent.since(1), reader.since(2).shared());
    silent.busy(writer).await;
    // Again and again, so that somebody asks in the very millisecond in which its time ends.
    while !is_granted(&reader.asks(behind).await.unwrap().1) {}
    assert_eq!(silent.hears_soon(writer).await, Duration::ZERO);
    silent.has_heard_nothing().await;
}

/// The first shares the lock, the next two want it alone, and the last one to share it: so the first
/// writer was asked to show itself.
async fn where_the_first_writer_was_asked(
    server: &RedisServer,
    [holder, first, second, reader]: &[Party; 4],
) -> (Claim, [Waiting; 3]) {
    let held = holder.takes(Mode::Shared).await;
    let (one, two) = (first.since(1), second.since(2));
    let three = reader.since(3).shared();
    first.busy(one).await;
    second.busy(two).await;
    reader.busy(three).await;
    first.is_to_show_itself(one).await;
    nobody_else_is_to_show_itself(server);
    (held, [one, two, three])
}

#[tokio::test]
async fn the_next_writer_is_asked_to_show_itself_though_another_one_just_was() {
    let server = RedisServer::start();
    let parties = [(); 4].map(|()| Party::at(&server));
    let [holder, first, second, reader] = &parties;
    for leaves in [false, true] {
        let (held, [one, two, three]) = where_the_first_writer_was_asked(&server, &parties).await;
        if leaves {
            first.leaves(one).await;
        } else {
            holder.releases(&held).await;
            first.hears_its_turn(one).await;
            let (held, grant) = first.granted(one).await;
            first.makes_shared(&held, &grant).await;
        }
        second.hears_soon(two).await;
        reader.busy(three).await;
        second.is_to_show_itself(two).await;
        second.leaves(two).await;
        reader.granted(three).await;
        server.command(&["FLUSHALL"]);
    }
}

#[tokio::test]
async fn a_writer_is_not_asked_to_show_itself_again_because_one_behind_it_left() {
    let server = RedisServer::start();
    let parties = [(); 4].map(|()| Party::at(&server));
    let [_, first, second, reader] = &parties;
    let (_, [one, two, three]) = where_the_first_writer_was_asked(&server, &parties).await;
    second.leaves(two).await;
    assert!(first.hears_soon(one).await > Duration::ZERO);
    reader.busy(three).await;
    first.has_heard_nothing().await;
}

#[tokio::test]
async fn readers_between_a_writer_that_is_gone_and_the_next_are_called_whoever_asks() {
    let server = RedisServer::start();
    let [holder, dead, near, writer, far] = [(); 5].map(|()| Party::at(&server));
    holder.takes(Mode::Shared).await;
    let (one, two) = (dead.since(1), near.since(2).shared());
    let (three, four) = (writer.since(3), far.since(4).shared());
    dead.busy(one).await;
    near.busy(two).await;
    writer.busy(three).await;
    for late in [&dead.client.id.to_string(), "shows"] {
        let set = server.command(&["ZADD", OFFERED, "XX", "CH", "1", late]);
        assert_eq!(set, Reply::Integer(1), "{late}");
    }
    far.busy(four).await;
    near.hears_its_turn(two).await;
    writer.is_to_show_itself(three).await;
    near.granted(two).await;
    assert_eq!(near.queue().await, [three.ticket, four.ticket]);
}

#[tokio::test]
async fn who_comes_in_first_where_a_lock_was_made_shared_calls_the_others_once() {
    let server = RedisServer::start();
    let parties: Vec<Party> = (0..22).map(|_| Party::at(&server)).collect();
    let (holder, readers) = parties.split_first().unwrap();
    let waiting = readers.iter().zip(1..);
    let mut waiting = waiting.map(|(party, since)| (party, party.since(since).shared()));
    let (first, own) = waiting.next().unwrap();
    let others: Vec<(&Party, Waiting)> = waiting.collect();
    // Also soon after others were called.
    for _ in 0..2 {
        let (held, grant) = holder.granted(holder.since(0)).await;
        first.busy(own).await;
        for (party, waiting) in &others {
            party.busy(*waiting).await;
        }
        holder.makes_shared(&held, &grant).await;
        first.granted(own).await;
        nobody_is_called_again(&server);
        for (party, waiting) in &others {
            party.hears_its_turn(*waiting).await;
            party.granted(*waiting).await;
        }
        for (party, _) in &others {
            party.has_heard_nothing().await;
        }
        server.command(&["DEL", "deploy"]);
    }
}

#[tokio::test]
async fn readers_who_ask_without_a_turn_do_not_join_while_somebody_waits() {
    let server = RedisServer::start();
    let (reader, writer) = (Party::at(&server), Party::at(&server));
    let first = reader.takes(Mode::Shared).await;
    let second = reader.takes(Mode::Shared).await;
    let waiting = writer.since(1);
    writer.busy(waiting).await;
    let answer = busy(&reader.member, &reader.claim(Mode::Shared)).await;
    assert_eq!((answer.holder, answer.silent), (None, false));
    granted(&reader.member, &first).await;
    let (barger, attempt) = reader.barges(Mode::Shared).await;
    assert!(is_granted(&attempt), "barging goes ahead of the queue");
    for claim in [&first, &second] {
        reader.releases(claim).await;
        writer.has_heard_nothing().await;
    }
    reader.releases(&barger).await;
    writer.hears_its_turn(waiting).await;
    assert!(matches!(
        reader.barges(Mode::Shared).await.1,
        Attempt::Granted(_)
    ));
}

#[tokio::test]
async fn a_dead_writer_keeps_no_reader_out() {
    let server = RedisServer::start();
    let (reader, other) = (Party::at(&server), Party::at(&server));
    reader.takes(Mode::Shared).await;
    // Nobody ever subscribed for it.
    for since in ["1", "2"] {
        let dead = Party::at(&server).since(1).ticket.waiter.to_string();
        server.command(&["ZADD", QUEUE, since, &dead]);
    }
    let writer = other.since(3);
    other.busy(writer).await;
    let waiting = reader.since(4).shared();
    let answer = reader.busy(waiting).await;
    assert_eq!(answer.place, Some(2));
    other.is_to_show_itself(writer).await;
    assert_eq!(other.queue().await, [writer.ticket, waiting.ticket]);
    other.leaves(writer).await;
    reader.granted(waiting).await;
    assert!(other.queue().await.is_empty());
}

#[tokio::test]
async fn readers_pass_younger_writers_and_dead_readers_are_not_called() {
    let server = RedisServer::start();
    let (reader, writer) = (Party::at(&server), Party::at(&server));
    let first = reader.since(1).shared();
    let (held, _) = reader.granted(first).await;
    let young = writer.since(9);
    writer.busy(young).await;
    let (other, _) = reader.granted(reader.since(2).shared()).await;
    writer.has_heard_nothing().await;
    reader.releases(&held).await;
    reader.releases(&other).await;
    writer.hears_its_turn(young).await;
    writer.leaves(young).await;

    let dead = Party::at(&server).since(3).shared();
    let entry = format!("{}/s", dead.ticket.waiter);
    server.command(&["ZADD", QUEUE, "3", &entry]);
    let mine = reader.since(2).shared();
    let (held, _) = reader.granted(mine).await;
    assert!(reader.queue().await.is_empty());
    reader.releases(&held).await;
    assert_eq!(value(&server, "deploy"), Reply::Nil);
}
