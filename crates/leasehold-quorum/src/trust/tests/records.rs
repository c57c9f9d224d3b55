//! Members that may have forgotten records, which outlive leases.

use super::*;

/// Whether the member may report that there is no record, if records are kept for `seconds`.
fn remembers(world: &World, member: usize, seconds: u64) -> bool {
    let retention = Duration::from_secs(seconds);
    let verdict = world.trust.remembers(member, world.ours(), retention);
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
fn initialized() -> World {
    let mut world = World::new(3);
    for server in &mut world.servers {
        server.member_record.as_mut().unwrap().since = WallTime::from_micros(0);
    }
    world
}

#[test]
fn initialized_quorum_has_forgotten_no_records() {
    let mut world = initialized();
    world.meet_all();
    for member in 0..3 {
        assert!(remembers(&world, member, DAY * 3_660), "m{member}");
    }
}

#[test]
fn quorum_formed_by_a_client_is_young() {
    let mut world = World::new(3);
    world.meet_all();
    for member in 0..3 {
        assert!(remembers(&world, member, DAY), "m{member}");
        assert!(!remembers(&world, member, 2 * DAY), "m{member}");
    }
}

#[test]
fn members_that_lost_a_majority_are_young() {
    let mut world = initialized();
    for member in [1, 2] {
        world.restart(member, false);
    }
    world.meet_all();
    world.keep_member_records();
    world.pass(1);
    world.meet_all();
    world.keep_member_records();
    world.pass(62);
    // The member that has kept everything is silent.
    world.forget_the_client();
    for member in [1, 2] {
        world.meet(member);
    }
    for member in [1, 2] {
        assert_eq!(world.counts(member), Ok(()));
        assert!(!remembers(&world, member, DAY), "m{member}");
    }
}

#[test]
fn member_with_a_new_disk_is_too_young_for_records() {
    let mut world = World::new(3);
    world.meet_all();
    world.restart(1, false);
    world.meet(1);
    world.keep_member_records();
    world.pass(62);
    for a_new_client in [false, true] {
        if a_new_client {
            world.forget_the_client();
            world.meet_all();
        }
        world.all_count();
        assert!(!remembers(&world, 1, DAY), "{a_new_client}");
        assert!(remembers(&world, 0, DAY) && remembers(&world, 2, DAY));
    }
    world.pass(DAY as i64);
    assert!(!remembers(&world, 1, DAY), "and twice the wait for leases");
    world.pass(122 - 62);
    assert!(remembers(&world, 1, DAY));
    assert!(!remembers(&world, 1, 2 * DAY));
}

#[test]
fn clock_set_ahead_makes_no_member_old() {
    let mut world = World::new(3);
    world.meet_all();
    world.restart(1, false);
    world.meet(1);
    world.keep_member_records();
    world.pass(62);
    world.step(1, 2 * DAY as i64);
    world.forget_the_client();
    world.meet_all();
    assert!(!remembers(&world, 1, DAY));
}
