//! Members that may have forgotten.

use super::*;

#[test]
fn a_set_that_is_formed_by_its_first_client_may_be_one_that_forgot_everything() {
    let mut fixture = Fixture::new(3);
    for member in 0..3 {
        fixture.servers[member].member_record = None;
    }
    fixture.meet(0);
    fixture.meet(2);
    fixture.keep_member_records();
    let missing = vec![MemberId::new("m1")];
    assert_eq!(
        fixture.counts(0),
        Err(UntrustedReason::NotFormed { missing })
    );
    fixture.meet(1);
    fixture.keep_member_records();
    for member in 0..3 {
        assert!(fixture.forgot(member).as_secs() >= 60, "m{member}");
    }
    fixture.pass(62);
    fixture.all_count();
}

#[test]
fn a_member_that_restarts_without_its_data_waits_and_then_counts_again() {
    let mut fixture = Fixture::new(3);
    fixture.meet_all();
    fixture.restart(1, false);
    fixture.pass(1);
    fixture.meet(1);
    let what = Forgetting::LostRecord;
    assert_eq!(
        fixture.counts(1),
        Err(UntrustedReason::Forgot { what, until: None })
    );
    fixture.keep_member_records();
    assert_eq!(fixture.forgot(1).as_secs(), 60);
    fixture.pass(60);
    assert!(fixture.counts(1).is_err());
    // An answer to a request from before the end of the wait does not count, whenever it arrives.
    let sent_too_early = fixture.ours();
    fixture.pass(2);
    assert!(fixture.trust.counts(1, sent_too_early, None).is_err());
    fixture.all_count();
}

#[test]
fn a_client_that_comes_later_believes_card_and_witnesses() {
    let mut fixture = Fixture::new(3);
    fixture.meet_all();
    fixture.restart(1, false);
    fixture.meet(1);
    fixture.keep_member_records();
    fixture.forget_the_client();
    fixture.pass(20);
    fixture.meet_all();
    assert_eq!(fixture.forgot(1).as_secs(), 40);
    fixture.forget_the_client();
    fixture.pass(3_600);
    fixture.meet_all();
    fixture.all_count();
}

#[test]
fn booted_with_a_clock_an_hour_behind_then_stepped_right() {
    let mut fixture = Fixture::new(3);
    fixture.meet_all();
    // Part of its record survives, and says by the wrong clock that its new data generation began an hour ago.
    fixture.step(1, -3_600);
    fixture.restart(1, true);
    fixture.meet(1);
    fixture.keep_member_records();
    fixture.step(1, 3_600);
    fixture.pass(2);
    fixture.forget_the_client();
    fixture.meet_all();
    let left = fixture.forgot(1).as_secs();
    assert!((58..=60).contains(&left), "the peers know better: {left}");
    fixture.pass(62);
    fixture.all_count();
}

#[test]
fn a_witness_whose_clock_was_stepped_since_is_not_believed() {
    let mut fixture = Fixture::new(3);
    fixture.meet_all();
    // As above. Also, one of the two peers now seems to have seen the change an hour ago.
    fixture.step(1, -3_600);
    fixture.restart(1, true);
    fixture.meet(1);
    fixture.keep_member_records();
    fixture.step(1, 3_600);
    fixture.step(0, 3_600);
    fixture.pass(2);
    fixture.forget_the_client();
    fixture.meet_all();
    let left = fixture.forgot(1).as_secs();
    assert!((58..=60).contains(&left), "{left}");
}

#[test]
fn what_a_member_said_before_its_latest_word_changes_nothing() {
    let mut fixture = Fixture::new(3);
    fixture.meet_all();
    let (late, then) = (fixture.status(1), fixture.at());
    fixture.pass(1);
    fixture.restart(1, false);
    fixture.meet(1);
    assert!(fixture.counts(1).is_err());
    let learned = fixture.trust.present(1, late, then);
    assert_eq!(learned, Learned::default());
    assert!(fixture.counts(1).is_err(), "the answer was overtaken");
}

#[test]
fn a_card_that_survived_a_restart_of_a_server_that_is_not_durable_proves_nothing() {
    let mut fixture = Fixture::new(3);
    fixture.meet_all();
    fixture.restart(2, true);
    fixture.meet(2);
    let what = Forgetting::Restarted;
    assert_eq!(
        fixture.counts(2),
        Err(UntrustedReason::Forgot { what, until: None })
    );
    fixture.keep_member_records();
    assert!(fixture.forgot(2).as_secs() >= 60);
}

#[test]
fn a_durable_member_goes_on_at_once() {
    let mut fixture = Fixture::new(3);
    fixture.servers[2].durable = true;
    fixture.servers[2].member_record.as_mut().unwrap().durable = true;
    fixture.meet_all();
    let data_generation = fixture.servers[2]
        .member_record
        .as_ref()
        .unwrap()
        .data_generation;
    fixture.restart(2, true);
    fixture.meet(2);
    assert_eq!(fixture.counts(2), Ok(()));
    fixture.keep_member_records();
    let member_record = fixture.servers[2].member_record.as_ref().unwrap();
    assert_eq!(
        (member_record.data_generation, member_record.run.as_str()),
        (data_generation, "1002")
    );
    assert_eq!(fixture.counts(2), Ok(()));
}

#[test]
fn everysec_that_became_always_after_the_crash_was_not_durable_before_it() {
    let mut fixture = Fixture::new(3);
    fixture.meet_all();
    fixture.servers[2].durable = true;
    fixture.restart(2, true);
    fixture.meet(2);
    assert!(fixture.counts(2).is_err());
    fixture.keep_member_records();
    assert!(fixture.forgot(2).as_secs() >= 60);
    assert!(
        fixture.servers[2].member_record.as_ref().unwrap().durable,
        "in this run it is"
    );
}

#[test]
fn a_server_that_ceases_to_be_durable_has_it_on_its_card() {
    let mut fixture = Fixture::new(3);
    fixture.servers[0].member_record.as_mut().unwrap().durable = true;
    fixture.meet_all();
    fixture.keep_member_records();
    assert!(!fixture.servers[0].member_record.as_ref().unwrap().durable);
    fixture.servers[0].durable = true;
    fixture.meet_all();
    fixture.keep_member_records();
    assert!(
        !fixture.servers[0].member_record.as_ref().unwrap().durable,
        "not in this run any more"
    );
}

#[test]
fn a_rolling_restart_takes_out_one_after_the_other() {
    let mut fixture = Fixture::new(3);
    fixture.meet_all();
    for member in 0..3 {
        fixture.restart(member, false);
        fixture.pass(5);
        fixture.meet_all();
        fixture.keep_member_records();
        for other in 0..3 {
            assert_eq!(
                fixture.counts(other).is_err(),
                other == member,
                "m{other} after m{member}"
            );
        }
        fixture.pass(70);
        fixture.meet_all();
        fixture.all_count();
    }
}

#[test]
fn all_restarted_unseen_must_all_wait() {
    let mut fixture = Fixture::new(3);
    for member in 0..3 {
        fixture.restart(member, true);
    }
    fixture.pass(86_400);
    fixture.meet_all();
    fixture.keep_member_records();
    for member in 0..3 {
        assert!(fixture.forgot(member).as_secs() >= 60, "m{member}");
    }
    fixture.pass(62);
    fixture.all_count();
}

#[test]
fn the_restart_of_a_witness_casts_no_doubt_on_those_it_forgot() {
    let mut fixture = Fixture::new(3);
    fixture.meet_all();
    fixture.restart(0, false);
    fixture.meet(0);
    fixture.keep_member_records();
    fixture.forget_the_client();
    fixture.pass(1);
    fixture.meet_all();
    assert!(fixture.counts(0).is_err());
    assert_eq!((fixture.counts(1), fixture.counts(2)), (Ok(()), Ok(())));
}

#[test]
fn one_card_restores_the_others_once_all_answered() {
    let mut fixture = Fixture::new(5);
    for member in 0..4 {
        fixture.restart(member, false);
    }
    for member in 0..4 {
        fixture.meet(member);
    }
    fixture.keep_member_records();
    assert!(
        fixture.servers[0].member_record.is_none(),
        "the fifth may know another set"
    );
    fixture.meet(4);
    fixture.keep_member_records();
    for member in 0..4 {
        assert!(fixture.forgot(member).as_secs() >= 60);
    }
    assert_eq!(fixture.counts(4), Ok(()));
}

#[test]
fn who_vouches_for_a_set_is_asked_again_first() {
    let mut fixture = Fixture::new(3);
    fixture.meet_all();
    fixture.pass(60);
    // In the meantime the configuration changed without this client noticing, and one member lost its record.
    for member in [0, 1] {
        let member_record = fixture.servers[member].member_record.as_mut().unwrap();
        (member_record.set, member_record.generation) = (set(4), 2);
    }
    fixture.restart(2, false);
    fixture.meet(2);
    fixture.keep_member_records();
    assert!(fixture.servers[2].member_record.is_none());
    assert!(matches!(
        fixture.counts(0),
        Err(UntrustedReason::OtherSet { .. })
    ));
}

#[test]
fn a_witness_that_hears_late_lets_nobody_wait_anew() {
    let mut fixture = Fixture::new(3);
    fixture.meet_all();
    // One peer is unreachable for most of the wait.
    let silent = fixture.servers[2].member_record.clone();
    fixture.restart(1, false);
    fixture.meet(1);
    fixture.keep_member_records();
    fixture.servers[2].member_record = silent;
    fixture.pass(70);
    fixture.meet(2);
    fixture.keep_member_records();
    fixture.forget_the_client();
    fixture.pass(1);
    fixture.meet_all();
    fixture.all_count();
}

#[test]
fn a_time_that_a_clock_has_yet_to_reach_is_no_time() {
    let mut fixture = Fixture::new(3);
    fixture.meet_all();
    // The clocks of the member and of one peer are ahead while its new data generation is recorded.
    fixture.restart(1, false);
    fixture.step(1, 3_600);
    fixture.step(2, 3_600);
    fixture.meet(1);
    fixture.meet(2);
    fixture.keep_member_records();
    fixture.step(1, -3_600);
    fixture.step(2, -3_600);
    fixture.forget_the_client();
    fixture.pass(30);
    fixture.meet_all();
    assert!((30..=31).contains(&fixture.forgot(1).as_secs()));
    fixture.pass(40);
    fixture.forget_the_client();
    fixture.meet_all();
    fixture.all_count();
}
