//! Broken leases, records, the member record, and forgotten locks.

use std::sync::Arc;
use std::time::Duration;

use leasehold::store::{
    Claim, DataGeneration, MemberId, MemberRecord, MemberRecordEdit, MemberSet, MemberStatus,
};
use leasehold::{Fence, LostReason, Mode};
use leasehold_quorum::{Lease, LeaseState, Place, Reply, Request};
use leasehold_redis::codec::{Names, PRESENT, SAMPLE_COMMANDS, encode_sample};
use leasehold_redis::resp::Value;
use leasehold_redis::scripts::SCRIPTS;

use crate::fixture::{TestClient, server};

/// Calls a script by name.
fn run(client: &mut TestClient, name: &str, keys: &[&str], arguments: &[&str]) -> Value {
    let script = SCRIPTS.iter().find(|script| script.name == name).unwrap();
    let count = keys.len().to_string();
    let mut words = vec!["EVAL", script.text, &count];
    words.extend(keys);
    words.extend(arguments);
    client.command(&words)
}

fn run_on_lock(client: &mut TestClient, name: &str, arguments: &[&str]) -> Value {
    let key = leasehold::Key::new("deploy").unwrap();
    let names = Names::new("", &key);
    let records = ["fence:0", "queue", "readers", "slots", "broken"].map(|kind| names.record(kind));
    let mut keys = vec![PRESENT, names.lock()];
    keys.extend(records.iter().map(String::as_str));
    if name != "break" {
        keys.pop();
    }
    run(client, name, &keys, arguments)
}

fn break_lease(client: &mut TestClient, claim: &Arc<Claim>, at_once: &str) -> (i64, i64) {
    let owner = claim.owner.to_string();
    let arguments = [&*owner, "77", at_once, "60000", "owner", &owner];
    let answer = run_on_lock(client, "break", &arguments);
    let parts: Vec<_> = answer.as_array().unwrap().iter().collect();
    (
        parts[0].as_integer().unwrap(),
        parts[1].as_integer().unwrap(),
    )
}

fn renew(client: &mut TestClient, claim: &Arc<Claim>) -> LeaseState {
    match client.ask(&Request::Renew(vec![lease(claim)])) {
        Reply::Renewed(mut states) => states.remove(0),
        other => panic!("a renewal is answered {other:?}"),
    }
}

fn lease(claim: &Arc<Claim>) -> Lease {
    Lease {
        claim: claim.clone(),
        fence: Fence::new(77).unwrap(),
        slot: None,
    }
}

fn is_repaired(client: &mut TestClient, claim: &Arc<Claim>) -> bool {
    match client.ask(&Request::Repair(vec![lease(claim)])) {
        Reply::Repaired(restored) => restored[0],
        other => panic!("a repair is answered {other:?}"),
    }
}

#[test]
fn broken_lock_stays_shut_until_the_lease_ends() {
    let server = server();
    let mut client = TestClient::connect(&server);
    let held = client.hold(Mode::Exclusive);
    let waiter = client.wait(Mode::Exclusive, 10);
    let (stood, left) = break_lease(&mut client, &held, "");
    assert_eq!(stood, 1);
    assert!(left > 50_000);
    let tombstone = format!("leasehold:broken:{}", held.owner);
    assert_eq!(client.value(), Some(tombstone));
    assert!(matches!(
        renew(&mut client, &held),
        LeaseState::Lost(LostReason::Broken)
    ));
    let refused = client.acquire(&waiter, Place::Ticket(10)).refused();
    assert_eq!(refused.busy.holder, None);
    assert!(refused.ask_again.unwrap() > Duration::from_secs(50));
    client.release(&held);
    assert!(client.value().is_some());
    let record = client.command(&["HGET", "leasehold:broken:{deploy}:deploy", "owner"]);
    assert_eq!(record.as_text(), Some(&*held.owner.to_string()));
    // A second call opens the lock after all.
    assert_eq!(break_lease(&mut client, &held, "1").0, 1);
    assert_eq!(client.notified(), [waiter.owner]);
}

#[test]
fn broken_lock_is_handed_over_at_once() {
    let server = server();
    let mut client = TestClient::connect(&server);
    let held = client.hold(Mode::Exclusive);
    let waiter = client.wait(Mode::Exclusive, 10);
    assert_eq!(break_lease(&mut client, &held, "1"), (1, -1));
    assert_eq!(client.notified(), [waiter.owner]);
    assert_eq!(client.value().as_deref(), Some("leasehold:next"));
    assert_eq!(break_lease(&mut client, &held, "1"), (0, -1));
    client.acquire(&waiter, Place::Ticket(10)).granted();
    client.release(&waiter);
    // The lease is neither renewed nor restored, although the lock is free.
    assert!(matches!(
        renew(&mut client, &held),
        LeaseState::Lost(LostReason::Broken)
    ));
    assert!(!is_repaired(&mut client, &held));
}

#[test]
fn sixteen_broken_owners_are_remembered() {
    let server = server();
    let mut client = TestClient::connect(&server);
    let claims: Vec<_> = (0..18).map(|_| client.claim(Mode::Exclusive)).collect();
    for (number, claim) in claims.iter().enumerate() {
        let fence = (100 + number).to_string();
        let owner = claim.owner.to_string();
        run_on_lock(
            &mut client,
            "break",
            &[&owner, &fence, "", "1000", "a", "b"],
        );
    }
    let counted = ["ZCOUNT", "leasehold:fence:0:{deploy}:deploy", "-inf", "-1"];
    assert_eq!(client.command(&counted).as_integer(), Some(16));
    assert!(
        is_repaired(&mut client, &claims[0]),
        "the oldest is forgotten"
    );
    client.release(&claims[0]);
    assert!(!is_repaired(&mut client, &claims[17]));
}

#[test]
fn note_of_a_broken_lease_stays() {
    let server = server();
    let mut client = TestClient::connect(&server);
    let held = client.hold(Mode::Exclusive);
    break_lease(&mut client, &held, "1");
    // A late request of the same wait takes the lock, and its lease is not renewed.
    let (fence, _) = client.acquire(&held, Place::None).granted();
    assert!(fence > held.owner.since().as_micros() + 1);
    assert!(matches!(
        renew(&mut client, &held),
        LeaseState::Lost(LostReason::Broken)
    ));
}

#[test]
fn unused_lock_is_forgotten() {
    let server = server();
    let mut client = TestClient::connect(&server);
    let held = client.hold(Mode::Exclusive);
    assert_eq!(
        run_on_lock(&mut client, "forget", &[]).as_integer(),
        Some(0)
    );
    client.release(&held);
    let fence = "leasehold:fence:0:{deploy}:deploy";
    client.command(&["ZADD", fence, "9000000000000", "gap"]);
    let forgotten = run_on_lock(&mut client, "forget", &[]);
    assert_eq!(forgotten.as_integer(), Some(0), "in a gap");
    client.command(&["ZREM", fence, "gap"]);
    assert_eq!(
        run_on_lock(&mut client, "forget", &[]).as_integer(),
        Some(1)
    );
    let keys = client.command(&["KEYS", "*deploy*"]);
    assert_eq!(keys, Value::Array(Vec::new()));
}

#[test]
fn records_are_ordered_by_fence_and_step() {
    let server = server();
    let mut client = TestClient::connect(&server);
    let keys = ["record", "stamp"];
    let text = |text: &str| Value::Bytes(text.as_bytes().to_vec());
    let opened = run(&mut client, "record_open", &keys, &["5"]);
    assert_eq!(opened, Value::Array(Vec::new()));
    assert_eq!(run(&mut client, "record_open", &keys, &["4"]), text("5.0"));
    let write = ["5", "1", "value", "60000"];
    assert_eq!(
        run(&mut client, "record_write", &keys, &write),
        Value::Integer(1)
    );
    let late = ["4", "9", "late", "60000"];
    assert_eq!(run(&mut client, "record_write", &keys, &late), text("5.1"));
    let read = run(&mut client, "record_read", &keys[..1], &[]);
    let parts = read.as_array().unwrap();
    assert_eq!(parts[..2], [text("5.1"), text("value")]);
    let opened = run(&mut client, "record_open", &keys, &["7"]);
    assert_eq!(opened.as_array().unwrap()[1], text("value"));
    assert_eq!(run(&mut client, "record_write", &keys, &write), text("7.0"));
}

fn status(client: &mut TestClient) -> MemberStatus {
    match client.ask(&Request::Status) {
        Reply::Status(status) => *status,
        other => panic!("a status is answered {other:?}"),
    }
}

#[test]
fn member_record_is_written_and_shown() {
    let server = server();
    let mut client = TestClient::connect(&server);
    let first = status(&mut client);
    assert!(!first.durable && first.unfit.is_none());
    assert_eq!(first.member_record, None);
    let ids = ["a", "b"].map(MemberId::new);
    let data_generation = DataGeneration::parse("0123456789abcdef").unwrap();
    let mut edit = MemberRecordEdit {
        expected: None,
        set: MemberSet::new(ids, Duration::from_secs(60), Duration::from_millis(250)),
        generation: 3,
        run: first.run.clone(),
        durable: true,
        data_generation,
        age: Some(Duration::from_secs(9)),
        seen: vec![(MemberId::new("b"), data_generation)],
    };
    let write = |client: &mut TestClient, edit: &MemberRecordEdit| {
        let request = Request::WriteMemberRecord(Box::new(edit.clone()));
        matches!(client.ask(&request), Reply::Recorded(true))
    };
    assert!(write(&mut client, &edit));
    assert!(!write(&mut client, &edit), "there is a record now");
    let member_record: MemberRecord = status(&mut client).member_record.unwrap();
    assert_eq!(
        (
            member_record.generation,
            member_record.data_generation,
            member_record.durable
        ),
        (3, data_generation, true)
    );
    assert_eq!(member_record.observations.len(), 1);
    edit.expected = Some(member_record.epoch());
    edit.durable = false;
    assert!(write(&mut client, &edit));
    let other = DataGeneration::parse("fedcba9876543210").unwrap();
    let observed = client.ask(&Request::RecordObservation(vec![(
        MemberId::new("b"),
        other,
    )]));
    assert!(matches!(observed, Reply::Recorded(true)));
    let member_record = status(&mut client).member_record.unwrap();
    assert!(!member_record.durable);
    let seen = member_record.observations[&MemberId::new("b")];
    assert_eq!((seen.data_generation, seen.changed), (other, true));
    let mut sampled = Vec::new();
    encode_sample(&mut sampled);
    let commands = String::from_utf8(sampled).unwrap().matches('*').count();
    assert_eq!(commands, SAMPLE_COMMANDS);
}
