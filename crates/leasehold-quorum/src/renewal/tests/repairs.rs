//! What is restored, and what is released again.

use super::*;

#[test]
fn majority_decides_and_a_straggler_is_repaired() {
    let mut scene = Scene::new();
    scene.start(1, &[&held(claim())]);
    scene.answer(0, &[STANDS]);
    scene.answer(1, &[STANDS]);
    assert_eq!(scene.outcome().unwrap(), ["renewed"]);
    assert!(!scene.is_idle());
    scene.answer(2, &[GONE]);
    assert!(scene.outcome().is_none(), "one outcome");
    assert_eq!(scene.repairs(), [(2, 1)]);
    scene.answer(2, &[]);
    assert!(scene.is_idle() && scene.sent.is_empty());
}

#[test]
fn lease_is_repaired_at_trusted_members_that_lost_it() {
    let repairs = |claim: Claim, states: [LeaseState; 3]| {
        let mut scene = Scene::new();
        scene.renew(&held(claim), states);
        scene.repairs()
    };
    assert_eq!(repairs(claim(), [STANDS, GONE, STANDS]), [(1, 1)]);
    assert!(repairs(claim(), [STANDS, TAKEN, STANDS]).is_empty());
    assert!(repairs(claim(), [STANDS, GONE, GONE]).is_empty());
    assert!(repairs(claim().without_healing(), [STANDS, GONE, STANDS]).is_empty());
    let shared = claim().with_mode(Mode::Shared);
    assert!(repairs(shared, [STANDS, GONE, STANDS]).is_empty());

    let mut scene = Scene::new();
    scene.world.restart(1, false);
    scene.world.reconnect(&mut scene.membership, 1);
    scene.renew(&held(claim()), [STANDS, GONE, STANDS]);
    assert!(scene.repairs().is_empty(), "it would not count");
}

#[test]
fn closed_member_is_not_asked_to_repair() {
    let mut scene = Scene::new();
    scene.start(1, &[&held(claim())]);
    scene.answer(1, &[GONE]);
    let error = Error::new(ErrorKind::Unreachable, "connection reset");
    let now = scene.world.ours();
    scene.membership.disconnected(now, 1, error);
    scene.answer(0, &[STANDS]);
    scene.answer(2, &[STANDS]);
    assert!(scene.repairs().is_empty());
    assert!(scene.is_idle());
}

#[test]
fn break_that_reached_a_minority_is_not_undone() {
    let (mut world, mut membership) = World::new(5);
    let mut renewals = Renewals::default();
    let (now, id) = (world.ours(), OperationId(1));
    renewals.start(now, id, vec![held(claim())], &mut membership);
    world.now += Duration::from_millis(1);
    for state in [STANDS, STANDS, STANDS, GONE, BROKEN] {
        let (member, task, _) = renewals.poll_request().unwrap();
        let data = world.sample(member).incarnation;
        let reply = Reply::Renewed(vec![state]);
        let request = (member, task, now);
        renewals.handle_reply(world.ours(), request, &data, reply, &mut membership);
    }
    assert!(matches!(
        renewals.poll_outcome().unwrap().1[..],
        [Renewal::Renewed]
    ));
    assert!(renewals.poll_request().is_none());
}

#[test]
fn lease_that_ended_is_not_repaired() {
    for mode in [ReleaseMode::HandOver, ReleaseMode::Detach] {
        let (mut scene, lease) = (Scene::new(), held(claim()));
        scene.start(1, &[&lease]);
        scene.answer(0, &[STANDS]);
        scene.answer(1, &[STANDS]);
        scene.end(&lease, mode);
        scene.answer(2, &[GONE]);
        assert!(scene.repairs().is_empty());
        assert!(scene.renewals.next_timeout().is_none());
    }
}

#[test]
fn older_renewal_repairs_nothing_after_a_newer_one() {
    let (mut scene, lease) = (Scene::new(), held(claim()));
    scene.start(1, &[&lease]);
    let older = std::mem::take(&mut scene.sent);
    let downgraded = Claim::clone(&lease.claim).with_mode(Mode::Shared);
    let downgraded = held(downgraded);
    scene.start(2, &[&downgraded]);
    scene.sent = older;
    for (member, state) in [STANDS, STANDS, GONE].into_iter().enumerate() {
        scene.answer(member, &[state]);
    }
    assert!(scene.repairs().is_empty());
}

#[test]
fn lease_is_released_again_where_a_repair_was_lost() {
    let (mut scene, lease) = (Scene::new(), held(claim()));
    scene.renew(&lease, [STANDS, GONE, STANDS]);
    scene.lose(1);
    assert!(scene.is_idle() && scene.renewals.next_timeout().is_none());
    scene.world.now += Duration::from_secs(1);
    scene.end(&lease, ReleaseMode::HandOver);
    let due = scene.renewals.next_timeout().unwrap();
    assert_eq!(due.since(scene.world.ours()), TTL.mul_f64(0.9));
    scene.renewals.handle_timeout(due);
    scene.poll();
    let (task, request) = scene.take(1);
    assert_eq!(task, RenewalTask::Free);
    let Request::Release { claim, .. } = request else {
        panic!("{request:?}");
    };
    assert_eq!(claim.owner, lease.claim.owner);
    assert!(scene.renewals.next_timeout().is_none());
}

#[test]
fn repair_lost_after_the_release_is_released_again() {
    let (mut scene, lease) = (Scene::new(), held(claim()));
    scene.renew(&lease, [STANDS, GONE, STANDS]);
    scene.end(&lease, ReleaseMode::HandOver);
    scene.lose(1);
    assert!(scene.renewals.next_timeout().is_some());
}

#[test]
fn lease_is_not_released_again_without_need() {
    let after = |change: fn(&mut Scene, &Held)| {
        let (mut scene, lease) = (Scene::new(), held(claim()));
        scene.renew(&lease, [STANDS, GONE, STANDS]);
        change(&mut scene, &lease);
        scene.renewals.next_timeout()
    };
    let answered = |scene: &mut Scene, lease: &Held| {
        scene.answer(1, &[]);
        scene.end(lease, ReleaseMode::HandOver);
    };
    let answered_later = |scene: &mut Scene, lease: &Held| {
        scene.end(lease, ReleaseMode::HandOver);
        scene.answer(1, &[]);
    };
    let detached = |scene: &mut Scene, lease: &Held| {
        scene.lose(1);
        scene.end(lease, ReleaseMode::Detach);
    };
    let long_ago = |scene: &mut Scene, lease: &Held| {
        scene.lose(1);
        scene.world.now += TTL;
        scene.end(lease, ReleaseMode::HandOver);
    };
    for change in [answered, answered_later, detached, long_ago] {
        assert!(after(change).is_none());
    }
}
