//! Durable members that cease to be durable, or come back with older data.

use super::*;

/// A quorum in which m1 has been durable for a long time, and whose record says so.
fn with_durable_member() -> Fixture {
    let mut fixture = Fixture::new(3);
    fixture.servers[1].durable = true;
    fixture.record(1).durable = true;
    fixture.meet_all();
    fixture
}

/// m1 stops being durable, and a client notices. It then restarts from what it had written until that time.
fn rolled_back_after_switch(fixture: &mut Fixture) {
    let before = fixture.servers[1].member_record.clone();
    fixture.servers[1].durable = false;
    fixture.meet_and_record(1);
    fixture.all_count();
    fixture.servers[1].member_record = before;
    fixture.servers[1].durable = true;
    fixture.restart(1, true);
}

#[test]
fn member_that_is_not_durable_now_remembers_nothing() {
    let mut fixture = with_durable_member();
    fixture.servers[1].durable = false;
    fixture.restart(1, true);
    fixture.meet(1);
    fixture.assert_forgot(1, Forgetting::Restarted);
    fixture.keep_member_records();
    assert!(fixture.forgot(1).as_secs() >= 60);
}

#[test]
fn member_that_was_a_replica_remembers_nothing() {
    let mut fixture = with_durable_member();
    let became_replica = |fixture: &Fixture| {
        let mut status = fixture.status(1);
        (status.durable, status.was_replica) = (false, true);
        status
    };
    let status = became_replica(&fixture);
    fixture.trust.present(1.into(), status, fixture.at());
    fixture.assert_forgot(1, Forgetting::WasReplica);
    let steps = fixture.trust.member_record_steps(&RandomEntropy);
    let [RecordStep::Write(member, edit)] = steps.as_slice() else {
        panic!("{steps:?}")
    };
    assert_eq!(*member, 1.into());
    assert_eq!((edit.age, edit.durable), (Some(Duration::ZERO), false));
    // From then on it is like any other member that is not durable.
    fixture.write(1, edit.clone());
    let status = became_replica(&fixture);
    fixture.trust.present(1.into(), status, fixture.at());
    assert!(fixture.forgot(1).as_secs() >= 60);
}

#[test]
fn switching_durability_off_costs_no_vote() {
    let mut fixture = with_durable_member();
    let data_generation = fixture.record(1).data_generation;
    fixture.servers[1].durable = false;
    fixture.meet_and_record(1);
    fixture.all_count();
    let member_record = fixture.servers[1].member_record.clone().unwrap();
    assert_eq!(
        (Some(member_record.data_generation), member_record.durable),
        (data_generation.renamed(), false)
    );
    // Nor for a client that comes later, nor after the next restart of a peer.
    fixture.replace_client_after(0);
    fixture.all_count();
    fixture.restart_and_record(0, false);
    assert_eq!((fixture.counts(1), fixture.counts(2)), (Ok(()), Ok(())));
}

#[test]
fn life_without_further_names_ends_with_durability() {
    let mut fixture = with_durable_member();
    let name = fixture.record(1).data_generation.to_string();
    let last = DataGeneration::parse(&format!("{}f", &name[..15])).unwrap();
    fixture.record(1).data_generation = last;
    fixture.meet_all();
    fixture.keep_member_records();
    fixture.servers[1].durable = false;
    fixture.meet_and_record(1);
    let member_record = fixture.servers[1].member_record.clone().unwrap();
    assert!(
        !member_record.data_generation.continues(last) && !member_record.durable,
        "{member_record:?}"
    );
    assert!(fixture.forgot(1).as_secs() >= 60);
}

#[test]
fn rolled_back_member_is_refused_by_each_client() {
    let mut fixture = with_durable_member();
    rolled_back_after_switch(&mut fixture);
    fixture.meet(1);
    assert!(fixture.counts(1).is_err(), "by the client that noticed it");
    fixture.replace_client_after(0);
    fixture.assert_forgot(1, Forgetting::Restarted);
    fixture.keep_member_records();
    assert!(fixture.forgot(1).as_secs() >= 60);
    fixture.replace_client_after(20);
    assert!((39..=41).contains(&fixture.forgot(1).as_secs()));
    fixture.pass(42);
    fixture.all_count();
}

#[test]
fn rolled_back_member_is_refused_despite_confirmation() {
    let mut fixture = with_durable_member();
    let late = fixture.servers[2].member_record.clone();
    rolled_back_after_switch(&mut fixture);
    fixture.servers[2].member_record = late;
    // A client that hears only m2, which knows nothing, cannot see it.
    fixture.forget_the_client();
    fixture.meet(1);
    fixture.meet_and_record(2);
    assert_eq!(fixture.counts(1), Ok(()));
    // The first client that hears m0 can, and notes it in the records.
    fixture.meet(0);
    assert!(fixture.counts(1).is_err());
    fixture.keep_member_records();
    assert!(fixture.forgot(1).as_secs() >= 60);
}
