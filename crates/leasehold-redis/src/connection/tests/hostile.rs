//! Servers that send more than any command asks for, or in pieces that cost the reader work.

use std::time::Duration;

use leasehold::ErrorKind;
use leasehold::clock::{Clock, SystemClock};

use super::*;

/// A few times what the reader needs on a slow machine, and a small part of what quadratic work needs.
const LIMIT: Duration = Duration::from_secs(60);

#[test]
fn reply_in_small_pieces_takes_linear_work() {
    let mut wire = Wire::new(256);
    let outbox = Arc::clone(&wire.outbox);
    let one = pings(1);
    let mut asking = pin!(outbox.ask(&one, false));
    assert!(is_waiting(asking.as_mut()) && wire.turn().is_pending());
    let end = SystemClock.now() + LIMIT;
    wire.answers("*1000000\r\n");
    // 25 items of 3 bytes each.
    let piece = "_\r\n".repeat(25);
    for number in 0..40_000 {
        wire.answers(&piece);
        assert!(wire.turn().is_pending());
        let now = SystemClock.now();
        assert!(now < end, "read {number} of 40000 pieces in {LIMIT:?}");
    }
    let Poll::Ready(Ok(replies)) = poll(asking) else {
        panic!("the reply is whole");
    };
    assert_eq!(
        replies.answers[0].as_list().map(<[_]>::len),
        Some(1_000_000)
    );
}

/// Begins a reply with `start`, then sends `piece` until the connection ends. Returns the error of the
/// request and the number of bytes sent.
fn cut_after(start: &str, piece: &str) -> (Error, usize) {
    let mut wire = Wire::new(64 * 1024);
    let outbox = Arc::clone(&wire.outbox);
    let one = pings(1);
    let mut asking = pin!(outbox.ask(&one, false));
    assert!(is_waiting(asking.as_mut()) && wire.turn().is_pending());
    wire.answers(start);
    let mut sent = start.len();
    while wire.turn().is_pending() {
        assert!(sent < 16 << 20, "still reading after {sent} bytes");
        wire.answers(piece);
        sent += piece.len();
    }
    match poll(asking) {
        Poll::Ready(Err(error)) => (error, sent),
        _ => panic!("the request fails with its connection"),
    }
}

#[test]
fn endless_reply_cuts_the_connection() {
    let text = "x".repeat(60_000);
    let (error, sent) = cut_after("*2000000\r\n", &format!("+{text}\r\n"));
    assert_eq!(error.kind(), ErrorKind::Garbled);
    let text = error.to_string();
    assert!(text.contains("the limit is 8388608 bytes"), "{text}");
    assert!(sent < 9 << 20, "{sent} bytes were read");
}

#[test]
fn impossible_lengths_cut_the_connection_at_once() {
    for announced in ["$8388609", "*2796203", "%1398102", ">9999999999"] {
        let start = format!("{announced}\r\n");
        let (error, sent) = cut_after(&start, &"_\r\n".repeat(10_000));
        let text = error.to_string();
        assert!(
            text.contains("the limit is 8388608 bytes"),
            "{start:?}: {text}"
        );
        assert_eq!(sent, start.len(), "{start:?}");
    }
}
