//! Two requests in one command: what goes out, and who is told what.

use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;

use super::{MANY, Wire, has_failed, is_waiting, pings, poll};
use crate::connection::answer::Answer;
use crate::connection::command::Command;
use crate::connection::joining::Joining;
use crate::connection::outbox::{Outbox, Replies};
use crate::connection::writing::Writing;
use leasehold::Error;

const JOINING: Joining<'_> = Joining {
    front: &|out| {
        out.command("FREE").arg("lock");
    },
    both: &|out| {
        out.command("HAND-ON").arg("lock").arg("to me");
    },
};

const BOTH: &str = "*4\r\n$7\r\nHAND-ON\r\n$4\r\nlock\r\n$5\r\nto me\r\n$5\r\nowner\r\n";
const TAKE: &str = "*2\r\n$4\r\nTAKE\r\n$4\r\nlock\r\n";
const FREE: &str = "*3\r\n$4\r\nFREE\r\n$4\r\nlock\r\n$5\r\nowner\r\n";

fn free(lock: &str) -> [Command; 1] {
    [Command::new("FREE").arg(lock).arg("owner")]
}

async fn take(outbox: &Outbox) -> Result<Replies, Error> {
    let write = |out: &mut Writing<'_>| {
        out.command("TAKE").arg("lock");
    };
    outbox.ask_joining(write, &JOINING).await
}

/// The only answer that there was.
fn told(answered: Poll<Result<Replies, Error>>) -> Answer {
    match answered {
        Poll::Ready(Ok(replies)) => match &*replies.answers {
            [answer] => answer.clone(),
            other => panic!("{other:?}"),
        },
        Poll::Ready(Err(error)) => panic!("{error}"),
        Poll::Pending => panic!("not answered"),
    }
}

#[test]
fn who_is_behind_the_right_one_goes_out_in_one_command_with_it_and_each_has_its_answer() {
    let mut wire = Wire::new(256);
    let outbox = Arc::clone(&wire.outbox);
    let (first, one) = (free("lock"), pings(1));
    let mut before = pin!(outbox.ask(&one, false));
    let mut freeing = pin!(outbox.ask(&first, false));
    let mut taking = pin!(take(&outbox));
    let mut behind = pin!(outbox.ask(&one, false));
    assert!(is_waiting(before.as_mut()) && is_waiting(freeing.as_mut()));
    assert!(is_waiting(taking.as_mut()) && is_waiting(behind.as_mut()));
    assert!(wire.turn().is_pending());
    let ping = "*1\r\n$4\r\nPING\r\n";
    assert_eq!(wire.arrived(), format!("{ping}{BOTH}{ping}"));
    wire.answers("+PONG\r\n*2\r\n:1\r\n*1\r\n:7\r\n+PONG\r\n");
    assert!(wire.turn().is_pending());
    assert!(poll(before).is_ready() && poll(behind).is_ready());
    assert_eq!(told(poll(freeing)), Answer::Integer(1));
    assert_eq!(told(poll(taking)), Answer::List(vec![Answer::Integer(7)]));
}

#[test]
fn what_is_no_answer_for_two_is_that_of_each() {
    for answer in ["-ERR no\r\n", ":3\r\n", "*3\r\n:1\r\n:2\r\n:3\r\n"] {
        let mut wire = Wire::new(256);
        let outbox = Arc::clone(&wire.outbox);
        let first = free("lock");
        let mut freeing = pin!(outbox.ask(&first, false));
        let mut taking = pin!(take(&outbox));
        assert!(is_waiting(freeing.as_mut()) && is_waiting(taking.as_mut()));
        assert!(wire.turn().is_pending());
        assert_eq!(wire.arrived(), BOTH);
        wire.answers(answer);
        assert!(wire.turn().is_pending());
        assert_eq!(told(poll(freeing)), told(poll(taking)), "{answer}");
    }
}

#[test]
fn whoever_is_not_right_behind_goes_out_by_itself() {
    let other = free("another lock");
    let longer = [Command::new("FREE").arg("lock").arg("owner").arg("x")];
    let shorter = [Command::new("FREE").arg("lock")];
    let two: Vec<Command> = [free("lock"), free("lock")].into_iter().flatten().collect();
    let right = free("lock");
    let others: [(&[Command], bool); 6] = [
        (&other, false),
        (&longer, false),
        (&shorter, false),
        (&two, false),
        (&right, true),
        (&[], true),
    ];
    for (at, (front, is_shown)) in others.into_iter().enumerate() {
        let mut wire = Wire::new(512);
        let outbox = Arc::clone(&wire.outbox);
        let mut asking = pin!(outbox.ask(front, is_shown));
        let mut taking = pin!(take(&outbox));
        assert!(is_waiting(asking.as_mut()) && is_waiting(taking.as_mut()));
        assert!(wire.turn().is_pending());
        let arrived = wire.arrived();
        assert!(arrived.contains(TAKE) && !arrived.contains(BOTH), "{at}");
    }
}

#[test]
fn what_has_gone_out_is_joined_by_nobody() {
    let mut wire = Wire::new(256);
    let outbox = Arc::clone(&wire.outbox);
    let first = free("lock");
    let mut freeing = pin!(outbox.ask(&first, false));
    assert!(is_waiting(freeing.as_mut()) && wire.turn().is_pending());
    let mut taking = pin!(take(&outbox));
    assert!(is_waiting(taking.as_mut()) && wire.turn().is_pending());
    assert_eq!(wire.arrived(), format!("{FREE}{TAKE}"));
    // And what was joined is joined by nobody else.
    let mut freeing = pin!(outbox.ask(&first, false));
    let (mut taking, mut third) = (pin!(take(&outbox)), pin!(take(&outbox)));
    assert!(is_waiting(freeing.as_mut()) && is_waiting(taking.as_mut()));
    assert!(is_waiting(third.as_mut()) && wire.turn().is_pending());
    assert_eq!(wire.arrived(), format!("{BOTH}{TAKE}"));
}

#[test]
fn both_are_told_that_the_connection_broke() {
    for is_written in [false, true] {
        let mut wire = Wire::new(256);
        let outbox = Arc::clone(&wire.outbox);
        let first = free("lock");
        let mut freeing = pin!(outbox.ask(&first, false));
        let mut taking = pin!(take(&outbox));
        assert!(is_waiting(freeing.as_mut()) && is_waiting(taking.as_mut()));
        assert!(!is_written || wire.turn().is_pending());
        drop(wire);
        assert!(has_failed(freeing) && has_failed(taking));
        assert!(has_failed(pin!(take(&outbox))), "too late");
    }
}

#[test]
fn one_answer_makes_room_for_as_many_as_two_had_taken() {
    let mut wire = Wire::new(1 << 20);
    let outbox = Arc::clone(&wire.outbox);
    let first = free("lock");
    for _ in 0..MANY {
        let mut freeing = pin!(outbox.ask(&first, false));
        let mut taking = pin!(take(&outbox));
        assert!(is_waiting(freeing.as_mut()) && is_waiting(taking.as_mut()));
        assert!(wire.turn().is_pending());
        assert_eq!(wire.arrived(), BOTH);
        wire.answers("*2\r\n:1\r\n:1\r\n");
        assert!(wire.turn().is_pending());
        assert!(poll(freeing).is_ready() && poll(taking).is_ready());
    }
    // And for no more: so many take all of it.
    let (many, one) = (pings(MANY), pings(1));
    let (mut all, mut next) = (
        pin!(outbox.ask(&many, false)),
        pin!(outbox.ask(&one, false)),
    );
    assert!(is_waiting(all.as_mut()) && is_waiting(next.as_mut()));
    assert!(wire.turn().is_pending());
    assert_eq!(wire.arrived().matches("PING").count(), MANY);
}
