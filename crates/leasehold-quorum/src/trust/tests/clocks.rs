//! Clocks that were stepped, and machines that were suspended.

use super::*;

#[test]
fn a_clock_stepped_between_two_answers_is_out_for_one_max_ttl() {
    let mut world = World::new(3);
    world.meet_all();
    for (member, by) in [(1, 3), (2, -3)] {
        world.pass(5);
        world.step(member, by);
        world.meet(member);
        let Err(UntrustedReason::WrongClock {
            what: ClockFault::Stepped(skew),
            until,
        }) = world.counts(member)
        else {
            panic!("m{member}: {:?}", world.counts(member));
        };
        assert_eq!(skew.span().as_millis().div_ceil(100), 30, "{skew}");
        assert_eq!(until, world.ours() + MAX_TTL);
        // Although it is back in step at once, the member is excluded.
        world.step(member, -by);
        world.pass(59);
        assert!(world.counts(member).is_err());
        world.pass(2);
        assert_eq!(world.counts(member), Ok(()));
        world.meet_all();
        world.pass(61);
        world.meet_all();
    }
}

#[test]
fn a_new_client_finds_the_stepped_clock_by_the_median() {
    let mut world = World::new(5);
    world.step(3, 2);
    world.meet(3);
    world.meet(0);
    assert_eq!(world.counts(3), Ok(()), "nobody knows yet");
    world.meet(1);
    let text = world.counts(3).unwrap_err().to_string();
    assert_eq!(text, "its clock is 2.0s ahead of the other servers");
    assert_eq!(world.counts(0), Ok(()));
}

#[test]
fn of_two_that_differ_neither_is_blamed_for_long() {
    let mut world = World::new(3);
    world.step(1, 2);
    world.meet(0);
    world.meet(1);
    assert_eq!(
        [0, 1].iter().filter(|m| world.counts(**m).is_err()).count(),
        0,
        "asked from now on"
    );
    let earlier = world.ours() - Duration::from_millis(1);
    let counted = |member: usize| world.trust.counts(member, earlier, None).is_ok();
    assert_eq!(
        usize::from(counted(0)) + usize::from(counted(1)),
        1,
        "no majority"
    );
    world.meet(2);
    assert!(world.counts(1).is_err());
    assert_eq!((world.counts(0), world.counts(2)), (Ok(()), Ok(())));
}

#[test]
fn a_client_that_was_idle_with_a_drifting_clock_distrusts_nobody() {
    let mut world = World::new(5);
    world.meet_all();
    for seconds in [1, 9, 59, 3_600, 86_400] {
        world.pass(seconds);
        // 100 parts in a million.
        world.behind += seconds * 100;
        world.meet_all();
        world.all_count();
    }
}

#[test]
fn a_machine_that_was_suspended_unnoticed_is_told_so_and_distrusts_nobody() {
    let mut world = World::new(5);
    world.meet_all();
    world.pass(3);
    // The machine is suspended for 40 s, and its clock with it.
    world.pass(40);
    world.behind += 40 * SECOND as i64;
    assert_eq!(world.meet(0).stood_still, None);
    assert_eq!(world.meet(1).stood_still, None);
    assert!(
        world.counts(0).is_err(),
        "as yet it is the member that is out of step"
    );
    let found = world
        .meet(2)
        .stood_still
        .expect("a majority moved together");
    assert!((39..=40).contains(&found.as_secs()), "{found:?}");
    world.behind -= found.as_micros() as i64;
    world.all_count();
    world.pass(1);
    for member in 0..5 {
        assert_eq!(world.meet(member).stood_still, None);
    }
    world.all_count();
}

#[test]
fn a_server_by_itself_cannot_tell_us_that_we_stood_still() {
    let mut world = World::new(3);
    let alone = MemberSet::new(ids(1), MAX_TTL, TOLERANCE);
    world.trust = Trust::new(ids(1), alone, false);
    world.servers[0].member_record = None;
    world.meet(0);
    world.step(0, 3_600);
    assert_eq!(world.meet(0).stood_still, None);
    assert_eq!(world.counts(0), Ok(()));
}
