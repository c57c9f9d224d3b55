//! Clocks that were stepped, and machines that were suspended.

use super::*;

#[test]
fn stepped_clock_excludes_member_for_max_ttl() {
    let mut fixture = Fixture::met(3);
    for (member, by) in [(1, 3), (2, -3)] {
        fixture.pass(5);
        fixture.step(member, by);
        fixture.meet(member);
        let Err(UntrustedReason::WrongClock {
            what: ClockFault::Stepped(skew),
            until,
        }) = fixture.counts(member)
        else {
            panic!("m{member}: {:?}", fixture.counts(member));
        };
        assert_eq!(skew.span().as_millis().div_ceil(100), 30, "{skew}");
        assert_eq!(until, fixture.ours() + MAX_TTL);
        // Although it is back in step at once, the member is excluded.
        fixture.step(member, -by);
        fixture.pass(59);
        assert!(fixture.counts(member).is_err());
        fixture.pass(2);
        assert_eq!(fixture.counts(member), Ok(()));
        fixture.meet_all();
        fixture.pass(61);
        fixture.meet_all();
    }
}

#[test]
fn new_client_finds_stepped_clock_by_median() {
    let mut fixture = Fixture::new(5);
    fixture.step(3, 2);
    fixture.meet(3);
    fixture.meet(0);
    assert_eq!(fixture.counts(3), Ok(()), "nobody knows yet");
    fixture.meet(1);
    let text = fixture.counts(3).unwrap_err().to_string();
    assert_eq!(text, "its clock is 2s ahead of the other servers");
    assert_eq!(fixture.counts(0), Ok(()));
}

#[test]
fn two_differing_clocks_exclude_neither_for_long() {
    let mut fixture = Fixture::new(3);
    fixture.step(1, 2);
    fixture.meet(0);
    fixture.meet(1);
    assert_eq!(
        [0, 1]
            .iter()
            .filter(|m| fixture.counts(**m).is_err())
            .count(),
        0,
        "asked from now on"
    );
    let earlier = fixture.ours() - Duration::from_millis(1);
    let counted = |member: usize| fixture.trust.counts(member.into(), earlier, None).is_ok();
    assert_eq!(
        usize::from(counted(0)) + usize::from(counted(1)),
        1,
        "no majority"
    );
    fixture.meet(2);
    assert!(fixture.counts(1).is_err());
    assert_eq!((fixture.counts(0), fixture.counts(2)), (Ok(()), Ok(())));
}

#[test]
fn drift_while_idle_excludes_no_member() {
    let mut fixture = Fixture::met(5);
    for seconds in [1, 9, 59, 3_600, 86_400] {
        fixture.pass(seconds);
        // 100 parts in a million.
        fixture.behind += seconds * 100;
        fixture.meet_all();
        fixture.all_count();
    }
}

#[test]
fn unnoticed_suspension_is_reported_and_excludes_no_member() {
    let mut fixture = Fixture::met(5);
    fixture.pass(3);
    // The machine is suspended for 40 s, and its clock with it.
    fixture.pass(40);
    fixture.behind += 40 * SECOND as i64;
    assert_eq!(fixture.meet(0).paused, None);
    assert_eq!(fixture.meet(1).paused, None);
    assert!(
        fixture.counts(0).is_err(),
        "as yet it is the member that is out of step"
    );
    let found = fixture.meet(2).paused.expect("a majority moved together");
    assert!((39..=40).contains(&found.as_secs()), "{found:?}");
    fixture.behind -= found.as_micros() as i64;
    fixture.all_count();
    fixture.pass(1);
    for member in 0..5 {
        assert_eq!(fixture.meet(member).paused, None);
    }
    fixture.all_count();
}

#[test]
fn single_server_cannot_reveal_our_suspension() {
    let mut fixture = Fixture::new(3);
    let alone = MemberSet::new(ids(1), MAX_TTL, TOLERANCE);
    fixture.trust = Trust::new(ids(1), alone, false);
    fixture.servers[0].member_record = None;
    fixture.meet(0);
    fixture.step(0, 3_600);
    assert_eq!(fixture.meet(0).paused, None);
    assert_eq!(fixture.counts(0), Ok(()));
}
