use std::sync::Arc;
use std::time::Duration;

use leasehold::member::PermitSlot;
use leasehold::store::LockRequest;
use leasehold::{ErrorKind, LostReason};
use leasehold_quorum::{LeaseState, Position};

use crate::fixture::{TestClient, lease, permits, slot, start};

const READERS: &str = "leasehold:readers:{deploy}:deploy";
const SLOTS: &str = "leasehold:slots:{deploy}:deploy";

fn renew(
    client: &mut TestClient,
    lock_request: &Arc<LockRequest>,
    slot: Option<PermitSlot>,
) -> LeaseState {
    client
        .renew_all(vec![lease(lock_request, 1, slot)])
        .remove(0)
}

/// Takes a permit, and returns its number with the request.
fn take(client: &mut TestClient, count: u32) -> (Arc<LockRequest>, u32) {
    let lock_request = client.lock_request(permits(count));
    let (_, slot) = client.acquire(&lock_request, Position::None).granted();
    (lock_request, slot.unwrap().get())
}

#[test]
fn each_holder_has_a_permit_of_its_own() {
    let (_server, mut client) = start();
    for count in [3, 128] {
        let held: Vec<_> = (0..count).map(|_| take(&mut client, count)).collect();
        let mut slots: Vec<_> = held.iter().map(|(_, slot)| *slot).collect();
        slots.sort_unstable();
        assert_eq!(slots, (0..count).collect::<Vec<_>>());
        assert_eq!(client.value(), Some(format!("leasehold:permits:{count}")));
        let refusal = client.refusal(permits(count), Position::None);
        assert!(refusal.busy.remaining.unwrap() > Duration::from_secs(50));
        for (lock_request, _) in &held {
            assert!(client.release(lock_request));
            assert!(!client.release(lock_request));
        }
        assert_eq!(client.value(), None);
        let left = client.command(&["EXISTS", READERS, SLOTS]);
        assert_eq!(left.as_integer(), Some(0));
    }
}

#[test]
fn preferred_permit_is_granted_if_it_is_free() {
    let (_server, mut client) = start();
    for (preferred, granted) in [(2, 2), (2, 0), (1, 1)] {
        let lock_request = client.lock_request(permits(3));
        let answer = client.acquire_preferring(&lock_request, Position::None, slot(preferred));
        assert_eq!(answer.granted().1, slot(granted));
    }
}

#[test]
fn permit_that_is_free_for_longest_comes_first() {
    let (server, mut client) = start();
    let held: Vec<_> = (0..3).map(|_| take(&mut client, 3)).collect();
    client.release(&held[1].0);
    server.clock().forward(Duration::from_millis(5));
    client.release(&held[0].0);
    assert_eq!(take(&mut client, 3).1, held[1].1);
    assert_eq!(take(&mut client, 3).1, held[0].1);
}

#[test]
fn second_waiter_takes_the_second_permit() {
    let (server, mut client) = start();
    let held: Vec<_> = (0..3).map(|_| take(&mut client, 3)).collect();
    let waiting: Vec<_> = (0..2).map(|n| client.wait(permits(3), 10 + n)).collect();
    client.release(&held[2].0);
    server.clock().forward(Duration::from_millis(5));
    client.release(&held[0].0);
    for (waiter, freed) in [(1, 0), (0, 2)] {
        let position = Position::Ticket(10 + waiter as u64);
        let (_, granted) = client.acquire(&waiting[waiter], position).granted();
        assert_eq!(granted, slot(held[freed].1));
    }
}

#[test]
fn differing_permit_count_is_refused_without_position() {
    let (_server, mut client) = start();
    take(&mut client, 3);
    let lock_request = client.lock_request(permits(4));
    let error = client.acquire(&lock_request, Position::Ticket(5)).failed();
    assert_eq!(error.kind(), ErrorKind::PermitsDiffer);
    assert!(error.to_string().contains("3 permits, not 4"), "{error}");
    let queued = client.command(&["EXISTS", "leasehold:queue:{deploy}:deploy"]);
    assert_eq!(queued.as_integer(), Some(0));
}

#[test]
fn waiter_for_differing_permit_count_blocks_none() {
    let (_server, mut client) = start();
    let held = client.hold(leasehold::Mode::Exclusive);
    let three = client.wait(permits(3), 10);
    let four = client.wait(permits(4), 11);
    let other_three = client.wait(permits(3), 12);
    client.release(&held);
    assert_eq!(client.notified(), [three.owner]);
    client.acquire(&three, Position::Ticket(10)).granted();
    // It learns that it can have none, and then the waiter behind it has its turn.
    let heartbeat = client.heartbeat(&[&other_three]);
    assert!(heartbeat[0].turn);
    assert_eq!(client.notified(), [four.owner]);
    let error = client.acquire(&four, Position::Ticket(11)).failed();
    assert_eq!(error.kind(), ErrorKind::PermitsDiffer);
    client.acquire(&other_three, Position::Ticket(12)).granted();
}

#[test]
fn release_notifies_one_waiter_per_free_permit() {
    let (_server, mut client) = start();
    let held: Vec<_> = (0..2).map(|_| take(&mut client, 2)).collect();
    let waiting: Vec<_> = (0..3).map(|n| client.wait(permits(2), 10 + n)).collect();
    client.release(&held[0].0);
    assert_eq!(client.notified(), [waiting[0].owner]);
    client.release(&held[1].0);
    // The lock is free, and both permits are for the two oldest.
    assert_eq!(client.notified(), [waiting[0].owner, waiting[1].owner]);
    assert_eq!(client.value().as_deref(), Some("leasehold:next"));
    client.acquire(&waiting[2], Position::Ticket(12)).refused();
    client.acquire(&waiting[1], Position::Ticket(11)).granted();
    client.acquire(&waiting[2], Position::Ticket(12)).refused();
    client.acquire(&waiting[0], Position::Ticket(10)).granted();
}

#[test]
fn waiter_asks_when_its_permit_ends() {
    let (server, mut client) = start();
    let held: Vec<_> = (0..2).map(|_| take(&mut client, 2)).collect();
    server.clock().forward(Duration::from_secs(10));
    client.heartbeat(&[]);
    renew(&mut client, &held[0].0, slot(held[0].1));
    for (ticket, least, most) in [(10, 40, 50), (11, 50, 60)] {
        let refusal = client.refusal(permits(2), Position::Ticket(ticket));
        let after = refusal.ask_again.unwrap().as_secs();
        assert!((least..=most).contains(&after), "{ticket}: {after}");
    }
    let refusal = client.refusal(permits(2), Position::Ticket(12));
    assert_eq!(refusal.busy.position, Some(3));
}

#[test]
fn permit_passes_to_the_successor_in_one_step() {
    let (_server, mut client) = start();
    let held: Vec<_> = (0..2).map(|_| take(&mut client, 2)).collect();
    let next = client.wait(permits(2), 10);
    let (freed, successor) = client.release_to(&held[1].0, None, Some((&next, 10)));
    assert!(freed);
    assert_eq!(successor.unwrap().1, slot(held[1].1));
    assert_eq!(client.notified(), []);
}

#[test]
fn expired_permit_is_free() {
    let (server, mut client) = start();
    let (old, number) = take(&mut client, 2);
    server.clock().forward(Duration::from_secs(50));
    client.heartbeat(&[]);
    let (_young, _) = take(&mut client, 2);
    server.clock().forward(Duration::from_secs(20));
    client.heartbeat(&[]);
    let lost = renew(&mut client, &old, slot(number));
    assert!(matches!(lost, LeaseState::Lost(LostReason::Taken)));
    assert!(!client.release(&old));
    let (_, again) = take(&mut client, 2);
    assert_eq!(again, number);
    // The entry of the earlier owner is gone.
    let entries = client.command(&["HLEN", SLOTS]);
    assert_eq!(entries.as_integer(), Some(4));
}

#[test]
fn next_owner_of_an_expired_permit_ends_no_lease() {
    let (server, mut client) = start();
    let lock_request = client.lock_request(permits(3));
    let first = client.acquire_preferring(&lock_request, Position::None, slot(0));
    assert_eq!(first.granted().1, slot(0));
    // Its lease ends while another one lasts. The same wait asks again, and gets another permit.
    server.clock().forward(Duration::from_secs(50));
    client.heartbeat(&[]);
    let other = client.lock_request(permits(3));
    client
        .acquire_preferring(&other, Position::None, slot(2))
        .granted();
    server.clock().forward(Duration::from_secs(20));
    client.heartbeat(&[]);
    let again = client.acquire_preferring(&lock_request, Position::None, slot(1));
    assert_eq!(again.granted().1, slot(1));
    let next = client.lock_request(permits(3));
    let granted = client.acquire_preferring(&next, Position::None, slot(0));
    assert_eq!(granted.granted().1, slot(0));
    let renewed = renew(&mut client, &lock_request, slot(1));
    assert!(matches!(renewed, LeaseState::Renewed), "{renewed:?}");
    let entries = client.command(&["HLEN", SLOTS]);
    assert_eq!(entries.as_integer(), Some(6));
    for lock_request in [&lock_request, &next, &other] {
        assert!(client.release(lock_request));
    }
}

#[test]
fn renewal_moves_to_the_named_permit() {
    let (_server, mut client) = start();
    let lock_request = client.lock_request(permits(3));
    let preferred = client.acquire_preferring(&lock_request, Position::None, slot(0));
    assert_eq!(preferred.granted().1, slot(0));
    let other = client.lock_request(permits(3));
    client
        .acquire_preferring(&other, Position::None, slot(1))
        .granted();
    // Another owner has this permit. The lease stays valid, and does not count for the permit.
    let taken = renew(&mut client, &lock_request, slot(1));
    assert!(
        matches!(taken, LeaseState::Lost(LostReason::Taken)),
        "{taken:?}"
    );
    let moved = renew(&mut client, &lock_request, slot(2));
    assert!(matches!(moved, LeaseState::Renewed), "{moved:?}");
    let third = client.lock_request(permits(3));
    let freed = client.acquire_preferring(&third, Position::None, slot(0));
    assert_eq!(freed.granted().1, slot(0));
    assert!(client.release(&lock_request));
    let stays = renew(&mut client, &other, slot(1));
    assert!(matches!(stays, LeaseState::Renewed));
}

#[test]
fn only_holder_can_move() {
    let (_server, mut client) = start();
    let lock_request = client.lock_request(permits(3));
    let first = client.acquire_preferring(&lock_request, Position::None, slot(0));
    assert_eq!(first.granted().1, slot(0));
    let moved = renew(&mut client, &lock_request, slot(2));
    assert!(matches!(moved, LeaseState::Renewed), "{moved:?}");
    // A holder that asks again keeps its permit.
    let again = client.acquire(&lock_request, Position::None).granted();
    assert_eq!(again.1, slot(2));
    let free = client.command(&["ZCOUNT", READERS, "0", "0"]);
    assert_eq!(free.as_integer(), Some(2));
}

#[test]
fn lost_records_of_permits_free_none() {
    let (_server, mut client) = start();
    take(&mut client, 2);
    client.command(&["DEL", READERS, SLOTS]);
    client.refusal(permits(2), Position::None);
}
