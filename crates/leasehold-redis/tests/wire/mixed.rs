//! Requests of all modes in one queue.

use leasehold::Mode;
use leasehold_quorum::Position;

use crate::fixture::{TestClient, permits, server, start};

#[test]
fn modes_exclude_each_other() {
    let modes = [Mode::Exclusive, Mode::Shared, permits(2)];
    for held in modes {
        let (_server, mut client) = start();
        let holder = client.hold(held);
        for other in modes.into_iter().filter(|other| *other != held) {
            let lock_request = client.lock_request(other);
            let refused = client.acquire(&lock_request, Position::Ticket(1)).refused();
            assert_eq!(refused.busy.position, Some(1), "{held} {other}");
            client.release(&lock_request);
        }
        assert!(client.release(&holder));
        assert_eq!(client.value(), None, "{held}");
    }
}

#[test]
fn each_mode_has_its_turn_in_order() {
    let (_server, mut client) = start();
    let held = client.hold(Mode::Exclusive);
    let reader = client.wait(Mode::Shared, 10);
    let holders: Vec<_> = (11..13)
        .map(|ticket| client.wait(permits(2), ticket))
        .collect();
    let writer = client.wait(Mode::Exclusive, 13);
    let last = client.wait(permits(2), 14);
    client.release(&held);
    assert_eq!(client.notified(), [reader.owner]);
    client.acquire(&reader, Position::Ticket(10)).granted();
    client.acquire(&holders[0], Position::Ticket(11)).refused();
    client.release(&reader);
    assert_eq!(client.notified(), [holders[0].owner, holders[1].owner]);
    client.acquire(&holders[0], Position::Ticket(11)).granted();
    // One permit is free, and the second waiter takes it. No request passes the writer.
    client.acquire(&last, Position::Ticket(14)).refused();
    client.acquire(&holders[1], Position::Ticket(12)).granted();
    client.release(&holders[0]);
    client.acquire(&last, Position::Ticket(14)).refused();
    client.notifications();
    client.release(&holders[1]);
    assert_eq!(client.notified(), [writer.owner]);
    client.acquire(&writer, Position::Ticket(13)).granted();
    client.release(&writer);
    assert_eq!(client.notified(), [last.owner]);
}

#[test]
fn writer_that_leaves_lets_permits_be_taken() {
    let (_server, mut client) = start();
    client.hold(permits(2));
    let writer = client.wait(Mode::Exclusive, 10);
    let waiting = client.wait(permits(2), 11);
    assert_eq!(client.notified(), []);
    client.release(&writer);
    assert_eq!(client.notified(), [waiting.owner]);
    client.acquire(&waiting, Position::Ticket(11)).granted();
}

#[test]
fn successor_of_another_mode_does_not_hide_waiters() {
    let (_server, mut client) = start();
    let readers = [(); 2].map(|()| client.hold(Mode::Shared));
    let writer = client.wait(Mode::Exclusive, 10);
    let waiting = client.wait(Mode::Shared, 11);
    let own = client.wait(Mode::Exclusive, 12);
    // The writer gives up. The release names the client's other writer, which cannot enter yet.
    let (freed, successor) = client.release_to(&writer, None, Some((&own, 12)));
    assert!(!freed);
    assert_eq!(successor, None);
    assert_eq!(client.notified(), [waiting.owner]);
    for reader in &readers {
        client.release(reader);
    }
}

#[test]
fn dead_head_of_another_mode_does_not_decide() {
    let server = server();
    let (mut client, mut dead) = (TestClient::connect(&server), TestClient::silent(&server));
    let held = client.hold(Mode::Exclusive);
    dead.wait(Mode::Shared, 1);
    let writer = client.wait(Mode::Exclusive, 2);
    client.wait(Mode::Shared, 3);
    client.release(&held);
    assert_eq!(client.notified(), [writer.owner]);
}
