//! Members that lost their records, and what is needed to give them new ones.

use super::quorums::{client_of, set_of, votes, with_another_set};
use super::*;

/// Returns what the client would do about the records.
fn steps(client: &Trust) -> Vec<RecordStep> {
    client.member_record_steps(&RandomEntropy)
}

fn record_of(fixture: &Fixture, member: usize) -> Option<(MemberSet, u64)> {
    let member_record = fixture.servers[member].member_record.as_ref()?;
    Some((member_record.set.clone(), member_record.configuration()))
}

#[test]
fn one_old_record_restores_no_other() {
    let mut fixture = Fixture::new(3);
    fixture.restart(0, false);
    fixture.meet(0);
    fixture.meet_and_record(1);
    assert_eq!(record_of(&fixture, 0), None, "m2 may contradict it");
    fixture.meet_and_record(2);
    assert_eq!(record_of(&fixture, 0), Some((set(3), 1)));
    assert!(fixture.forgot(0).as_secs() >= 60);
}

#[test]
fn remembered_record_does_not_restore_another() {
    let mut fixture = Fixture::met(3);
    fixture.pass(3_600);
    // m2 is silent from now on. It may belong to another quorum by this time.
    fixture.restart(0, false);
    fixture.meet(0);
    fixture.meet(1);
    assert_eq!(steps(&fixture.trust), [RecordStep::Refresh(2.into())]);
    fixture.trust.missed(2.into());
    assert_eq!(steps(&fixture.trust), []);
    fixture.meet(2);
    assert!(matches!(
        steps(&fixture.trust)[..],
        [RecordStep::Write(MemberIndex::FIRST, _)]
    ));
}

#[test]
fn record_of_an_older_generation_is_no_evidence() {
    let mut fixture = Fixture::new(5);
    for member in [0, 1] {
        fixture.restart(member, false);
    }
    fixture.record(2).generation = 3;
    fixture.record(3).generation = 3;
    for member in 0..5 {
        if member != 1 {
            fixture.meet(member);
        }
    }
    fixture.keep_member_records();
    assert_eq!(
        record_of(&fixture, 0),
        None,
        "two of five have generation 3"
    );
    fixture.meet_and_record(1);
    assert_eq!(record_of(&fixture, 0), Some((set(5), 3)));
}

#[test]
fn contradicted_record_restores_no_other() {
    let mut fixture = with_another_set(&[1, 2, 3], 1);
    fixture.servers[0].member_record = None;
    fixture.record(1).set = set_of(&[0, 1, 2]);
    assert_eq!(steps(&client_of(&fixture, &[0, 1, 2])), []);
}

#[test]
fn concurrent_restorations_of_differing_lists_fail() {
    // One member of each quorum kept its record. Both clients find the other two servers empty.
    let mut fixture = with_another_set(&[1, 2, 3], 1);
    for member in [1, 2] {
        fixture.servers[member].member_record = None;
    }
    let lists = [[0, 1, 2], [1, 2, 3]];
    let clients = lists.map(|list| client_of(&fixture, &list));
    // Each client is the first at one of them.
    for ((client, list), first) in clients.iter().zip(lists).zip([1, 2]) {
        carry_out(&mut fixture, client, |index| list[index], Some(first));
    }
    // From now on each client cannot reach the server where the other one was first.
    for (list, reached) in lists.into_iter().zip([[0, 1], [1, 2]]) {
        let mut client = Trust::new(set_of(&list).ids, set_of(&list), true);
        for _ in 0..2 {
            for index in reached {
                client.present(index.into(), fixture.status(list[index]), fixture.at());
            }
            carry_out(&mut fixture, &client, |index| list[index], None);
            fixture.pass(3_600);
        }
        let votes = votes(&client, &fixture);
        assert_eq!(votes.into_iter().filter(|it| *it).count(), 1, "{list:?}");
    }
}

/// Does what the client would do about the records, at one server only if one is given.
fn carry_out(
    fixture: &mut Fixture,
    client: &Trust,
    server: impl Fn(usize) -> usize,
    only: Option<usize>,
) {
    for step in steps(client) {
        let server = server((step.member()).into());
        if only.is_none_or(|only| only == server) {
            fixture.carry_out(server, step);
        }
    }
}
