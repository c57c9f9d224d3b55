//! What is restored, and what is released again.

use super::*;

#[test]
fn majority_decides_and_a_straggler_is_repaired() {
    let mut fixture = Fixture::new();
    fixture.start(1, &[&held(lock_request())]);
    fixture.answer(0, &[STANDS]);
    fixture.answer(1, &[STANDS]);
    assert_eq!(fixture.outcome().unwrap(), ["renewed"]);
    assert!(!fixture.is_idle());
    fixture.answer(2, &[GONE]);
    assert!(fixture.outcome().is_none(), "one outcome");
    assert_eq!(fixture.repairs(), [(2, 1)]);
    fixture.answer(2, &[]);
    assert!(fixture.is_idle() && fixture.sent.is_empty());
}

#[test]
fn lease_is_repaired_at_trusted_members() {
    let repairs = |lock_request: LockRequest, states: [LeaseState; 3]| {
        let mut fixture = Fixture::new();
        fixture.renew(&held(lock_request), states);
        fixture.repairs()
    };
    assert_eq!(repairs(lock_request(), [STANDS, GONE, STANDS]), [(1, 1)]);
    assert!(repairs(lock_request(), [STANDS, TAKEN, STANDS]).is_empty());
    assert!(repairs(lock_request(), [STANDS, GONE, GONE]).is_empty());
    assert!(repairs(lock_request().without_repair(), [STANDS, GONE, STANDS]).is_empty());
    let shared = lock_request().with_mode(Mode::Shared);
    assert!(repairs(shared, [STANDS, GONE, STANDS]).is_empty());

    let mut fixture = Fixture::new();
    fixture.quorum.restart(1, false);
    fixture.quorum.reconnect(&mut fixture.net.membership, 1);
    fixture.renew(&held(lock_request()), [STANDS, GONE, STANDS]);
    assert!(fixture.repairs().is_empty(), "it would not count");
}

#[test]
fn closed_member_is_not_asked_to_repair() {
    let mut fixture = Fixture::new();
    fixture.start(1, &[&held(lock_request())]);
    fixture.answer(1, &[GONE]);
    let error = Error::new(ErrorKind::Unreachable, "connection reset");
    let now = fixture.quorum.ours();
    fixture.net.membership.disconnected(now, 1.into(), error);
    fixture.answer(0, &[STANDS]);
    fixture.answer(2, &[STANDS]);
    assert!(fixture.repairs().is_empty());
    assert!(fixture.is_idle());
}

#[test]
fn break_that_reached_a_minority_is_not_undone() {
    let mut fixture = Fixture::of(5);
    fixture.start(1, &[&held(lock_request())]);
    for (member, state) in [STANDS, STANDS, STANDS, GONE, BROKEN]
        .into_iter()
        .enumerate()
    {
        fixture.answer(member, &[state]);
    }
    assert_eq!(fixture.outcome().unwrap(), ["renewed"]);
    assert!(fixture.sent.is_empty());
}

#[test]
fn lease_that_ended_is_not_repaired() {
    for mode in [ReleaseMode::HandOver, ReleaseMode::Detach] {
        let (mut fixture, lease) = (Fixture::new(), held(lock_request()));
        fixture.start(1, &[&lease]);
        fixture.answer(0, &[STANDS]);
        fixture.answer(1, &[STANDS]);
        fixture.end(&lease, mode);
        fixture.answer(2, &[GONE]);
        assert!(fixture.repairs().is_empty());
        assert!(fixture.renewals.timer.is_none());
    }
}

#[test]
fn older_renewal_repairs_nothing_after_a_newer_one() {
    let (mut fixture, lease) = (Fixture::new(), held(lock_request()));
    fixture.start(1, &[&lease]);
    let older = std::mem::take(&mut fixture.sent);
    let downgraded = LockRequest::clone(&lease.request).with_mode(Mode::Shared);
    let downgraded = held(downgraded);
    fixture.start(2, &[&downgraded]);
    fixture.sent = older;
    for (member, state) in [STANDS, STANDS, GONE].into_iter().enumerate() {
        fixture.answer(member, &[state]);
    }
    assert!(fixture.repairs().is_empty());
}

#[test]
fn lost_repair_is_followed_by_a_release() {
    let (mut fixture, lease) = (Fixture::new(), held(lock_request()));
    fixture.renew(&lease, [STANDS, GONE, STANDS]);
    fixture.lose(1);
    assert!(fixture.is_idle() && fixture.renewals.timer.is_none());
    fixture.quorum.now += Duration::from_secs(1);
    fixture.end(&lease, ReleaseMode::HandOver);
    let due = fixture.renewals.timer.unwrap();
    assert_eq!(due.since(fixture.quorum.ours()), TTL.mul_f64(0.9));
    fixture.net.now.instant = due;
    fixture.renewals.wake(&mut fixture.net);
    fixture.poll();
    let (task, request) = fixture.take(1);
    assert_eq!(task, RenewalTask::Free);
    let Request::Release { lock_request, .. } = request else {
        panic!("{request:?}");
    };
    assert_eq!(lock_request.owner, lease.request.owner);
    assert!(fixture.renewals.timer.is_none());
}

#[test]
fn repair_lost_after_the_release_is_released_again() {
    let (mut fixture, lease) = (Fixture::new(), held(lock_request()));
    fixture.renew(&lease, [STANDS, GONE, STANDS]);
    fixture.end(&lease, ReleaseMode::HandOver);
    fixture.lose(1);
    assert!(fixture.renewals.timer.is_some());
}

#[test]
fn lease_is_not_released_again_without_need() {
    let after = |change: fn(&mut Fixture, &Held)| {
        let (mut fixture, lease) = (Fixture::new(), held(lock_request()));
        fixture.renew(&lease, [STANDS, GONE, STANDS]);
        change(&mut fixture, &lease);
        fixture.renewals.timer
    };
    let answered = |fixture: &mut Fixture, lease: &Held| {
        fixture.answer(1, &[]);
        fixture.end(lease, ReleaseMode::HandOver);
    };
    let answered_later = |fixture: &mut Fixture, lease: &Held| {
        fixture.end(lease, ReleaseMode::HandOver);
        fixture.answer(1, &[]);
    };
    let detached = |fixture: &mut Fixture, lease: &Held| {
        fixture.lose(1);
        fixture.end(lease, ReleaseMode::Detach);
    };
    let long_ago = |fixture: &mut Fixture, lease: &Held| {
        fixture.lose(1);
        fixture.quorum.now += TTL;
        fixture.end(lease, ReleaseMode::HandOver);
    };
    for change in [answered, answered_later, detached, long_ago] {
        assert!(after(change).is_none());
    }
}
