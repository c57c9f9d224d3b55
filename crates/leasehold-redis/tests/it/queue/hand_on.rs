//! A lock that stays with its client: the release and the next attempt in one step of the server.

use futures_util::future::join;
use leasehold::{Attempt, Busy, Claim, Departure, Error, ErrorKind, Grant, Mode, Release};
use leasehold_testkit::servers::{RedisServer, Reply};

use super::party::{OFFERED, Party, QUEUE, Waiting};
use super::usual::{FENCE, assert_ran, ran};
use crate::support::value;

/// One is freed and the next one granted; nobody is told anything.
const HANDING_ON: [(&str, u64); 10] = [
    ("del", 1),
    ("evalsha", 1),
    ("get", 1),
    ("hget", 1),
    ("set", 1),
    ("time", 1),
    ("zadd", 1),
    ("zrange", 1),
    ("zrank", 1),
    ("zrem", 1),
];

impl Party {
    /// Gives back what it holds, and asks for it behind that, in one write.
    async fn hands_on(
        &self,
        held: &Claim,
        next: Waiting,
    ) -> (Release, Result<(Claim, Attempt), Error>) {
        // The release first, each time.
        join(self.departs(held, Departure::HandOver), self.asks(next)).await
    }

    async fn hands_on_to(&self, held: &Claim, next: Waiting) -> (Claim, Grant) {
        match self.hands_on(held, next).await {
            (Release::Released, Ok((claim, Attempt::Granted(grant)))) => (claim, grant),
            other => panic!("{other:?}"),
        }
    }

    async fn hands_on_in_vain(&self, held: &Claim, next: Waiting) -> (Release, Busy) {
        match self.hands_on(held, next).await {
            (release, Ok((_, Attempt::Busy(busy)))) => (release, busy),
            other => panic!("{other:?}"),
        }
    }

    /// Holds the lock on a connection that has given it back before, whose server knows the scripts.
    async fn settled_at(server: &RedisServer) -> (Self, Claim) {
        let party = Self::at(server);
        let held = party.takes(Mode::Exclusive).await;
        let (first, second) = (party.since(1), party.since(2));
        party.busy(first).await;
        party.departs(&held, Departure::HandOver).await;
        party.hears_its_turn(first).await;
        let (held, _) = party.granted(first).await;
        party.busy(second).await;
        let (held, _) = party.hands_on_to(&held, second).await;
        // The script was not known: they were asked one after the other.
        party.hears_its_turn(second).await;
        (party, held)
    }
}

#[tokio::test]
async fn a_lock_that_stays_with_its_client_is_handed_on_by_one_script_that_tells_nobody() {
    let server = RedisServer::start();
    let (mine, held) = Party::settled_at(&server).await;
    let other = Party::at(&server);
    let (next, last) = (mine.since(3), other.since(4));
    mine.busy(next).await;
    other.busy(last).await;
    ran(&server);
    let (taken, grant) = mine.hands_on_to(&held, next).await;
    assert_ran(&server, &HANDING_ON);
    assert_eq!(grant.fence.get(), taken.proposal.as_micros() + 1);
    assert!(grant.sample.is_some());
    assert_eq!(
        value(&server, "deploy"),
        Reply::Bulk(taken.owner.to_string())
    );
    assert_eq!(mine.queue().await, [last.ticket]);
    assert_eq!(server.command(&["EXISTS", OFFERED]), Reply::Integer(0));
    mine.has_heard_nothing().await;
    other.has_heard_nothing().await;
}

#[tokio::test]
async fn a_counter_that_is_ahead_is_drawn_from() {
    let server = RedisServer::start();
    let (mine, held) = Party::settled_at(&server).await;
    let next = mine.since(3);
    mine.busy(next).await;
    let ahead = held.proposal.as_micros() + 60_000_000;
    server.command(&["ZADD", FENCE, &ahead.to_string(), "f"]);
    let (_, grant) = mine.hands_on_to(&held, next).await;
    assert_eq!(grant.fence.get(), ahead + 1);
}

#[tokio::test]
async fn whoever_is_first_has_the_lock_kept_and_is_told() {
    let server = RedisServer::start();
    let (mine, held) = Party::settled_at(&server).await;
    let other = Party::at(&server);
    let (first, second) = (other.since(3), mine.since(4));
    other.busy(first).await;
    mine.busy(second).await;
    let (released, busy) = mine.hands_on_in_vain(&held, second).await;
    assert_eq!(released, Release::Released);
    assert_eq!((busy.holder, busy.place), (None, Some(1)));
    other.hears_its_turn(first).await;
    assert_eq!(value(&server, "deploy"), Reply::Bulk(first.reservation()));
    other.granted(first).await;
}

/// It was called, and its first request is what puts it into the queue.
#[tokio::test]
async fn who_is_not_in_the_queue_yet_has_the_lock_if_nobody_is() {
    let server = RedisServer::start();
    let (mine, held) = Party::settled_at(&server).await;
    mine.hands_on_to(&held, mine.since(3)).await;
    assert_eq!(server.command(&["EXISTS", QUEUE]), Reply::Integer(0));
}

#[tokio::test]
async fn a_lock_that_is_left_free_for_a_while_is_not_handed_on() {
    let server = RedisServer::start();
    let (mine, held) = Party::settled_at(&server).await;
    let next = mine.since(3);
    mine.busy(next).await;
    let until = |at: &str| server.command(&["ZADD", OFFERED, at, "gap"]);
    until("9000000000000");
    let (released, busy) = mine.hands_on_in_vain(&held, next).await;
    assert_eq!((released, busy.holder), (Release::Released, None));
    assert_eq!(value(&server, "deploy"), Reply::Nil);
    until("1");
    let (held, _) = mine.granted(next).await;
    let next = mine.since(4);
    mine.busy(next).await;
    ran(&server);
    mine.hands_on_to(&held, next).await;
    assert_ran(&server, &HANDING_ON);
}

#[tokio::test]
async fn a_lease_that_was_lost_is_not_given_back_and_its_lock_not_taken() {
    let server = RedisServer::start();
    let (mine, held) = Party::settled_at(&server).await;
    let next = mine.since(3);
    mine.busy(next).await;
    server.command(&["SET", "deploy", "job-1", "PX", "60000"]);
    let (released, busy) = mine.hands_on_in_vain(&held, next).await;
    assert_eq!(released, Release::WasLost);
    assert!(busy.silent && busy.place == Some(1));
    assert_eq!(value(&server, "deploy"), Reply::Bulk("job-1".into()));
}

/// What is wrong with the attempt is no reason to doubt the release.
#[tokio::test]
async fn an_attempt_that_fails_hides_no_release() {
    let server = RedisServer::start();
    let (mine, held) = Party::settled_at(&server).await;
    let next = mine.since(3);
    mine.busy(next).await;
    server.command(&["SET", FENCE, "of another type"]);
    let (released, attempt) = mine.hands_on(&held, next).await;
    assert_eq!(released, Release::Released);
    assert_eq!(attempt.unwrap_err().kind(), ErrorKind::Corrupt);
}

/// Where a script has freed something, the server sees it through.
#[tokio::test]
async fn a_server_without_memory_hands_on_what_it_has() {
    let server = RedisServer::start();
    let (mine, held) = Party::settled_at(&server).await;
    let next = mine.since(3);
    mine.busy(next).await;
    server.command(&["CONFIG", "SET", "maxmemory", "1"]);
    mine.hands_on_to(&held, next).await;
}

#[tokio::test]
async fn a_server_that_forgot_the_scripts_is_told_them_again() {
    let server = RedisServer::start();
    let (mine, mut held) = Party::settled_at(&server).await;
    for since in [3, 4] {
        let next = mine.since(since);
        mine.busy(next).await;
        server.command(&["SCRIPT", "FLUSH", "SYNC"]);
        held = mine.hands_on_to(&held, next).await.0;
    }
    let next = mine.since(5);
    mine.busy(next).await;
    ran(&server);
    mine.hands_on_to(&held, next).await;
    assert_ran(&server, &HANDING_ON);
}
