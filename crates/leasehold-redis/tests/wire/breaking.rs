//! Leases that an operator breaks.

use std::sync::Arc;
use std::time::Duration;

use leasehold::store::LockRequest;
use leasehold::{LostReason, Mode};
use leasehold_quorum::{LeaseState, Position};
use leasehold_redis::codec::{Names, PRESENT};
use leasehold_redis::resp::Value;
use leasehold_redis::scripts::SCRIPTS;

use crate::fixture::{TestClient, start};

/// Calls the script that breaks a lease.
fn run(client: &mut TestClient, arguments: &[&str]) -> Value {
    let script = SCRIPTS.iter().find(|script| script.name == "break");
    let key = leasehold::Key::new("deploy").unwrap();
    let names = Names::new("", &key);
    let records = ["fence:0", "queue", "readers", "slots", "broken"].map(|kind| names.record(kind));
    let mut words = vec!["EVAL", script.unwrap().text, "7", PRESENT, names.lock()];
    words.extend(records.iter().map(String::as_str));
    words.extend(arguments);
    client.command(&words)
}

pub(crate) fn break_lease(
    client: &mut TestClient,
    lock_request: &Arc<LockRequest>,
    at_once: &str,
) -> (i64, i64) {
    let owner = lock_request.owner.to_string();
    let arguments = [&*owner, "77", at_once, "60000", "owner", &owner];
    let answer = run(client, &arguments);
    let parts: Vec<_> = answer.as_array().unwrap().iter().collect();
    (
        parts[0].as_integer().unwrap(),
        parts[1].as_integer().unwrap(),
    )
}

#[test]
fn broken_lock_stays_closed_until_the_lease_ends() {
    let (_server, mut client) = start();
    let held = client.hold(Mode::Exclusive);
    let waiter = client.wait(Mode::Exclusive, 10);
    let (existed, left) = break_lease(&mut client, &held, "");
    assert_eq!(existed, 1);
    assert!(left > 50_000);
    let tombstone = format!("leasehold:broken:{}", held.owner);
    assert_eq!(client.value(), Some(tombstone));
    assert!(matches!(
        client.renew(&held),
        LeaseState::Lost(LostReason::Broken)
    ));
    let refused = client.acquire(&waiter, Position::Ticket(10)).refused();
    assert_eq!(refused.busy.holder, None);
    assert!(refused.ask_again.unwrap() > Duration::from_secs(50));
    let record = client.command(&["HGET", "leasehold:broken:{deploy}:deploy", "owner"]);
    assert_eq!(record.as_text(), Some(&*held.owner.to_string()));
    // A second call opens the lock after all.
    assert_eq!(break_lease(&mut client, &held, "1").0, 1);
    assert_eq!(client.notified(), [waiter.owner]);
}

#[test]
fn release_of_a_broken_lease_hands_the_lock_over() {
    let (_server, mut client) = start();
    let held = client.hold(Mode::Exclusive);
    let waiter = client.wait(Mode::Exclusive, 10);
    break_lease(&mut client, &held, "");
    assert!(!client.release_to(&held, None, None).0, "it was not valid");
    assert_eq!(client.notified(), [waiter.owner]);
    client.acquire(&waiter, Position::Ticket(10)).granted();
    // A late copy of that release frees nothing of the next holder.
    client.release(&held);
    assert_eq!(client.value(), Some(waiter.owner.to_string()));
}

#[test]
fn broken_lock_is_handed_over_at_once() {
    let (_server, mut client) = start();
    let held = client.hold(Mode::Exclusive);
    let waiter = client.wait(Mode::Exclusive, 10);
    assert_eq!(break_lease(&mut client, &held, "1"), (1, -1));
    assert_eq!(client.notified(), [waiter.owner]);
    assert_eq!(client.value().as_deref(), Some("leasehold:next"));
    assert_eq!(break_lease(&mut client, &held, "1"), (0, -1));
    client.acquire(&waiter, Position::Ticket(10)).granted();
    client.release(&waiter);
    // The lease is neither renewed nor restored, although the lock is free.
    assert!(matches!(
        client.renew(&held),
        LeaseState::Lost(LostReason::Broken)
    ));
    assert!(!client.repair(&held, 77));
}

#[test]
fn sixteen_broken_owners_are_remembered() {
    let (_server, mut client) = start();
    let lock_requests: Vec<_> = (0..18)
        .map(|_| client.lock_request(Mode::Exclusive))
        .collect();
    for (number, lock_request) in lock_requests.iter().enumerate() {
        let fence = (100 + number).to_string();
        let owner = lock_request.owner.to_string();
        run(&mut client, &[&owner, &fence, "", "1000", "a", "b"]);
    }
    let counted = ["ZCOUNT", "leasehold:fence:0:{deploy}:deploy", "-inf", "-1"];
    assert_eq!(client.command(&counted).as_integer(), Some(16));
    assert!(
        client.repair(&lock_requests[0], 77),
        "the oldest is forgotten"
    );
    client.release(&lock_requests[0]);
    assert!(!client.repair(&lock_requests[17], 77));
}

#[test]
fn note_of_a_broken_lease_stays() {
    let (_server, mut client) = start();
    let held = client.hold(Mode::Exclusive);
    break_lease(&mut client, &held, "1");
    // A late request of the same wait takes the lock, and its lease is not renewed.
    let (fence, _) = client.acquire(&held, Position::None).granted();
    assert!(fence > held.owner.since().as_micros() + 1);
    assert!(matches!(
        client.renew(&held),
        LeaseState::Lost(LostReason::Broken)
    ));
}
