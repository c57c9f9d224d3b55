//! Members that may have forgotten.

use super::*;

#[test]
fn first_client_assumes_that_members_were_flushed() {
    let mut fixture = Fixture::new(3);
    for member in 0..3 {
        fixture.servers[member].member_record = None;
    }
    fixture.meet(0);
    fixture.meet_and_record(2);
    let missing = vec![MemberId::new("m1")];
    assert_eq!(
        fixture.counts(0),
        Err(UntrustedReason::NotFormed { missing })
    );
    fixture.meet_and_record(1);
    for member in 0..3 {
        assert!(fixture.forgot(member).as_secs() >= 60, "m{member}");
    }
    fixture.pass(62);
    fixture.all_count();
}

#[test]
fn member_that_lost_its_data_waits_then_votes() {
    let mut fixture = Fixture::met(3);
    fixture.restart(1, false);
    fixture.pass(1);
    fixture.meet(1);
    fixture.assert_forgot(1, Forgetting::LostRecord);
    fixture.keep_member_records();
    assert_eq!(fixture.forgot(1).as_secs(), 60);
    fixture.pass(60);
    assert!(fixture.counts(1).is_err());
    // An answer to a request from before the end of the wait does not count, whenever it arrives.
    let sent_too_early = fixture.ours();
    fixture.pass(2);
    assert!(
        fixture
            .trust
            .counts(1.into(), sent_too_early, None)
            .is_err()
    );
    fixture.all_count();
}

#[test]
fn new_client_trusts_record_and_peers() {
    let mut fixture = Fixture::met(3);
    fixture.restart_and_record(1, false);
    fixture.replace_client_after(20);
    assert_eq!(fixture.forgot(1).as_secs(), 40);
    fixture.replace_client_after(3_600);
    fixture.all_count();
}

#[test]
fn corrected_clock_does_not_hide_a_restart() {
    for is_peer_stepped in [false, true] {
        let mut fixture = Fixture::met(3);
        // Part of its record survives, and says by the wrong clock that its new data generation began an hour ago.
        fixture.step(1, -3_600);
        fixture.restart_and_record(1, true);
        fixture.step(1, 3_600);
        if is_peer_stepped {
            // One of the two peers now seems to have seen the change an hour ago.
            fixture.step(0, 3_600);
        }
        fixture.replace_client_after(2);
        let left = fixture.forgot(1).as_secs();
        assert!((58..=60).contains(&left), "the peers know better: {left}");
        if !is_peer_stepped {
            fixture.pass(62);
            fixture.all_count();
        }
    }
}

#[test]
fn outdated_status_changes_nothing() {
    let mut fixture = Fixture::met(3);
    let (late, then) = (fixture.status(1), fixture.at());
    fixture.pass(1);
    fixture.restart(1, false);
    fixture.meet(1);
    assert!(fixture.counts(1).is_err());
    let learned = fixture.trust.present(1.into(), late, then);
    assert_eq!(learned, Learned::default());
    assert!(fixture.counts(1).is_err(), "the answer was overtaken");
}

#[test]
fn record_of_restarted_volatile_member_proves_nothing() {
    let mut fixture = Fixture::met(3);
    fixture.restart(2, true);
    fixture.meet(2);
    fixture.assert_forgot(2, Forgetting::Restarted);
    fixture.keep_member_records();
    assert!(fixture.forgot(2).as_secs() >= 60);
}

#[test]
fn a_durable_member_goes_on_at_once() {
    let mut fixture = Fixture::new(3);
    fixture.servers[2].durable = true;
    fixture.record(2).durable = true;
    fixture.meet_all();
    let data_generation = fixture.record(2).data_generation;
    fixture.restart(2, true);
    fixture.meet(2);
    assert_eq!(fixture.counts(2), Ok(()));
    fixture.keep_member_records();
    let member_record = fixture.record(2);
    assert_eq!(
        (member_record.data_generation, member_record.run.as_str()),
        (data_generation, "1002")
    );
    assert_eq!(fixture.counts(2), Ok(()));
}

#[test]
fn durability_after_a_crash_proves_nothing_before_it() {
    let mut fixture = Fixture::met(3);
    fixture.servers[2].durable = true;
    fixture.restart(2, true);
    fixture.meet(2);
    assert!(fixture.counts(2).is_err());
    fixture.keep_member_records();
    assert!(fixture.forgot(2).as_secs() >= 60);
    assert!(fixture.record(2).durable, "in this run it is");
}

#[test]
fn loss_of_durability_is_recorded() {
    let mut fixture = Fixture::new(3);
    fixture.record(0).durable = true;
    fixture.meet_all();
    fixture.keep_member_records();
    assert!(!fixture.record(0).durable);
    fixture.servers[0].durable = true;
    fixture.meet_all();
    fixture.keep_member_records();
    assert!(!fixture.record(0).durable, "not in this run any more");
}

#[test]
fn rolling_restart_excludes_one_member_at_a_time() {
    let mut fixture = Fixture::met(3);
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
fn restarted_peer_does_not_discredit_forgotten_members() {
    let mut fixture = Fixture::met(3);
    fixture.restart_and_record(0, false);
    fixture.replace_client_after(1);
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
    fixture.meet_and_record(4);
    for member in 0..4 {
        assert!(fixture.forgot(member).as_secs() >= 60);
    }
    assert_eq!(fixture.counts(4), Ok(()));
}

#[test]
fn vouching_member_is_asked_again_first() {
    let mut fixture = Fixture::met(3);
    fixture.pass(60);
    // In the meantime the configuration changed without this client noticing, and one member lost its record.
    for member in [0, 1] {
        let member_record = fixture.record(member);
        (member_record.set, member_record.generation) = (set(4), 2);
    }
    fixture.restart_and_record(2, false);
    assert!(fixture.servers[2].member_record.is_none());
    assert!(matches!(
        fixture.counts(0),
        Err(UntrustedReason::OtherSet { .. })
    ));
}

#[test]
fn late_observation_does_not_restart_the_wait() {
    let mut fixture = Fixture::met(3);
    // One peer is unreachable for most of the wait.
    let silent = fixture.servers[2].member_record.clone();
    fixture.restart_and_record(1, false);
    fixture.servers[2].member_record = silent;
    fixture.pass(70);
    fixture.meet_and_record(2);
    fixture.replace_client_after(1);
    fixture.all_count();
}

#[test]
fn times_in_the_future_are_ignored() {
    let mut fixture = Fixture::met(3);
    // The clocks of the member and of one peer are ahead while its new data generation is recorded.
    fixture.restart(1, false);
    fixture.step(1, 3_600);
    fixture.step(2, 3_600);
    fixture.meet(1);
    fixture.meet_and_record(2);
    fixture.step(1, -3_600);
    fixture.step(2, -3_600);
    fixture.replace_client_after(30);
    assert!((30..=31).contains(&fixture.forgot(1).as_secs()));
    fixture.replace_client_after(40);
    fixture.all_count();
}
