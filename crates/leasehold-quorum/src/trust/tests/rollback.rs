//! Durable members that cease to be durable, or come back with older data.

use super::*;

/// A quorum in which m1 has been durable for a long time, and whose record says so.
fn with_durable_member() -> World {
    let mut world = World::new(3);
    world.servers[1].durable = true;
    world.servers[1].member_record.as_mut().unwrap().durable = true;
    world.meet_all();
    world
}

/// m1 stops being durable, and a client notices. It then restarts from what it had written until that time.
fn rolled_back_after_switch(world: &mut World) {
    let before = world.servers[1].member_record.clone();
    world.servers[1].durable = false;
    world.meet(1);
    world.keep_member_records();
    world.all_count();
    world.servers[1].member_record = before;
    world.servers[1].durable = true;
    world.restart(1, true);
}

#[test]
fn member_that_is_not_durable_now_remembers_nothing() {
    let mut world = with_durable_member();
    world.servers[1].durable = false;
    world.restart(1, true);
    world.meet(1);
    let what = Forgetting::Restarted;
    assert_eq!(
        world.counts(1),
        Err(UntrustedReason::Forgot { what, until: None })
    );
    world.keep_member_records();
    assert!(world.forgot(1).as_secs() >= 60);
}

#[test]
fn member_that_was_a_replica_remembers_nothing() {
    let mut world = with_durable_member();
    let became_replica = |world: &World| {
        let mut status = world.status(1);
        (status.durable, status.was_replica) = (false, true);
        status
    };
    let status = became_replica(&world);
    world.trust.present(1, status, world.at());
    let what = Forgetting::WasReplica;
    assert_eq!(
        world.counts(1),
        Err(UntrustedReason::Forgot { what, until: None })
    );
    let steps = world
        .trust
        .member_record_steps(&mut || DataGeneration::parse("00000000000000f0").unwrap());
    let [RecordStep::Write(1, edit)] = steps.as_slice() else {
        panic!("{steps:?}")
    };
    assert_eq!((edit.age, edit.durable), (Some(Duration::ZERO), false));
    // From then on it is like any other member that is not durable.
    world.write(1, edit.clone());
    let status = became_replica(&world);
    world.trust.present(1, status, world.at());
    assert!(world.forgot(1).as_secs() >= 60);
}

#[test]
fn switching_durability_off_costs_no_vote() {
    let mut world = with_durable_member();
    let data_generation = world.servers[1]
        .member_record
        .as_ref()
        .unwrap()
        .data_generation;
    world.servers[1].durable = false;
    world.meet(1);
    world.keep_member_records();
    world.all_count();
    let member_record = world.servers[1].member_record.clone().unwrap();
    assert_eq!(
        (Some(member_record.data_generation), member_record.durable),
        (data_generation.renamed(), false)
    );
    // Nor for a client that comes later, nor after the next restart of a peer.
    world.forget_the_client();
    world.meet_all();
    world.all_count();
    world.restart(0, false);
    world.meet(0);
    world.keep_member_records();
    assert_eq!((world.counts(1), world.counts(2)), (Ok(()), Ok(())));
}

#[test]
fn life_without_further_names_ends_with_durability() {
    let mut world = with_durable_member();
    let last = DataGeneration::parse("123456789abcdeff").unwrap();
    world.servers[1]
        .member_record
        .as_mut()
        .unwrap()
        .data_generation = last;
    world.meet_all();
    world.keep_member_records();
    world.servers[1].durable = false;
    world.meet(1);
    world.keep_member_records();
    let member_record = world.servers[1].member_record.clone().unwrap();
    assert!(
        !member_record.data_generation.continues(last) && !member_record.durable,
        "{member_record:?}"
    );
    assert!(world.forgot(1).as_secs() >= 60);
}

#[test]
fn rolled_back_member_is_refused_by_each_client() {
    let mut world = with_durable_member();
    rolled_back_after_switch(&mut world);
    world.meet(1);
    assert!(world.counts(1).is_err(), "by the client that noticed it");
    world.forget_the_client();
    world.meet_all();
    let what = Forgetting::Restarted;
    assert_eq!(
        world.counts(1),
        Err(UntrustedReason::Forgot { what, until: None })
    );
    world.keep_member_records();
    assert!(world.forgot(1).as_secs() >= 60);
    world.forget_the_client();
    world.pass(20);
    world.meet_all();
    assert!((39..=41).contains(&world.forgot(1).as_secs()));
    world.pass(42);
    world.all_count();
}

#[test]
fn rolled_back_member_is_refused_though_one_client_confirmed_it() {
    let mut world = with_durable_member();
    let late = world.servers[2].member_record.clone();
    rolled_back_after_switch(&mut world);
    world.servers[2].member_record = late;
    // A client that hears only m2, which knows nothing, cannot see it.
    world.forget_the_client();
    world.meet(1);
    world.meet(2);
    world.keep_member_records();
    assert_eq!(world.counts(1), Ok(()));
    // The first client that hears m0 can, and notes it in the records.
    world.meet(0);
    assert!(world.counts(1).is_err());
    world.keep_member_records();
    assert!(world.forgot(1).as_secs() >= 60);
}

#[test]
fn member_is_looked_at_anew_each_minute() {
    let mut world = World::new(3);
    world.meet_all();
    let looks = |world: &mut World| {
        let incarnation = world.status(1).incarnation();
        let clock = world.wall(1);
        let (sample, at) = (Sample { clock, incarnation }, world.at());
        world.trust.sample(1, &sample, at).must_look
    };
    world.pass(59);
    assert!(!looks(&mut world));
    world.pass(2);
    assert!(looks(&mut world));
    world.meet(1);
    assert!(!looks(&mut world));
}
