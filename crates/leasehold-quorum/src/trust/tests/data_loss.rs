//! Members that may have forgotten.

use super::*;

#[test]
fn a_set_that_is_formed_by_its_first_client_may_be_one_that_forgot_everything() {
    let mut world = World::new(3);
    for member in 0..3 {
        world.servers[member].member_record = None;
    }
    world.meet(0);
    world.meet(2);
    world.keep_member_records();
    let missing = vec![MemberId::new("m1")];
    assert_eq!(world.counts(0), Err(UntrustedReason::NotFormed { missing }));
    world.meet(1);
    world.keep_member_records();
    for member in 0..3 {
        assert!(world.forgot(member).as_secs() >= 60, "m{member}");
    }
    world.pass(62);
    world.all_count();
}

#[test]
fn a_member_that_restarts_without_its_data_waits_and_then_counts_again() {
    let mut world = World::new(3);
    world.meet_all();
    world.restart(1, false);
    world.pass(1);
    world.meet(1);
    let what = Forgetting::LostRecord;
    assert_eq!(
        world.counts(1),
        Err(UntrustedReason::Forgot { what, until: None })
    );
    world.keep_member_records();
    assert_eq!(world.forgot(1).as_secs(), 60);
    world.pass(60);
    assert!(world.counts(1).is_err());
    // An answer to a request from before the end of the wait does not count, whenever it arrives.
    let sent_too_early = world.ours();
    world.pass(2);
    assert!(world.trust.counts(1, sent_too_early, None).is_err());
    world.all_count();
}

#[test]
fn a_client_that_comes_later_believes_card_and_witnesses() {
    let mut world = World::new(3);
    world.meet_all();
    world.restart(1, false);
    world.meet(1);
    world.keep_member_records();
    world.forget_the_client();
    world.pass(20);
    world.meet_all();
    assert_eq!(world.forgot(1).as_secs(), 40);
    world.forget_the_client();
    world.pass(3_600);
    world.meet_all();
    world.all_count();
}

#[test]
fn booted_with_a_clock_an_hour_behind_then_stepped_right() {
    let mut world = World::new(3);
    world.meet_all();
    // Part of its record survives, and says by the wrong clock that its new data generation began an hour ago.
    world.step(1, -3_600);
    world.restart(1, true);
    world.meet(1);
    world.keep_member_records();
    world.step(1, 3_600);
    world.pass(2);
    world.forget_the_client();
    world.meet_all();
    let left = world.forgot(1).as_secs();
    assert!((58..=60).contains(&left), "the peers know better: {left}");
    world.pass(62);
    world.all_count();
}

#[test]
fn a_witness_whose_clock_was_stepped_since_is_not_believed() {
    let mut world = World::new(3);
    world.meet_all();
    // As above. Also, one of the two peers now seems to have seen the change an hour ago.
    world.step(1, -3_600);
    world.restart(1, true);
    world.meet(1);
    world.keep_member_records();
    world.step(1, 3_600);
    world.step(0, 3_600);
    world.pass(2);
    world.forget_the_client();
    world.meet_all();
    let left = world.forgot(1).as_secs();
    assert!((58..=60).contains(&left), "{left}");
}

#[test]
fn what_a_member_said_before_its_latest_word_changes_nothing() {
    let mut world = World::new(3);
    world.meet_all();
    let (late, then) = (world.status(1), world.at());
    world.pass(1);
    world.restart(1, false);
    world.meet(1);
    assert!(world.counts(1).is_err());
    let learned = world.trust.present(1, late, then);
    assert_eq!(learned, Learned::default());
    assert!(world.counts(1).is_err(), "the answer was overtaken");
}

#[test]
fn a_card_that_survived_a_restart_of_a_server_that_is_not_durable_proves_nothing() {
    let mut world = World::new(3);
    world.meet_all();
    world.restart(2, true);
    world.meet(2);
    let what = Forgetting::Restarted;
    assert_eq!(
        world.counts(2),
        Err(UntrustedReason::Forgot { what, until: None })
    );
    world.keep_member_records();
    assert!(world.forgot(2).as_secs() >= 60);
}

#[test]
fn a_durable_member_goes_on_at_once() {
    let mut world = World::new(3);
    world.servers[2].durable = true;
    world.servers[2].member_record.as_mut().unwrap().durable = true;
    world.meet_all();
    let data_generation = world.servers[2]
        .member_record
        .as_ref()
        .unwrap()
        .data_generation;
    world.restart(2, true);
    world.meet(2);
    assert_eq!(world.counts(2), Ok(()));
    world.keep_member_records();
    let member_record = world.servers[2].member_record.as_ref().unwrap();
    assert_eq!(
        (member_record.data_generation, member_record.run.as_str()),
        (data_generation, "1002")
    );
    assert_eq!(world.counts(2), Ok(()));
}

#[test]
fn everysec_that_became_always_after_the_crash_was_not_durable_before_it() {
    let mut world = World::new(3);
    world.meet_all();
    world.servers[2].durable = true;
    world.restart(2, true);
    world.meet(2);
    assert!(world.counts(2).is_err());
    world.keep_member_records();
    assert!(world.forgot(2).as_secs() >= 60);
    assert!(
        world.servers[2].member_record.as_ref().unwrap().durable,
        "in this run it is"
    );
}

#[test]
fn a_server_that_ceases_to_be_durable_has_it_on_its_card() {
    let mut world = World::new(3);
    world.servers[0].member_record.as_mut().unwrap().durable = true;
    world.meet_all();
    world.keep_member_records();
    assert!(!world.servers[0].member_record.as_ref().unwrap().durable);
    world.servers[0].durable = true;
    world.meet_all();
    world.keep_member_records();
    assert!(
        !world.servers[0].member_record.as_ref().unwrap().durable,
        "not in this run any more"
    );
}

#[test]
fn a_rolling_restart_takes_out_one_after_the_other() {
    let mut world = World::new(3);
    world.meet_all();
    for member in 0..3 {
        world.restart(member, false);
        world.pass(5);
        world.meet_all();
        world.keep_member_records();
        for other in 0..3 {
            assert_eq!(
                world.counts(other).is_err(),
                other == member,
                "m{other} after m{member}"
            );
        }
        world.pass(70);
        world.meet_all();
        world.all_count();
    }
}

#[test]
fn all_restarted_unseen_must_all_wait() {
    let mut world = World::new(3);
    for member in 0..3 {
        world.restart(member, true);
    }
    world.pass(86_400);
    world.meet_all();
    world.keep_member_records();
    for member in 0..3 {
        assert!(world.forgot(member).as_secs() >= 60, "m{member}");
    }
    world.pass(62);
    world.all_count();
}

#[test]
fn the_restart_of_a_witness_casts_no_doubt_on_those_it_forgot() {
    let mut world = World::new(3);
    world.meet_all();
    world.restart(0, false);
    world.meet(0);
    world.keep_member_records();
    world.forget_the_client();
    world.pass(1);
    world.meet_all();
    assert!(world.counts(0).is_err());
    assert_eq!((world.counts(1), world.counts(2)), (Ok(()), Ok(())));
}

#[test]
fn one_card_restores_the_others_once_all_answered() {
    let mut world = World::new(5);
    for member in 0..4 {
        world.restart(member, false);
    }
    for member in 0..4 {
        world.meet(member);
    }
    world.keep_member_records();
    assert!(
        world.servers[0].member_record.is_none(),
        "the fifth may know another set"
    );
    world.meet(4);
    world.keep_member_records();
    for member in 0..4 {
        assert!(world.forgot(member).as_secs() >= 60);
    }
    assert_eq!(world.counts(4), Ok(()));
}

#[test]
fn who_vouches_for_a_set_is_asked_again_first() {
    let mut world = World::new(3);
    world.meet_all();
    world.pass(60);
    // In the meantime the configuration changed without this client noticing, and one member lost its record.
    for member in [0, 1] {
        let member_record = world.servers[member].member_record.as_mut().unwrap();
        (member_record.set, member_record.generation) = (set(4), 2);
    }
    world.restart(2, false);
    world.meet(2);
    world.keep_member_records();
    assert!(world.servers[2].member_record.is_none());
    assert!(matches!(
        world.counts(0),
        Err(UntrustedReason::OtherSet { .. })
    ));
}

#[test]
fn a_witness_that_hears_late_lets_nobody_wait_anew() {
    let mut world = World::new(3);
    world.meet_all();
    // One peer is unreachable for most of the wait.
    let silent = world.servers[2].member_record.clone();
    world.restart(1, false);
    world.meet(1);
    world.keep_member_records();
    world.servers[2].member_record = silent;
    world.pass(70);
    world.meet(2);
    world.keep_member_records();
    world.forget_the_client();
    world.pass(1);
    world.meet_all();
    world.all_count();
}

#[test]
fn a_time_that_a_clock_has_yet_to_reach_is_no_time() {
    let mut world = World::new(3);
    world.meet_all();
    // The clocks of the member and of one peer are ahead while its new data generation is recorded.
    world.restart(1, false);
    world.step(1, 3_600);
    world.step(2, 3_600);
    world.meet(1);
    world.meet(2);
    world.keep_member_records();
    world.step(1, -3_600);
    world.step(2, -3_600);
    world.forget_the_client();
    world.pass(30);
    world.meet_all();
    assert!((30..=31).contains(&world.forgot(1).as_secs()));
    world.pass(40);
    world.forget_the_client();
    world.meet_all();
    world.all_count();
}
