//! Rounds: a majority grants the lease, or everything goes back.

use super::*;

/// The lock is held, and the client does not wait.
pub(super) fn refused() -> Reply {
    Reply::Busy(Refusal::default())
}

#[test]
fn majority_of_grants_holds() {
    let mut fixture = Fixture::new(3);
    let (_, id) = fixture.attempt();
    fixture.reply(0, granted(7));
    assert_eq!(fixture.acquired(id), None);
    fixture.reply(2, granted(7));
    let acquired = fixture.acquired(id).expect("a lease");
    assert_eq!(acquired.fence, fence(7));
}

#[test]
fn round_proposes_one_fence_to_all() {
    let mut fixture = Fixture::new(3);
    let (lock_request, _) = fixture.wait_unanswered();
    for member in 0..3 {
        assert_eq!(
            fixture.asked(member).proposal,
            lock_request.owner.since().as_micros() + 1
        );
    }
}

/// The lease is safe while a majority has it: it counts from the request that completes the majority.
#[test]
fn lease_counts_from_majority_of_latest_sendings() {
    let mut fixture = Fixture::new(3);
    let (lock_request, id) = fixture.wait();
    fixture.notify(0, &lock_request);
    let first = fixture.now().instant;
    fixture.pass(1);
    fixture.notify(1, &lock_request);
    fixture.reply(0, granted(7));
    fixture.reply(1, granted(7));
    assert_eq!(fixture.acquired(id).expect("a lease").term.since, first);
}

#[test]
fn failed_round_gives_back_with_the_ticket() {
    let mut fixture = Fixture::new(3);
    let (lock_request, id) = fixture.wait_unanswered();
    let position = fixture.asked(0).position;
    fixture.reply(0, granted(7));
    fixture.reply(1, busy(1));
    fixture.pass(100);
    // The first granted, the third did not answer, and the second has the entry of the former owner.
    assert_eq!(fixture.kinds(0), ["requeue"]);
    assert_eq!(fixture.kinds(1), ["requeue"]);
    assert_eq!(fixture.kinds(2), ["acquire", "requeue"]);
    let [Request::Release { requeue, .. }] = fixture.sent(0)[..] else {
        panic!("{:?}", fixture.sent(0));
    };
    assert_eq!(position, requeue.map(|it| Position::Ticket(it.ticket)));
    // It is still a waiter.
    fixture.reply(0, released(true));
    fixture.notify(0, &lock_request);
    assert_eq!(fixture.kinds(0), ["acquire"]);
    assert!(fixture.outcome(id).is_none());
}

/// Otherwise the caller would hear nothing until the waiter is the oldest of its client, and give up.
#[test]
fn failed_round_reports_the_wait() {
    let mut fixture = Fixture::new(3);
    fixture.wait_unanswered();
    fixture.reply(0, busy(4));
    fixture.pass(100);
    let [Progress::Busy(busy)] = &fixture.progress()[..] else {
        panic!("no progress");
    };
    assert_eq!(busy.position, Some(4));
}

/// Otherwise fences come out of order.
#[test]
fn reply_from_before_the_give_back_is_void() {
    let mut fixture = Fixture::new(3);
    let (_, id) = fixture.wait_unanswered();
    fixture.reply(0, granted(7));
    fixture.pass(100);
    fixture.reply(1, granted(7));
    fixture.reply(2, granted(7));
    assert!(fixture.outcome(id).is_none());
}

/// A round follows the round trip, which is 0 here, and doubles with each failure.
#[test]
fn round_waits_longer_after_each_failure() {
    let mut fixture = Fixture::new(3);
    let (lock_request, _) = fixture.wait();
    for longest in [10, 20, 40, 80, 160, 320] {
        fixture.notify(0, &lock_request);
        fixture.reply(0, granted(7));
        fixture.pass(longest - 1);
        assert!(fixture.kinds(0).is_empty(), "{longest}");
        fixture.pass(1);
        assert_eq!(fixture.kinds(0), ["requeue"], "{longest}");
        fixture.reply_all(&[0, 1, 2], &released(true));
    }
}

#[test]
fn ttl_out_of_bounds_sends_nothing() {
    let mut fixture = Fixture::new(3);
    let mut lock_request = fixture.lock_request(false);
    lock_request.ttl = Duration::from_secs(61);
    let id = fixture.acquire(&Arc::new(lock_request));
    let error = fixture.failure(id);
    assert_eq!(error.kind(), ErrorKind::InvalidInput);
    assert!((0..3).all(|member| fixture.sent(member).is_empty()));
}

/// An attempt without a ticket does not try again.
#[test]
fn failed_attempt_ends_the_call() {
    let mut fixture = Fixture::new(3);
    let (_, id) = fixture.attempt();
    fixture.reply(0, granted(7));
    fixture.reply(1, refused());
    fixture.reply(2, refused());
    assert!(matches!(fixture.outcome(id), Some(Outcome::Busy(_))));
    assert_eq!(fixture.kinds(0), ["release"]);
    fixture.reply(0, released(true));
    fixture.pass(5_000);
    assert!(fixture.kinds(0).is_empty());
    assert!(fixture.engine.is_idle());
}

#[test]
fn attempt_fails_without_answers_of_a_majority() {
    let mut fixture = Fixture::new(3);
    let (_, id) = fixture.attempt();
    fixture.reply(0, granted(7));
    fixture.pass(501);
    let error = fixture.failure(id);
    assert_eq!(error.kind(), ErrorKind::NoQuorum);
    assert_eq!(error.effect(), Effect::Unknown);
    assert_eq!(error.members().len(), 2);
    for member in 0..3 {
        assert_eq!(fixture.kinds(member).last(), Some(&"release"), "{member}");
    }
}

#[test]
fn grants_after_lease_end_do_not_count() {
    let mut fixture = Fixture::new(3);
    let (lock_request, id) = fixture.wait();
    fixture.notify(0, &lock_request);
    fixture.notify(1, &lock_request);
    fixture.reply(0, granted(7));
    // The process is stopped.
    fixture.pass_without_timers(11_000);
    fixture.reply(1, granted(7));
    assert!(fixture.outcome(id).is_none());
    assert_eq!(fixture.kinds(1).last(), Some(&"requeue"));
}

/// Otherwise fences come out of order: another request may have held the lock since the old grant.
#[test]
fn ended_lease_decides_no_fence() {
    let mut fixture = Fixture::new(3);
    let (lock_request, id) = fixture.wait();
    fixture.notify(1, &lock_request);
    fixture.reply(1, granted(9));
    // The process is stopped.
    fixture.pass_without_timers(9_500);
    fixture.notify(0, &lock_request);
    fixture.notify(2, &lock_request);
    fixture.reply(0, granted(7));
    assert_eq!(fixture.kinds(0), ["requeue"]);
    fixture.reply(2, granted(11));
    assert!(fixture.outcome(id).is_none());
}

/// Starts this many attempts on other locks, and then a wait for a free lock.
fn wait_behind(fixture: &mut Fixture, attempts: usize) -> OperationId {
    for number in 0..attempts {
        let mut other = fixture.lock_request(false);
        other.key = Key::new(format!("other{number}")).unwrap();
        fixture.acquire(&Arc::new(other));
    }
    let lock_request = Arc::new(fixture.lock_request(true));
    fixture.acquire(&lock_request)
}

/// Each of these members grants the attempt that it got first.
fn grant(fixture: &mut Fixture, members: std::ops::Range<usize>) {
    for member in members {
        let [Request::TryAcquire { proposal, .. }, ..] = fixture.sent(member)[..] else {
            panic!("{:?}", fixture.sent(member));
        };
        let granted = granted(*proposal);
        fixture.reply(member, granted);
    }
}

#[test]
fn round_goes_on_while_members_are_at_work() {
    let mut fixture = Fixture::new(5);
    let id = wait_behind(&mut fixture, 10);
    for _ in 0..10 {
        grant(&mut fixture, 0..5);
        fixture.pass(30);
    }
    for member in 0..5 {
        assert_eq!(fixture.kinds(member), ["try"], "{member}");
    }
    grant(&mut fixture, 0..5);
    assert!(fixture.acquired(id).is_some());
}

/// Members that no longer answer end the round after a tenth of a second.
#[test]
fn round_ends_when_members_stop_working() {
    let mut fixture = Fixture::new(5);
    let id = wait_behind(&mut fixture, 1);
    grant(&mut fixture, 0..5);
    grant(&mut fixture, 0..2);
    fixture.pass(99);
    assert!(fixture.kinds(0).is_empty());
    fixture.pass(1);
    assert_eq!(fixture.kinds(0)[..1], ["release"]);
    assert_eq!(fixture.kinds(4)[..2], ["try", "release"]);
    assert!(fixture.outcome(id).is_none());
}
