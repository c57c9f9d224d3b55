use std::time::Duration;

use leasehold::Mode;
use leasehold::store::LockRequest;
use leasehold_quorum::{LeaseState, Position, Requeue};

use crate::fixture::{TestClient, permits, server, start};
use crate::foreign::hands_over_with_gap;

const QUEUE: &str = "leasehold:queue:{deploy}:deploy";
const NEXT: &str = "leasehold:next";

#[test]
fn waiter_learns_its_place_and_when_to_ask() {
    let (_server, mut client) = start();
    let held = client.hold(Mode::Exclusive);
    let head = client.refusal(Mode::Exclusive, Position::Ticket(5));
    assert_eq!(head.busy.holder, Some(held.owner));
    assert_eq!(head.busy.position, Some(1));
    // Only the head asks when the lease ends.
    assert_eq!(head.ask_again, head.busy.remaining);
    let second = client.refusal(Mode::Exclusive, Position::Ticket(6));
    assert_eq!((second.busy.position, second.ask_again), (Some(2), None));
    let none = client.refusal(Mode::Exclusive, Position::None);
    assert_eq!((none.busy.position, none.ask_again), (None, None));
}

#[test]
fn release_calls_the_oldest_waiter() {
    let server = server();
    let (mut holder, mut first) = (TestClient::connect(&server), TestClient::connect(&server));
    let mut second = TestClient::connect(&server);
    let held = holder.hold(Mode::Exclusive);
    let late = second.wait(Mode::Exclusive, 20);
    let early = first.wait(Mode::Exclusive, 10);
    holder.release(&held);
    assert_eq!(first.notified(), [early.owner]);
    assert_eq!(second.notified(), []);
    assert_eq!(holder.value().as_deref(), Some(NEXT));
    // No other waiter, newcomer or plain client gets it.
    let refused = second.acquire(&late, Position::Ticket(20)).refused();
    assert!(
        refused.ask_again.unwrap() > Duration::from_secs(1),
        "presence of the head"
    );
    let third = holder.lock_request(Mode::Exclusive);
    let refused = holder.acquire(&third, Position::Ticket(30)).refused();
    assert_eq!((refused.busy.position, refused.ask_again), (Some(3), None));
    holder.release(&third);
    holder.refusal(Mode::Exclusive, Position::None);
    first.acquire(&early, Position::Ticket(10)).granted();
    assert_eq!(first.command(&["ZCARD", QUEUE]).as_integer(), Some(1));
}

#[test]
fn older_waiter_takes_a_lock_kept_for_another() {
    let server = server();
    let (mut holder, mut first) = (TestClient::connect(&server), TestClient::connect(&server));
    let held = holder.hold(Mode::Exclusive);
    let younger = first.wait(Mode::Exclusive, 20);
    holder.release(&held);
    assert_eq!(first.notified(), [younger.owner]);
    let older = holder.lock_request(Mode::Exclusive);
    holder.acquire(&older, Position::Ticket(10)).granted();
    let refused = first.acquire(&younger, Position::Ticket(20)).refused();
    assert_eq!(refused.busy.position, Some(1));
}

#[test]
fn dead_waiters_are_dropped() {
    let (server, mut holder) = start();
    // One client is present but does not listen; the other listens but is no longer present.
    let (mut deaf, mut absent) = (TestClient::silent(&server), TestClient::connect(&server));
    let mut alive = TestClient::connect(&server);
    let held = holder.hold(Mode::Exclusive);
    absent.wait(Mode::Exclusive, 1);
    server.clock().forward(Duration::from_millis(2600));
    deaf.heartbeat(&[]);
    deaf.wait(Mode::Exclusive, 2);
    alive.heartbeat(&[]);
    let waiter = alive.wait(Mode::Exclusive, 3);
    holder.release(&held);
    assert_eq!(alive.notified(), [waiter.owner]);
    assert_eq!(absent.notified(), []);
    assert_eq!(alive.command(&["ZCARD", QUEUE]).as_integer(), Some(1));
}

#[test]
fn usual_release_skips_an_absent_head() {
    let (server, mut holder) = start();
    assert!(!hands_over_with_gap(&mut holder));
    let mut absent = TestClient::connect(&server);
    let held = holder.hold(Mode::Exclusive);
    absent.wait(Mode::Exclusive, 1);
    // Another client keeps the key of the presence, with what has ended in it since.
    server.clock().forward(Duration::from_millis(1300));
    holder.heartbeat(&[]);
    server.clock().forward(Duration::from_millis(1300));
    holder.release(&held);
    assert_eq!(absent.notified(), []);
    assert_eq!(holder.value(), None);
}

#[test]
fn usual_release_skips_a_deaf_head() {
    let (server, mut holder) = start();
    assert!(!hands_over_with_gap(&mut holder));
    let mut deaf = TestClient::silent(&server);
    deaf.heartbeat(&[]);
    let held = holder.hold(Mode::Exclusive);
    deaf.wait(Mode::Exclusive, 1);
    let waiter = holder.wait(Mode::Exclusive, 2);
    holder.release(&held);
    assert_eq!(holder.notified(), [waiter.owner]);
}

#[test]
fn heartbeat_drops_dead_entries_behind_live_ones() {
    let server = server();
    let mut clients = [0; 4].map(|_| TestClient::connect(&server));
    let [holder, first, killed, last] = &mut clients;
    holder.hold(Mode::Exclusive);
    let head = first.wait(Mode::Exclusive, 10);
    let dead: Vec<_> = (20..60)
        .map(|ticket| killed.wait(Mode::Exclusive, ticket))
        .collect();
    let tail = last.wait(Mode::Exclusive, 60);
    server.clock().forward(Duration::from_millis(2600));
    last.heartbeat(&[]);
    first.heartbeat(&[&head]);
    // A call looks at few entries, since the server does nothing else meanwhile.
    let left = holder.command(&["ZCARD", QUEUE]).as_integer().unwrap();
    assert!((10..=42).contains(&left), "{left}");
    for _ in 0..4 {
        server.clock().forward(Duration::from_secs(1));
        last.heartbeat(&[&tail]);
        first.heartbeat(&[&head]);
    }
    assert_eq!(holder.command(&["ZCARD", QUEUE]).as_integer(), Some(2));
    // A client that only paused returns to its position.
    assert_eq!(killed.heartbeat(&[&dead[0]])[0].busy.position, None);
    let again = killed.acquire(&dead[0], Position::Ticket(20)).refused();
    assert_eq!(again.busy.position, Some(2));
}

#[test]
fn release_grants_the_successor_in_one_step() {
    let (_server, mut client) = start();
    let held = client.hold(Mode::Exclusive);
    let next = client.wait(Mode::Exclusive, 10);
    let (freed, successor) = client.release_to(&held, None, Some((&next, 10)));
    assert!(freed && successor.is_some());
    assert_eq!(client.value(), Some(next.owner.to_string()));
    assert_eq!(client.notified(), []);
    assert_eq!(client.command(&["EXISTS", QUEUE]).as_integer(), Some(0));
}

#[test]
fn older_waiter_comes_before_the_successor() {
    let server = server();
    let (mut holder, mut other) = (TestClient::connect(&server), TestClient::connect(&server));
    let held = holder.hold(Mode::Exclusive);
    let older = other.wait(Mode::Exclusive, 5);
    let own = holder.wait(Mode::Exclusive, 10);
    let (freed, successor) = holder.release_to(&held, None, Some((&own, 10)));
    assert!(freed);
    assert_eq!(successor, None);
    assert_eq!(other.notified(), [older.owner]);
    assert_eq!(holder.value().as_deref(), Some(NEXT));
}

#[test]
fn successor_that_is_not_queued_here_is_granted() {
    let (_server, mut client) = start();
    let held = client.hold(Mode::Exclusive);
    let next = client.lock_request(Mode::Exclusive);
    let (_, successor) = client.release_to(&held, None, Some((&next, 10)));
    assert!(successor.is_some());
}

fn returns(next: &LockRequest, ticket: u64) -> Requeue {
    Requeue {
        owner: next.owner,
        ticket,
    }
}

#[test]
fn failed_round_returns_with_its_ticket() {
    let server = server();
    let (mut first, mut second) = (TestClient::connect(&server), TestClient::connect(&server));
    let held = first.hold(Mode::Exclusive);
    let younger = second.wait(Mode::Exclusive, 20);
    let next = first.lock_request(Mode::Exclusive);
    let (freed, _) = first.release_to(&held, Some(returns(&next, 10)), None);
    assert!(freed);
    // It is the oldest waiter, and gets the notification itself.
    assert_eq!(first.notified(), [next.owner]);
    assert_eq!(second.notified(), []);
    let refused = second.acquire(&younger, Position::Ticket(20)).refused();
    assert_eq!(refused.busy.position, Some(2));
    first.acquire(&next, Position::Ticket(10)).granted();
    // The release of the earlier round comes once more.
    assert!(!first.release(&held));
    assert_eq!(first.value(), Some(next.owner.to_string()));
}

#[test]
fn only_waiter_returns_to_an_empty_queue() {
    let (_server, mut client) = start();
    let held = client.hold(Mode::Exclusive);
    let next = client.lock_request(Mode::Exclusive);
    client.release_to(&held, Some(returns(&next, 10)), None);
    assert_eq!(client.notified(), [next.owner]);
    assert_eq!(client.value().as_deref(), Some(NEXT));
}

#[test]
fn new_round_replaces_the_entry_in_place() {
    let server = server();
    let (mut first, mut second) = (TestClient::connect(&server), TestClient::connect(&server));
    let held = second.hold(Mode::Exclusive);
    let waiting = first.wait(Mode::Exclusive, 10);
    let younger = second.wait(Mode::Exclusive, 20);
    let next = first.lock_request(Mode::Exclusive);
    assert!(!first.release_to(&waiting, Some(returns(&next, 10)), None).0);
    assert!(second.release(&held));
    assert_eq!(first.notified(), [next.owner]);
    let refused = second.acquire(&younger, Position::Ticket(20)).refused();
    assert_eq!(refused.busy.position, Some(2));
}

#[test]
fn dequeued_waiter_hands_over() {
    let server = server();
    let (mut holder, mut head) = (TestClient::connect(&server), TestClient::connect(&server));
    let mut second = TestClient::connect(&server);
    let held = holder.hold(Mode::Exclusive);
    let first = head.wait(Mode::Exclusive, 10);
    let next = second.wait(Mode::Exclusive, 20);
    holder.release(&held);
    head.dequeue(&first);
    assert_eq!(second.notified(), [next.owner]);
    second.dequeue(&next);
    assert_eq!(second.value(), None);
}

#[test]
fn dequeue_frees_no_lease() {
    let server = server();
    for mode in [Mode::Exclusive, Mode::Shared, permits(2)] {
        let mut client = TestClient::connect(&server);
        let held = client.hold(mode);
        client.dequeue(&held);
        assert!(
            matches!(client.renew(&held), LeaseState::Renewed),
            "{mode:?}"
        );
        client.release(&held);
    }
}

#[test]
fn wait_that_ends_hands_over() {
    let server = server();
    let (mut holder, mut head) = (TestClient::connect(&server), TestClient::connect(&server));
    let mut second = TestClient::connect(&server);
    let held = holder.hold(Mode::Exclusive);
    let first = head.wait(Mode::Exclusive, 10);
    let next = second.wait(Mode::Exclusive, 20);
    holder.release(&held);
    assert!(!head.release(&first));
    assert_eq!(second.notified(), [next.owner]);
    // Without a waiter nothing is reserved.
    assert!(!second.release(&next));
    assert_eq!(second.value(), None);
}

#[test]
fn waiters_of_one_instant_are_ordered_by_owner() {
    let (_server, mut client) = start();
    let held = client.hold(Mode::Exclusive);
    let mut waiters = [0; 3].map(|_| client.wait(Mode::Exclusive, 10).owner);
    waiters.sort();
    client.release(&held);
    assert_eq!(client.notified(), waiters[..1]);
}

#[test]
fn expired_lease_goes_to_the_head() {
    let server = server();
    let (mut holder, mut waiter) = (TestClient::connect(&server), TestClient::connect(&server));
    holder.hold(Mode::Exclusive);
    let older = waiter.wait(Mode::Exclusive, 10);
    let younger = waiter.wait(Mode::Exclusive, 20);
    holder.command(&["DEL", "deploy"]);
    // A newcomer and a younger waiter cause a notification of the head instead.
    holder.refusal(Mode::Exclusive, Position::None);
    assert_eq!(waiter.notified(), [older.owner]);
    let refused = waiter.acquire(&younger, Position::Ticket(20)).refused();
    assert!(refused.ask_again.is_some());
    assert_eq!(waiter.notified(), [older.owner]);
    waiter.acquire(&older, Position::Ticket(10)).granted();
}

#[test]
fn barging_attempt_goes_ahead_of_the_queue() {
    let server = server();
    let (mut holder, mut waiter) = (TestClient::connect(&server), TestClient::connect(&server));
    let held = holder.hold(Mode::Exclusive);
    let lock_request = waiter.wait(Mode::Exclusive, 10);
    let barging = holder.lock_request(Mode::Exclusive);
    let refused = holder.acquire(&barging, Position::Barging).refused();
    assert_eq!(refused.busy.position, None);
    holder.release(&held);
    holder.acquire(&barging, Position::Barging).granted();
    let position = waiter
        .acquire(&lock_request, Position::Ticket(10))
        .refused()
        .busy
        .position;
    assert_eq!(position, Some(1));
}

#[test]
fn heartbeat_repairs_a_lost_call() {
    let server = server();
    let (mut holder, mut waiter) = (TestClient::connect(&server), TestClient::connect(&server));
    let held = holder.hold(Mode::Exclusive);
    let (first, second) = (
        waiter.wait(Mode::Exclusive, 10),
        holder.wait(Mode::Exclusive, 20),
    );
    let states = waiter.heartbeat(&[&first]);
    assert!(!states[0].turn);
    assert_eq!(states[0].busy.position, Some(1));
    holder.release(&held);
    waiter.notifications();
    assert!(waiter.heartbeat(&[&first])[0].turn);
    let behind = &holder.heartbeat(&[&second])[0];
    assert!(!behind.turn && behind.ask_again.is_some());
    assert_eq!(waiter.notified(), [first.owner]);
    // The reply shows that the entry is gone.
    waiter.command(&["DEL", QUEUE]);
    let gone = &waiter.heartbeat(&[&first])[0];
    assert!(!gone.turn);
    assert_eq!(gone.busy.position, None);
}

#[test]
fn client_that_does_not_listen_learns_so() {
    let server = server();
    let (mut holder, mut deaf) = (TestClient::connect(&server), TestClient::silent(&server));
    holder.hold(Mode::Exclusive);
    deaf.heartbeat(&[]);
    let waiter = deaf.wait(Mode::Exclusive, 10);
    assert!(deaf.heartbeat(&[&waiter])[0].busy.cannot_notify);
    let waiter = holder.wait(Mode::Exclusive, 20);
    assert!(!holder.heartbeat(&[&waiter])[0].busy.cannot_notify);
}

#[test]
fn queue_vanishes_without_heartbeats() {
    let (_server, mut client) = start();
    client.hold(Mode::Exclusive);
    let waiter = client.wait(Mode::Exclusive, 10);
    let left = client.command(&["PTTL", QUEUE]).as_integer().unwrap();
    assert!((5_000..=10_000).contains(&left), "{left}");
    client.command(&["PEXPIRE", QUEUE, "50000"]);
    client.heartbeat(&[&waiter]);
    let left = client.command(&["PTTL", QUEUE]).as_integer().unwrap();
    assert!(left <= 10_000, "{left}");
}
