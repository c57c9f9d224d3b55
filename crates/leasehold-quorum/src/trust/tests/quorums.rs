//! Quorums that are initialized, changed and mistaken for each other.

use super::*;

#[test]
fn existing_quorum_votes_at_once_for_new_client() {
    let mut fixture = Fixture::new(5);
    assert_eq!(fixture.counts(0), Err(UntrustedReason::Unknown));
    fixture.meet_all();
    fixture.all_count();
}

#[test]
fn old_quorum_is_neither_served_nor_restored() {
    let mut fixture = Fixture::new(3);
    for member in 0..2 {
        fixture.record(member).set = set(4);
    }
    fixture.restart(2, false);
    fixture.meet_all();
    assert!(matches!(
        fixture.counts(0),
        Err(UntrustedReason::OtherSet { generation: 1, .. })
    ));
    let text = fixture.counts(0).unwrap_err().to_string();
    assert!(
        text.ends_with(": it has m0,m1,m2,m3, this client m0,m1,m2"),
        "{text}"
    );
    fixture.keep_member_records();
    assert!(
        fixture.servers[2].member_record.is_none(),
        "no majority vouches for the old set"
    );
}

#[test]
fn moved_server_is_offered_its_old_id() {
    let of = |ids: &[&str]| {
        let ids = ids.iter().map(|id| MemberId::new(*id));
        MemberSet::new(ids, MAX_TTL, TOLERANCE)
    };
    let text = |ours: &[&str]| difference(&of(&["m0", "m1", "m2"]), &of(ours));
    let moved = text(&["m0", "m1", "new:6379"]);
    assert!(
        moved.ends_with("; if new:6379 is m2 at a new address, add ?id=m2 to its URL"),
        "{moved}"
    );
    let renamed = text(&["localhost:1", "localhost:2", "localhost:3"]);
    assert!(renamed.ends_with("or add their ids by ?id="), "{renamed}");
    for ours in [
        &["m0", "a", "b"][..],
        &["a", "b"],
        &["m0", "m1"],
        &["m0", "m1", "a", "b"],
    ] {
        assert!(!text(ours).contains("?id="), "{ours:?}");
    }
}

#[test]
fn changed_quorum_votes_with_its_new_record() {
    let mut fixture = Fixture::new(5);
    for server in &mut fixture.servers {
        server.member_record.as_mut().unwrap().generation = 3;
    }
    // The new member has a data generation that no other member has heard of.
    let data_generation = DataGeneration::parse("00000000000000ff").unwrap();
    fixture.record(4).data_generation = data_generation;
    for member in 0..4 {
        let member_record = fixture.record(member);
        member_record.observations.remove(&MemberId::new("m4"));
    }
    fixture.meet_all();
    fixture.all_count();
    fixture.keep_member_records();
    fixture.all_count();
    assert!(
        fixture.record(0).observations[&MemberId::new("m4")].data_generation == data_generation
    );
}

#[test]
fn one_server_under_two_names_counts_under_neither() {
    let mut fixture = Fixture::new(3);
    fixture.servers[1].run = fixture.servers[0].run;
    fixture.meet_all();
    assert_eq!(
        fixture.counts(0),
        Err(UntrustedReason::SameServer(MemberId::new("m1")))
    );
    assert_eq!(
        fixture.counts(1),
        Err(UntrustedReason::SameServer(MemberId::new("m0")))
    );
}

#[test]
fn reply_from_unknown_data_does_not_count() {
    let mut fixture = Fixture::met(3);
    let known = fixture.status(1).incarnation();
    assert_eq!(
        fixture.trust.counts(1.into(), fixture.ours(), Some(&known)),
        Ok(())
    );
    fixture.servers[1].member_record = None;
    let flushed = Sample {
        clock: fixture.wall(1),
        incarnation: fixture.status(1).incarnation(),
    };
    let learned = fixture.trust.sample(1.into(), &flushed, fixture.at());
    assert!(learned.must_look);
    let verdict = fixture
        .trust
        .counts(1.into(), fixture.ours(), Some(&flushed.incarnation));
    assert_eq!(verdict, Err(UntrustedReason::Changed));
}

#[test]
fn rules_that_are_not_enforced_count_everybody() {
    let mut fixture = Fixture::new(3);
    fixture.trust = Trust::new(ids(3), set(3), false);
    assert_eq!(fixture.counts(0), Ok(()));
    assert_eq!(fixture.trust.member_record_steps(&RandomEntropy), []);
}

#[test]
fn concurrent_initializations_of_differing_lists_fail() {
    let mut fixture = Fixture::new(4);
    for server in &mut fixture.servers {
        server.member_record = None;
    }
    let lists = [[0, 1, 2], [0, 1, 3]];
    let client = |list: [usize; 3]| {
        let ids = list.map(|n| MemberId::new(format!("m{n}")));
        let set = MemberSet::new(ids.clone(), MAX_TTL, TOLERANCE);
        Trust::new(ids.to_vec(), set, true)
    };
    let mut clients = lists.map(client);
    let meet = |fixture: &Fixture, clients: &mut [Trust; 2]| {
        for (trust, list) in clients.iter_mut().zip(lists) {
            for (index, server) in list.into_iter().enumerate() {
                trust.present(index.into(), fixture.status(server), fixture.at());
            }
        }
    };
    meet(&fixture, &mut clients);
    // Each client is the first at one of the two members that are in both lists.
    for (trust, writes) in clients.iter().zip([[1, 2], [0, 3]]) {
        let list = if writes[1] == 2 { lists[0] } else { lists[1] };
        for step in trust.member_record_steps(&RandomEntropy) {
            let RecordStep::Write(index, edit) = step else {
                panic!("{step:?}")
            };
            if writes.contains(&list[usize::from(index)]) {
                fixture.write(list[usize::from(index)], edit);
            }
        }
    }
    fixture.pass(3_600);
    meet(&fixture, &mut clients);
    for trust in &clients {
        assert_eq!(votes(trust, &fixture), [false; 3]);
        assert_eq!(trust.member_record_steps(&RandomEntropy), []);
    }
}

/// Which of the three members have a vote for the client.
pub(super) fn votes(client: &Trust, fixture: &Fixture) -> [bool; 3] {
    [0, 1, 2].map(|index: usize| client.counts(index.into(), fixture.ours(), None).is_ok())
}

/// Returns a client that was given `list` and has met its servers.
pub(super) fn client_of(fixture: &Fixture, list: &[usize]) -> Trust {
    let mut trust = Trust::new(ids_of(list), set_of(list), true);
    for (index, server) in list.iter().enumerate() {
        trust.present(index.into(), fixture.status(*server), fixture.at());
    }
    trust
}

fn ids_of(list: &[usize]) -> Vec<MemberId> {
    let ids = list.iter().map(|n| MemberId::new(format!("m{n}")));
    ids.collect()
}

pub(super) fn set_of(list: &[usize]) -> MemberSet {
    MemberSet::new(ids_of(list), MAX_TTL, TOLERANCE)
}

/// Four servers. Those in `list` belong to a quorum of their own, in this generation.
pub(super) fn with_another_set(list: &[usize], generation: u64) -> Fixture {
    let mut fixture = Fixture::new(4);
    for (member, server) in fixture.servers.iter_mut().enumerate() {
        let member_record = server.member_record.as_mut().unwrap();
        let theirs = list.contains(&member);
        member_record.set = set_of(if theirs { list } else { &[0, 1, 2] });
        member_record.generation = if theirs { generation } else { 1 };
    }
    fixture
}

#[test]
fn member_claimed_by_two_quorums_votes_in_neither() {
    let mut fixture = with_another_set(&[0, 1, 3], 1);
    // It came back from an old copy of its data, in which it belonged to the earlier quorum.
    fixture.record(1).set = set_of(&[0, 1, 2]);

    let before = client_of(&fixture, &[0, 1, 2]);
    let verdict = before.counts(1.into(), fixture.ours(), None);
    assert!(
        matches!(&verdict, Err(UntrustedReason::Claimed { by, .. }) if by.as_str() == "m0"),
        "{verdict:?}"
    );
    let text = verdict.unwrap_err().to_string();
    assert!(
        text.starts_with(
            "belongs to another quorum according to m0 (generation 1): it has m0,m1,m3, this client "
        ),
        "{text}"
    );
    assert_eq!(before.counts(2.into(), fixture.ours(), None), Ok(()));

    let theirs = client_of(&fixture, &[0, 1, 3]);
    let verdict = theirs.counts(0.into(), fixture.ours(), None);
    assert!(
        matches!(&verdict, Err(UntrustedReason::Claimed { by, .. }) if by.as_str() == "m1"),
        "{verdict:?}"
    );
}

#[test]
fn member_claimed_by_two_quorums_gets_no_record() {
    let mut fixture = with_another_set(&[0, 1, 3], 1);
    fixture.record(1).set = set_of(&[0, 1, 2]);
    fixture.servers[1].run = 99;
    fixture.record(2).generation = 0;
    let client = client_of(&fixture, &[0, 1, 2]);
    assert_eq!(client.member_record_steps(&RandomEntropy), []);
}

#[test]
fn an_older_card_claims_nobody() {
    let mut fixture = with_another_set(&[1, 2, 3], 3);
    // It came back from a copy that was made before the quorum was changed twice.
    let old = fixture.record(1);
    (old.set, old.generation) = (set_of(&[0, 1, 2]), 1);
    let client = client_of(&fixture, &[1, 2, 3]);
    assert_eq!(votes(&client, &fixture), [false, true, true]);
    // The old quorum does not come back with it, either.
    let before = client_of(&fixture, &[0, 1, 2]);
    assert!(before.counts(1.into(), fixture.ours(), None).is_err());
}

#[test]
fn client_unaware_of_a_change_continues() {
    let mut fixture = with_another_set(&[0, 1, 2, 3], 2);
    for member in [1, 2] {
        let member_record = fixture.record(member);
        (member_record.set, member_record.generation) = (set_of(&[0, 1, 2]), 1);
    }
    // A majority of one of these quorums shares a member with each majority of the other.
    let client = client_of(&fixture, &[0, 1, 2]);
    assert_eq!(votes(&client, &fixture), [false, true, true]);
}

#[test]
fn a_set_that_is_being_formed_claims_nobody() {
    let mut fixture = with_another_set(&[0, 2, 3], 0);
    // This server got the record of its own quorum first, so the other quorum is never initialized.
    let asked_first = fixture.record(2);
    (asked_first.set, asked_first.generation) = (set_of(&[0, 1, 2]), 1);
    let client = client_of(&fixture, &[0, 1, 2]);
    assert_eq!(votes(&client, &fixture), [false, true, true]);
}

#[test]
fn sets_that_differ_by_one_member_always_meet() {
    let meet = |list: &[usize]| set_of(&[0, 1, 2, 3, 4]).always_meets(&set_of(list));
    assert!(meet(&[0, 1, 2, 3, 4]));
    assert!(meet(&[0, 1, 2, 3]));
    assert!(meet(&[0, 1, 2, 3, 4, 5]));
    assert!(!meet(&[0, 1, 2, 3, 5]));
    assert!(!meet(&[0, 1, 2]));
}
