//! Many who come again and again.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use leasehold::clock::{Clock, SystemClock, within};
use leasehold::{Attempt, Claim, Heard, Mode, Word};
use leasehold_testkit::servers::{LIMIT, RedisServer, Reply};

use super::party::{Party, QUEUE, Waiting};
use crate::support::value;

/// Waits until the lock is granted: asks once, and then only when it is told to, or after so long
/// that a few such times would take longer than the test may.
async fn acquire(party: &Party, waiting: Waiting) -> (Claim, u64) {
    const LOST: Duration = Duration::from_secs(8);
    loop {
        match party.asks(waiting).await.unwrap() {
            (claim, Attempt::Granted(grant)) => return (claim, grant.fence.get()),
            (_, Attempt::Busy(_)) => {}
        }
        let mut patience = SystemClock.now() + LOST;
        while let Some(heard) = within(&SystemClock, patience, party.hears()).await {
            match heard {
                Heard::Hint(hint) if hint.waiter != waiting.ticket.waiter => {}
                Heard::Hint(hint) => match hint.word {
                    Word::YourTurn => break,
                    Word::Soon { remaining } => {
                        patience = patience.min(SystemClock.now() + remaining);
                    }
                },
                Heard::Deaf => panic!("the connection broke"),
            }
        }
    }
}

#[tokio::test]
async fn a_crowd_is_served_one_after_the_other_and_nobody_is_forgotten() {
    const CYCLES: u64 = 40;
    let server = RedisServer::start();
    let parties: Vec<Party> = (0..6).map(|_| Party::at(&server)).collect();
    let (last_fence, inside) = (AtomicU64::new(0), AtomicU64::new(0));
    let cycles = parties.iter().enumerate().map(async |(number, party)| {
        for _ in 0..CYCLES {
            let mut waiting = party.since(SystemClock.wall().as_micros());
            if number >= 4 {
                waiting = waiting.shared();
            }
            let (claim, fence) = acquire(party, waiting).await;
            // Readers that hold the lock together may learn of their fences in any order.
            let before = last_fence.fetch_max(fence, Ordering::Relaxed);
            if waiting.mode == Mode::Exclusive {
                assert!(before < fence);
                assert_eq!(inside.fetch_add(1, Ordering::Relaxed), 0);
                tokio::task::yield_now().await;
                inside.fetch_sub(1, Ordering::Relaxed);
            }
            party.releases(&claim).await;
        }
    });
    let end = SystemClock.now() + LIMIT;
    let all = within(&SystemClock, end, futures_util::future::join_all(cycles)).await;
    assert!(all.is_some(), "somebody was forgotten");
    assert_eq!(value(&server, "deploy"), Reply::Nil);
    assert_eq!(server.command(&["EXISTS", QUEUE]), Reply::Integer(0));
}
