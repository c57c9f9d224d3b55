//! What becomes of requests on a connection, down to what stands in which order on the wire.

mod hostile;
mod joining;

use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use leasehold::{Error, MemberId};
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream};

use super::command::Command;
use super::driver::Driver;
use super::listener::Listener;
use super::outbox::{Outbox, Replies};

/// More than may be under way at once.
const MANY: usize = 5_000;

/// A connection, whose other end is in the test's hands.
struct Wire {
    outbox: Arc<Outbox>,
    driver: Driver,
    server: DuplexStream,
}

impl Wire {
    /// Holds `room` bytes in each direction.
    fn new(room: usize) -> Self {
        let (ours, server) = tokio::io::duplex(room);
        let outbox = Arc::new(Outbox::new(&[Command::new("TIME")]));
        let listener = Listener::new(MemberId::new("m0"), String::new());
        let driver = Driver::new(Box::new(ours), Arc::clone(&outbox), Arc::new(listener));
        Self {
            outbox,
            driver,
            server,
        }
    }

    /// Lets the connection do what it can; ready once it is over.
    fn turn(&mut self) -> Poll<()> {
        poll(Pin::new(&mut self.driver))
    }

    /// What has arrived at the server.
    fn arrived(&mut self) -> String {
        let mut arrived = String::new();
        let mut bytes = vec![0; 1 << 20];
        while let Poll::Ready(count) = poll(pin!(self.server.read(&mut bytes))) {
            arrived += std::str::from_utf8(&bytes[..count.unwrap()]).unwrap();
        }
        arrived
    }

    fn answers(&mut self, bytes: &str) {
        let written = poll(pin!(self.server.write_all(bytes.as_bytes())));
        assert!(matches!(written, Poll::Ready(Ok(()))));
    }
}

/// Looks whether it is ready; nobody is woken.
fn poll<F: Future>(future: Pin<&mut F>) -> Poll<F::Output> {
    future.poll(&mut Context::from_waker(Waker::noop()))
}

fn pings(count: usize) -> Vec<Command> {
    (0..count).map(|_| Command::new("PING")).collect()
}

fn is_waiting<F: Future<Output = Result<Replies, Error>>>(asking: Pin<&mut F>) -> bool {
    poll(asking).is_pending()
}

fn has_failed<F: Future<Output = Result<Replies, Error>>>(asking: Pin<&mut F>) -> bool {
    matches!(poll(asking), Poll::Ready(Err(_)))
}

#[test]
fn whoever_waits_is_told_that_the_connection_broke_whatever_it_waits_for() {
    let mut wire = Wire::new(256);
    let outbox = Arc::clone(&wire.outbox);
    let (one, many) = (pings(1), pings(MANY));
    let long = [Command::new("ECHO").arg([b'x'; 1_000])];
    let mut unshown = pin!(outbox.ask(&one, true));
    assert!(is_waiting(unshown.as_mut()) && wire.turn().is_pending());
    wire.answers("+PONG\r\n");
    let mut unanswered = pin!(outbox.ask(&one, false));
    assert!(is_waiting(unanswered.as_mut()) && wire.turn().is_pending());
    let mut half_written = pin!(outbox.ask(&long, false));
    assert!(is_waiting(half_written.as_mut()) && wire.turn().is_pending());
    let mut unwritten = pin!(outbox.ask(&one, true));
    assert!(is_waiting(unwritten.as_mut()) && wire.turn().is_pending());
    let mut without_room = pin!(outbox.ask(&many, false));
    assert!(is_waiting(without_room.as_mut()) && wire.turn().is_pending());
    assert!(is_waiting(unshown.as_mut()), "it waits for what is shown");
    drop(wire.server);
    assert!(poll(Pin::new(&mut wire.driver)).is_ready());
    assert!(has_failed(unshown), "answered, and not shown");
    assert!(has_failed(unanswered), "not answered");
    assert!(has_failed(half_written), "written in part");
    assert!(has_failed(unwritten), "not written");
    assert!(has_failed(without_room), "no room was left for it");
    assert!(has_failed(pin!(outbox.ask(&one, false))), "too late");
}

#[test]
fn whoever_waits_is_told_that_the_connection_was_thrown_away() {
    let mut wire = Wire::new(256);
    let outbox = Arc::clone(&wire.outbox);
    let (one, many) = (pings(1), pings(MANY));
    let mut unanswered = pin!(outbox.ask(&one, true));
    assert!(is_waiting(unanswered.as_mut()) && wire.turn().is_pending());
    let mut unwritten = pin!(outbox.ask(&one, false));
    let mut without_room = pin!(outbox.ask(&many, false));
    assert!(is_waiting(unwritten.as_mut()) && is_waiting(without_room.as_mut()));
    drop(wire);
    assert!(has_failed(unanswered) && has_failed(unwritten));
    assert!(has_failed(without_room));
    assert!(has_failed(pin!(outbox.ask(&one, false))), "too late");
}

#[test]
fn answers_make_room_again_also_those_to_a_request_that_took_all_of_it() {
    let mut wire = Wire::new(1 << 20);
    let outbox = Arc::clone(&wire.outbox);
    for _ in 0..3 {
        let (many, one) = (pings(MANY), pings(1));
        let mut first = pin!(outbox.ask(&many, false));
        let mut next = pin!(outbox.ask(&one, false));
        assert!(is_waiting(first.as_mut()) && is_waiting(next.as_mut()));
        assert!(wire.turn().is_pending());
        assert_eq!(wire.arrived().matches("PING").count(), MANY);
        wire.answers(&"+PONG\r\n".repeat(MANY));
        assert!(wire.turn().is_pending());
        assert!(matches!(poll(first), Poll::Ready(Ok(replies)) if replies.answers.len() == MANY));
        assert!(is_waiting(next.as_mut()) && wire.turn().is_pending());
        assert_eq!(wire.arrived().matches("PING").count(), 1, "room is made");
        wire.answers("+PONG\r\n");
        assert!(wire.turn().is_pending());
        assert!(matches!(poll(next), Poll::Ready(Ok(_))));
    }
}

#[test]
fn whoever_asks_for_nothing_is_answered_at_once_or_shown_the_server() {
    let mut wire = Wire::new(256);
    let outbox = Arc::clone(&wire.outbox);
    assert!(matches!(
        poll(pin!(outbox.ask(&[], false))),
        Poll::Ready(Ok(_))
    ));
    assert!(wire.turn().is_pending());
    assert_eq!(wire.arrived(), "");
    let mut looking = pin!(outbox.ask(&[], true));
    assert!(is_waiting(looking.as_mut()) && wire.turn().is_pending());
    assert_eq!(wire.arrived(), "*1\r\n$4\r\nTIME\r\n");
    wire.answers("+now\r\n");
    assert!(wire.turn().is_pending());
    let Poll::Ready(Ok(replies)) = poll(looking) else {
        panic!("it was shown");
    };
    assert!(replies.answers.is_empty());
    assert_eq!(replies.shown[0].as_text(), Some("now"));
}

#[test]
fn the_server_shows_itself_behind_all_requests_of_a_write_and_after_so_many_bytes() {
    let mut wire = Wire::new(1 << 20);
    let outbox = Arc::clone(&wire.outbox);
    let long = [Command::new("ECHO").arg([b'x'; 5_000])];
    let one = pings(1);
    let mut asking = [&long[..], &long, &one, &one].map(|it| Box::pin(outbox.ask(it, true)));
    for asking in &mut asking {
        assert!(is_waiting(asking.as_mut()));
    }
    assert!(wire.turn().is_pending());
    let arrived = wire.arrived();
    let words = ["ECHO", "PING", "TIME"].map(|word| {
        let found = arrived.match_indices(word).map(|(at, _)| (at, word));
        found.collect::<Vec<_>>()
    });
    let mut words = words.concat();
    words.sort_unstable();
    let words: Vec<&str> = words.into_iter().map(|(_, word)| word).collect();
    assert_eq!(words, ["ECHO", "ECHO", "TIME", "PING", "PING", "TIME"]);
    // Those in front are through as soon as the first look is answered.
    wire.answers("+x\r\n+x\r\n+then\r\n+PONG\r\n");
    assert!(wire.turn().is_pending());
    let [first, second, third, fourth] = asking.each_mut().map(|it| poll(it.as_mut()));
    for shown in [first, second] {
        let Poll::Ready(Ok(replies)) = shown else {
            panic!("it was shown");
        };
        assert_eq!(replies.shown[0].as_text(), Some("then"));
    }
    assert!(third.is_pending() && fourth.is_pending());
}
