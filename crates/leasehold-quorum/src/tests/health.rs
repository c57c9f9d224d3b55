//! Health checks that ask all members.

use leasehold_types::MemberHealth;

use super::*;

fn begin(fixture: &mut Fixture) -> OperationId {
    fixture.start(Operation::Health)
}

fn health(fixture: &mut Fixture, id: OperationId) -> Option<Vec<MemberHealth>> {
    match fixture.outcome(id)? {
        Outcome::Health(health) => Some(health),
        other => panic!("{other:?}"),
    }
}

fn reason(health: &MemberHealth) -> String {
    health.status.as_ref().unwrap_err().to_string()
}

#[test]
fn health_check_asks_each_member_anew() {
    let mut fixture = Fixture::new(3);
    fixture.mute = vec![true; 3];
    let id = begin(&mut fixture);
    for member in 0..3 {
        assert_eq!(fixture.kinds(member), ["status"]);
        assert!(health(&mut fixture, id).is_none());
        fixture.runs[member] = 7;
        let status = fixture.status(member);
        fixture.reply(member, Reply::Status(Box::new(status)));
    }
    let members = health(&mut fixture, id).expect("all answered");
    for member in &members {
        assert_eq!(member.status.as_ref().unwrap().run, RunId::new("7"));
        assert!(member.untrusted_reason.is_none());
    }
}

#[test]
fn health_check_waits_a_second_for_silent_members() {
    let mut fixture = Fixture::new(3);
    fixture.mute[1] = true;
    let id = begin(&mut fixture);
    fixture.pass(999);
    assert!(health(&mut fixture, id).is_none());
    fixture.pass(1);
    let members = health(&mut fixture, id).expect("the limit is over");
    assert!(members[0].status.is_ok() && members[2].status.is_ok());
    assert_eq!(reason(&members[1]), "m1: no answer within 1s");
    // The first request is still in flight.
    let id = begin(&mut fixture);
    fixture.pass(1_000);
    let members = health(&mut fixture, id).expect("the limit is over");
    assert_eq!(reason(&members[1]), "m1: has not answered for 2s");
}

#[test]
fn health_check_waits_for_the_next_connection() {
    let mut fixture = Fixture::new(3);
    fixture.disconnect(0);
    fixture.disconnect(1);
    fixture.pass(1);
    let id = begin(&mut fixture);
    assert!(health(&mut fixture, id).is_none());
    fixture.connect(0);
    fixture.disconnect(1);
    let members = health(&mut fixture, id).expect("all were tried");
    assert!(members[0].status.is_ok());
    assert_eq!(reason(&members[1]), "m1: the connection broke");
}

#[test]
fn health_check_reports_members_that_never_connected() {
    let mut fixture = Fixture::disconnected(1);
    let id = begin(&mut fixture);
    fixture.pass(1_000);
    let members = health(&mut fixture, id).expect("the limit is over");
    assert_eq!(reason(&members[0]), "m0: not connected after 1s");
}

/// A frozen server takes a connection and never answers on it.
#[test]
fn health_check_of_a_new_client_ends_early() {
    let mut fixture = Fixture::disconnected(3);
    let id = begin(&mut fixture);
    fixture.pass(30);
    (0..2).for_each(|member| fixture.connect(member));
    fixture.pass(29);
    assert!(health(&mut fixture, id).is_none());
    fixture.pass(1);
    let members = health(&mut fixture, id).expect("no further member is waited for");
    assert!(members[0].status.is_ok() && members[1].status.is_ok());
    assert_eq!(reason(&members[2]), "m2: not connected after 60ms");
}

#[test]
fn refused_status_is_an_error_of_its_member() {
    let mut fixture = Fixture::new(1);
    fixture.mute[0] = true;
    let id = begin(&mut fixture);
    let error = Error::new(ErrorKind::Refused, "no right");
    fixture.reply(0, Reply::Failed(error));
    let members = health(&mut fixture, id).expect("it answered");
    assert_eq!(reason(&members[0]), "m0: no right");
}

#[test]
fn cancelled_health_check_leaves_nothing() {
    let mut fixture = Fixture::new(1);
    fixture.mute[0] = true;
    let id = begin(&mut fixture);
    fixture.cancel(id);
    fixture.pass(2_000);
    assert!(health(&mut fixture, id).is_none());
}
