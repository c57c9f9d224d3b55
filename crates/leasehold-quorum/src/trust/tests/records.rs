//! Members that may have forgotten records, which outlive leases.

use super::*;

/// Whether the member may report that there is no record, if records are kept for `seconds`.
fn remembers(fixture: &Fixture, member: usize, seconds: u64) -> bool {
    let retention = Duration::from_secs(seconds);
    let verdict = fixture
        .trust
        .remembers(member.into(), fixture.ours(), retention);
    if let Err(reason) = &verdict {
        assert!(
            matches!(reason, UntrustedReason::Young { .. }),
            "{reason:?}"
        );
    }
    verdict.is_ok()
}

const DAY: u64 = 86_400;

/// An operator initialized the quorum, so its members never held anything.
fn initialized() -> Fixture {
    let mut fixture = Fixture::new(3);
    for server in &mut fixture.servers {
        server.member_record.as_mut().unwrap().since = WallTime::from_micros(0);
    }
    fixture
}

#[test]
fn initialized_quorum_has_forgotten_no_records() {
    let mut fixture = initialized();
    fixture.meet_all();
    for member in 0..3 {
        assert!(remembers(&fixture, member, DAY * 3_660), "m{member}");
    }
}

#[test]
fn quorum_formed_by_a_client_is_young() {
    let fixture = Fixture::met(3);
    for member in 0..3 {
        assert!(remembers(&fixture, member, DAY), "m{member}");
        assert!(!remembers(&fixture, member, 2 * DAY), "m{member}");
    }
}

#[test]
fn clients_uptime_does_not_limit_what_members_remember() {
    let mut fixture = Fixture::new(3);
    // This machine booted ten minutes ago.
    fixture.behind = fixture.now - 600 * SECOND as i64;
    fixture.meet_all();
    for member in 0..3 {
        let known = fixture.trust.remembers_for(member.into(), fixture.ours());
        assert!(known >= Some(Duration::from_secs(DAY)), "{known:?}");
        assert!(remembers(&fixture, member, DAY), "m{member}");
        assert!(!remembers(&fixture, member, 2 * DAY), "m{member}");
    }
}

#[test]
fn change_of_members_forgets_no_records() {
    let mut fixture = initialized();
    for server in &mut fixture.servers {
        server.member_record.as_mut().unwrap().generation = 2;
    }
    fixture.behind = fixture.now - 600 * SECOND as i64;
    fixture.meet_all();
    for member in 0..3 {
        assert!(remembers(&fixture, member, DAY * 3_660), "m{member}");
    }
}

#[test]
fn members_that_lost_a_majority_are_young() {
    let mut fixture = initialized();
    for member in [1, 2] {
        fixture.restart(member, false);
    }
    fixture.meet_all();
    fixture.keep_member_records();
    fixture.pass(1);
    fixture.meet_all();
    fixture.keep_member_records();
    fixture.pass(62);
    // The member that has kept everything is silent.
    fixture.forget_the_client();
    for member in [1, 2] {
        fixture.meet(member);
    }
    for member in [1, 2] {
        assert_eq!(fixture.counts(member), Ok(()));
        assert!(!remembers(&fixture, member, DAY), "m{member}");
    }
}

#[test]
fn new_member_is_too_young_for_records() {
    let mut fixture = Fixture::met(3);
    fixture.restart_and_record(1, false);
    fixture.pass(62);
    for a_new_client in [false, true] {
        if a_new_client {
            fixture.replace_client_after(0);
        }
        fixture.all_count();
        assert!(!remembers(&fixture, 1, DAY), "{a_new_client}");
        assert!(remembers(&fixture, 0, DAY) && remembers(&fixture, 2, DAY));
    }
    fixture.pass(DAY as i64);
    assert!(
        !remembers(&fixture, 1, DAY),
        "and twice the wait for leases"
    );
    fixture.pass(122 - 62);
    assert!(remembers(&fixture, 1, DAY));
    assert!(!remembers(&fixture, 1, 2 * DAY));
}

#[test]
fn clock_set_ahead_makes_no_member_old() {
    let mut fixture = Fixture::met(3);
    fixture.restart_and_record(1, false);
    fixture.pass(62);
    fixture.step(1, 2 * DAY as i64);
    fixture.replace_client_after(0);
    assert!(!remembers(&fixture, 1, DAY));
}
