use std::sync::Arc;
use std::time::Duration;

use leasehold::Mode;
use leasehold::member::FenceConfirmation;
use leasehold_quorum::{LeaseState, Position};
use leasehold_redis::resp::Value;

use crate::fixture::{TestClient, server, start};
use crate::foreign::hands_over_with_gap;

const READERS: &str = "leasehold:readers:{deploy}:deploy";

#[test]
fn readers_share_and_keep_writers_out() {
    let (_server, mut client) = start();
    let (first, second) = (client.hold(Mode::Shared), client.hold(Mode::Shared));
    assert_eq!(client.value().as_deref(), Some("leasehold:shared"));
    let writer = client.lock_request(Mode::Exclusive);
    client.acquire(&writer, Position::None).refused();
    assert!(client.release(&first));
    assert!(!client.release(&first));
    assert_eq!(client.value().as_deref(), Some("leasehold:shared"));
    assert!(client.release(&second));
    assert_eq!(client.value(), None);
    assert_eq!(client.command(&["EXISTS", READERS]).as_integer(), Some(0));
    client.acquire(&writer, Position::None).granted();
}

#[test]
fn dead_writer_does_not_keep_readers_out() {
    let server = server();
    let (mut client, mut dead) = (TestClient::connect(&server), TestClient::silent(&server));
    client.hold(Mode::Shared);
    dead.wait(Mode::Exclusive, 10);
    let reader = client.lock_request(Mode::Shared);
    client.acquire(&reader, Position::Ticket(20)).granted();
}

fn calls_adjacent_readers_together(client: &mut TestClient) {
    let held = client.hold(Mode::Exclusive);
    let readers = [10, 11].map(|ticket| client.wait(Mode::Shared, ticket));
    client.wait(Mode::Exclusive, 12);
    let last = client.wait(Mode::Shared, 13);
    client.release(&held);
    assert_eq!(client.notified(), [readers[0].owner, readers[1].owner]);
    // Either comes first.
    client.acquire(&readers[1], Position::Ticket(11)).granted();
    client.acquire(&readers[0], Position::Ticket(10)).granted();
    client.acquire(&last, Position::Ticket(13)).refused();
}

#[test]
fn first_release_calls_adjacent_readers_together() {
    let (_server, mut client) = start();
    calls_adjacent_readers_together(&mut client);
}

#[test]
fn usual_release_calls_adjacent_readers_together() {
    let (_server, mut client) = start();
    assert!(!hands_over_with_gap(&mut client));
    calls_adjacent_readers_together(&mut client);
}

#[test]
fn first_reader_after_an_expiry_calls_the_others() {
    let (_server, mut client) = start();
    client.hold(Mode::Exclusive);
    let readers = [10, 11].map(|ticket| client.wait(Mode::Shared, ticket));
    client.command(&["DEL", "deploy"]);
    client.acquire(&readers[0], Position::Ticket(10)).granted();
    assert_eq!(client.notified(), [readers[1].owner]);
}

#[test]
fn successor_that_reads_calls_adjacent_readers() {
    let (_server, mut client) = start();
    let held = client.hold(Mode::Exclusive);
    let readers = [10, 11].map(|ticket| client.wait(Mode::Shared, ticket));
    let (_, successor) = client.release_to(&held, None, Some((&readers[0], 10)));
    assert!(successor.is_some());
    assert_eq!(client.notified(), [readers[1].owner]);
}

#[test]
fn lock_stays_shared_until_the_longest_lease_ends() {
    let (_server, mut client) = start();
    let (short, long) = (client.hold(Mode::Shared), client.hold(Mode::Shared));
    client.command(&["ZADD", READERS, "1", &short.owner.to_string()]);
    let left = client.command(&["PTTL", "deploy"]).as_integer().unwrap();
    assert!(left > 50_000);
    // The lease that ended does not count, so the lock is free after the other one.
    assert!(client.release(&long));
    assert_eq!(client.value(), None);
    assert!(!client.release(&short));
}

#[test]
fn readers_lease_ends_no_millisecond_early() {
    let (_server, mut client) = start();
    let micros = |time: &Value| {
        let parts = time.as_array().unwrap();
        parts[0].as_number().unwrap() * 1_000_000.0 + parts[1].as_number().unwrap()
    };
    // In most rounds all three see the same millisecond.
    for _ in 0..20 {
        let before = client.command(&["TIME"]);
        let held = client.hold(Mode::Shared);
        let after = client.command(&["TIME"]);
        let ends = client.command(&["ZSCORE", READERS, &held.owner.to_string()]);
        let ends = ends.as_number().unwrap() * 1000.0;
        assert!(ends >= micros(&before) + 60_000_000.0);
        assert!(ends <= micros(&after) + 60_001_000.0);
    }
}

#[test]
fn expired_readers_do_not_come_back() {
    let (_server, mut client) = start();
    let old = client.hold(Mode::Shared);
    client.command(&["DEL", "deploy"]);
    client.hold(Mode::Shared);
    assert!(!client.release(&old));
    let owners = client.command(&["ZCARD", READERS]);
    assert_eq!(owners.as_integer(), Some(1));
}

#[test]
fn exclusive_lease_becomes_shared_by_renewal() {
    let (_server, mut client) = start();
    let held = client.hold(Mode::Exclusive);
    let reader = client.wait(Mode::Shared, 10);
    client.wait(Mode::Exclusive, 20);
    let shared = Arc::new((*held).clone().with_mode(Mode::Shared));
    for _ in 0..2 {
        assert!(matches!(client.renew(&shared), LeaseState::Renewed));
        assert_eq!(client.value().as_deref(), Some("leasehold:shared"));
    }
    assert_eq!(client.notified(), [reader.owner]);
    client.acquire(&reader, Position::Ticket(10)).granted();
    assert!(client.release(&shared));
    assert!(client.release(&reader));
}

#[test]
fn one_reader_alone_confirms_a_fence() {
    let (_server, mut client) = start();
    let (first, second) = (client.hold(Mode::Shared), client.hold(Mode::Shared));
    let fence = 6_000_000_000_000_000;
    assert_eq!(client.confirm(&first, fence), FenceConfirmation::Confirmed);
    let taken = FenceConfirmation::Conflict(leasehold::Fence::new(fence).unwrap());
    assert_eq!(client.confirm(&second, fence), taken);
}

#[test]
fn reader_behind_a_writer_waits_without_a_call() {
    let (_server, mut client) = start();
    client.hold(Mode::Shared);
    let writer = client.wait(Mode::Exclusive, 10);
    let reader = client.wait(Mode::Shared, 20);
    let states = client.heartbeat(&[&writer, &reader]);
    assert_eq!(
        states.iter().map(|state| state.turn).collect::<Vec<_>>(),
        [false, false]
    );
    assert_eq!(states[1].ask_again, None);
    assert_eq!(client.notified(), []);
    assert!(states[0].ask_again.unwrap() > Duration::from_secs(50));
}
