//! The same rules, seen through the whole engine.

use leasehold_types::{Mode, Permits, ReleaseReply, RenewReply};

use super::fixture::{Fixture, TTL, lock_request};
use super::*;
use crate::{Operation, Outcome, ReleaseMode};

#[test]
fn lease_is_repaired_once_member_votes_again() {
    let mut fixture = Fixture::new(3);
    let held = fixture.acquire().unwrap();
    fixture.restart_empty(0);
    assert!(matches!(fixture.renew(&held), RenewReply::Renewed(_)));
    assert!(!fixture.holds(0, &held), "it would not count there");
    for _ in 0..20 {
        fixture.pass(TTL / 3);
        assert!(matches!(fixture.renew(&held), RenewReply::Renewed(_)));
    }
    assert!(fixture.holds(0, &held));
    fixture.disconnect(1);
    assert!(matches!(fixture.renew(&held), RenewReply::Renewed(_)));
}

#[test]
fn restarted_member_makes_no_second_holder() {
    let mut fixture = Fixture::new(3);
    fixture.disconnect(2);
    let held = fixture.acquire().unwrap();
    fixture.connect(2);
    fixture.restart_empty(1);
    let attempt = Operation::Acquire(Arc::new(lock_request()));
    let outcome = fixture.run(attempt, TTL);
    assert!(matches!(outcome, Some(Outcome::Busy(_))), "{outcome:?}");
    fixture.pass(SECOND);
    assert!(fixture.holders[1].is_empty() && fixture.holders[2].is_empty());
    fixture.disconnect(2);
    let error = fixture.acquire().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NoQuorum);
    let text = error.to_string();
    let reason = "m1: it restarted, lost data, or is new (no vote for 1m)";
    assert!(text.contains(reason), "{text}");
    fixture.release(&held);
    fixture.connect(2);
    fixture.acquire().unwrap();
}

#[test]
fn confirmation_from_other_data_does_not_count() {
    let mut fixture = Fixture::new(3);
    let lock_request = Arc::new(lock_request());
    // The other members have to confirm the fence of this one.
    fixture.counters[0] = lock_request.owner.since().as_micros() + 10;
    fixture.disconnect(2);
    fixture.forgets_grant = Some(1);
    let outcome = fixture.run(Operation::Acquire(lock_request), TTL);
    let Some(Outcome::Failed(error)) = outcome else {
        panic!("{outcome:?}");
    };
    assert_eq!(error.kind(), ErrorKind::NoQuorum);
}

/// The other members change their epochs together.
#[test]
fn attempt_and_release_outlast_an_admission() {
    let mut fixture = Fixture::new(3);
    fixture.quorum.admit_another(2);
    let held = fixture.acquire().unwrap();
    fixture.quorum.admit_another(2);
    let release = Operation::Release(Arc::clone(&held.request), ReleaseMode::HandOver);
    let outcome = fixture.run(release, TTL);
    let released = matches!(outcome, Some(Outcome::Released(ReleaseReply::Released)));
    assert!(released, "{outcome:?}");
}

#[test]
fn silent_member_gets_only_a_status_request() {
    let mut fixture = Fixture::new(3);
    let held = fixture.acquire().unwrap();
    fixture.deaf.insert(2);
    assert!(matches!(fixture.renew(&held), RenewReply::Renewed(_)));
    fixture.pass(TTL / 3);
    fixture.got[2].clear();
    assert!(matches!(fixture.renew(&held), RenewReply::Renewed(_)));
    assert_eq!(fixture.got[2], [""; 0]);
    assert!(
        fixture
            .events
            .iter()
            .any(|it| it.starts_with("Fails { member: MemberIndex(2)"))
    );
    fixture.deaf.clear();
    fixture.disconnect(2);
    fixture.connect(2);
    assert_eq!(fixture.got[2], ["status"]);
    fixture.renew(&held);
    assert_eq!(fixture.got[2], ["status", "renew"]);
}

#[test]
fn release_is_repeated_after_a_lost_repair() {
    let mut fixture = Fixture::new(3);
    let held = fixture.acquire().unwrap();
    fixture.holders[0].clear();
    // The reply to the repair is lost with the connection.
    fixture.lost = Some((0, "repair"));
    assert!(matches!(fixture.renew(&held), RenewReply::Renewed(_)));
    assert!(fixture.holds(0, &held));
    fixture.disconnect(0);
    fixture.lost = None;
    fixture.release(&held);
    fixture.connect(0);
    // The repair takes effect late, after the release.
    fixture.holders[0].insert(held.request.owner, held.fence.get());
    fixture.pass(TTL);
    assert!(!fixture.holds(0, &held));
}

#[test]
fn client_of_another_quorum_sends_no_lock_request() {
    let (quorum, _) = TestQuorum::new(5);
    for (members, enforced) in [(3, true), (1, false)] {
        let quorum = TestQuorum {
            servers: quorum.servers.clone(),
            ..quorum
        };
        let mut fixture = Fixture::of(quorum, members, enforced);
        let error = fixture.acquire().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Misconfigured);
        let text = error.to_string();
        let reason =
            ": belongs to another quorum (generation 1): it has m0,m1,m2,m3,m4, this client m0";
        assert!(text.contains(reason), "{text}");
        assert!(!fixture.got[0].contains(&"acquire"), "{:?}", fixture.got[0]);
    }
}

#[test]
fn initialization_error_names_the_silent_member() {
    let mut quorum = TestQuorum::bare(3);
    quorum.servers.iter_mut().for_each(|it| it.is_new = true);
    let mut fixture = Fixture::unconnected(quorum, 3, true);
    fixture.connect(0);
    fixture.connect(1);
    fixture.disconnect(2);
    let error = fixture.acquire().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NoQuorum);
    let text = error.to_string();
    let reason = "m0, m1: the quorum is not initialized, because m2 did not answer";
    assert!(text.contains(reason), "{text}");
    fixture.connect(2);
    fixture.acquire().unwrap();
}

#[test]
fn attempt_waits_for_the_first_status() {
    let mut fixture = Fixture::unconnected(TestQuorum::new(3).0, 3, true);
    let id = fixture.start(Operation::Acquire(Arc::new(lock_request())));
    (0..3).for_each(|member| fixture.connect(member));
    assert!(matches!(fixture.outcomes[&id], Outcome::Acquired(_)));
}

#[test]
fn unanswered_first_connection_is_named() {
    let mut fixture = Fixture::unconnected(TestQuorum::new(3).0, 3, true);
    fixture.connect(0);
    let error = fixture.acquire().unwrap_err();
    let text = error.to_string();
    assert!(
        text.ends_with("m1, m2: not connected after 1s 500ms"),
        "{text}"
    );
}

#[test]
fn waiter_without_votes_asks_for_no_lock() {
    let mut fixture = Fixture::new(3);
    fixture.restart_empty(0);
    fixture.restart_empty(1);
    fixture.pass(SECOND);
    (0..3).for_each(|member| fixture.got[member].clear());
    let waiter = lock_request();
    let lock_request = Arc::new(waiter.waiting(true));
    let id = fixture.start(Operation::Acquire(lock_request));
    let reason = "m0, m1: it restarted, lost data, or is new (no vote for 1m)";
    let told = fixture.progress.last().expect("an answer at once");
    assert!(told.contains(reason), "{told}");
    fixture.pass(WAIT / 2);
    let told = fixture.progress.iter();
    assert!(
        told.clone().all(|told| told.contains("no vote for")),
        "{told:?}"
    );
    for got in &fixture.got[..3] {
        assert!(!got.contains(&"acquire"), "{got:?}");
        let looks = got.iter().filter(|name| **name == "status").count();
        assert!(looks < 70, "{looks}");
    }
    fixture.pass(WAIT / 2);
    assert!(matches!(fixture.outcomes[&id], Outcome::Acquired(_)));
}

/// One member is silent, and the clock of another one drifts out of the tolerance: with two clocks, each answer to an
/// earlier request loses its vote, and each new request could have one.
#[test]
fn waiter_pauses_while_grants_do_not_count() {
    let mut fixture = Fixture::new(3);
    let other = lock_request().owner;
    for holders in &mut fixture.holders {
        holders.insert(other, 1);
    }
    let waiter = lock_request().waiting(true);
    let id = fixture.start(Operation::Acquire(Arc::new(waiter)));
    fixture.deaf.insert(2);
    for _ in 0..80 {
        fixture.quorum.servers[1].ahead += Duration::from_millis(4);
        fixture.pass(SECOND);
    }
    for member in 0..2 {
        fixture.holders[member].clear();
        fixture.got[member].clear();
    }
    fixture.pass(2 * SECOND);
    assert!(!fixture.outcomes.contains_key(&id));
    let asked = fixture.got[0].iter().filter(|name| **name == "acquire");
    let rounds = asked.count();
    assert!((1..40).contains(&rounds), "{rounds} rounds");
}

#[test]
fn missing_votes_are_reported_once() {
    let mut witness = Fixture::new(3);
    witness.restart_empty(0);
    witness.restart_empty(1);
    witness.pass(SECOND);
    // Another client learns from the members when that was, each time to within a round trip.
    let mut fixture = Fixture::of(witness.quorum, 3, true);
    fixture.start(Operation::Acquire(Arc::new(lock_request().waiting(true))));
    for millis in 1..20 {
        fixture.round_trip = Duration::from_millis(millis);
        fixture.pass(SECOND);
    }
    assert_eq!(missing_votes(&fixture), 2);
    fixture.restart_empty(1);
    fixture.pass(SECOND);
    assert!(missing_votes(&fixture) > 2, "a later loss is news");
}

fn missing_votes(fixture: &Fixture) -> usize {
    let events = fixture.events.iter();
    events.filter(|event| event.starts_with("NoVote")).count()
}

/// One member has no vote, and another one grants another permit.
#[test]
fn waiter_pauses_while_permits_are_no_majority() {
    let mut fixture = Fixture::new(3);
    fixture.restart_empty(1);
    let permits = Permits::new(2).unwrap();
    fixture.slots = permits.slots().collect();
    fixture.slots.insert(0, fixture.slots[0]);
    let waiter = lock_request()
        .with_mode(Mode::Permit(permits))
        .waiting(true);
    let id = fixture.start(Operation::Acquire(Arc::new(waiter)));
    fixture.pass(SECOND);
    assert!(!fixture.outcomes.contains_key(&id));
    let asked = fixture.got[0].iter().filter(|name| **name == "acquire");
    let rounds = asked.count();
    assert!((2..20).contains(&rounds), "{rounds} rounds");
}
