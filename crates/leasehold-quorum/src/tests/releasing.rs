//! Releases, and what ended attempts leave behind.

use super::*;

/// The release freed the lock, and granted it to the successor with the fence 8.
fn granted_to_successor() -> Reply {
    Reply::Released {
        freed: true,
        successor: Some((fence(8), None)),
    }
}

fn successor(fixture: &Fixture, member: usize) -> Option<Owner> {
    match fixture.sent(member).last() {
        Some(Request::Release { successor, .. }) => Some(successor.as_ref()?.lock_request.owner),
        other => panic!("{other:?}"),
    }
}

#[test]
fn majority_decides_a_release() {
    let mut fixture = Fixture::new(3);
    let lock_request = fixture.held();
    let id = fixture.release(&lock_request);
    assert_eq!(fixture.kinds(0), ["free"]);
    fixture.reply(0, released(true));
    assert!(fixture.outcome(id).is_none());
    fixture.reply(1, released(true));
    assert_eq!(fixture.released(id), ReleaseReply::Released);
    assert!(!fixture.engine.is_idle());
    fixture.reply(2, released(true));
    assert!(fixture.engine.is_idle());
}

/// A free may answer that it changed nothing. The client may be gone by then.
#[test]
fn ending_client_needs_no_further_request() {
    let mut fixture = Fixture::new(3);
    let lock_request = fixture.held();
    fixture.release(&lock_request);
    assert!(!fixture.engine.is_decided());
    fixture.reply_all(&[0, 1], &released(true));
    assert!(fixture.engine.is_decided() && !fixture.engine.is_idle());
    let now = fixture.now();
    fixture.engine.repeat_releases(now);
    fixture.poll();
    assert_eq!(fixture.kinds(2), ["free", "release"]);
    assert!(fixture.kinds(0).is_empty());
    fixture.engine.repeat_releases(now);
    fixture.poll();
    assert_eq!(fixture.kinds(2), ["free", "release", "release"]);
}

#[test]
fn lease_that_a_majority_lost_was_lost() {
    let mut fixture = Fixture::new(3);
    let lock_request = fixture.held();
    let id = fixture.release(&lock_request);
    fixture.reply_all(&[0, 1], &released(false));
    assert_eq!(fixture.released(id), ReleaseReply::WasLost);
}

#[test]
fn release_names_the_oldest_waiter_of_its_client() {
    let mut fixture = Fixture::new(3);
    let lock_request = fixture.held();
    let (first, id) = fixture.wait();
    fixture.pass(1);
    let (second, _) = fixture.wait();
    // The first has a request in flight at this member.
    fixture.notify(2, &first);
    fixture.release(&lock_request);
    assert_eq!(successor(&fixture, 0), Some(first.owner));
    assert_eq!(successor(&fixture, 2), Some(second.owner));
    fixture.reply_all(&[0, 1], &granted_to_successor());
    assert_eq!(fixture.acquired(id).expect("a lease").fence, fence(8));
}

/// The successor's lease counts from the release that named it.
#[test]
fn successor_counts_from_the_release() {
    let mut fixture = Fixture::new(1);
    let lock_request = fixture.held();
    let (_, id) = fixture.wait();
    fixture.pass(5);
    let sent = fixture.now().instant;
    fixture.release(&lock_request);
    fixture.pass(5);
    fixture.reply(0, granted_to_successor());
    assert_eq!(fixture.acquired(id).expect("a lease").term.since, sent);
}

/// In a gap for other libraries, the release notifies the waiter that it named, and grants it nothing.
#[test]
fn successor_that_got_a_turn_asks() {
    let mut fixture = Fixture::new(1);
    let lock_request = fixture.held();
    let (waiter, _) = fixture.wait();
    fixture.release(&lock_request);
    assert_eq!(successor(&fixture, 0), Some(waiter.owner));
    fixture.notify(0, &waiter);
    fixture.reply(0, released(true));
    fixture.pass(0);
    assert_eq!(fixture.kinds(0), ["acquire"]);
}

#[test]
fn successor_that_holds_does_not_ask_again() {
    let mut fixture = Fixture::new(1);
    let lock_request = fixture.held();
    fixture.wait_unanswered();
    let queued = Refusal {
        ask_again: Some(Duration::from_millis(300)),
        ..members::still_waits()
    };
    fixture.reply(0, Reply::Busy(queued));
    fixture.release(&lock_request);
    fixture.reply(0, granted_to_successor());
    fixture.pass(500);
    assert!(fixture.kinds(0).is_empty());
}

/// Otherwise the lock passes to a waiter that cannot get a majority and leaves only afterwards.
#[test]
fn failed_attempt_of_a_minority_names_no_successor() {
    let mut fixture = Fixture::new(3);
    fixture.wait();
    let (attempt, _) = fixture.attempt();
    fixture.disconnect(0);
    fixture.disconnect(1);
    let sent = fixture.sent(2);
    let mut named = sent.into_iter().filter_map(|request| match request {
        Request::Release {
            lock_request,
            successor,
            ..
        } if lock_request.owner == attempt.owner => Some(successor.is_some()),
        _ => None,
    });
    assert_eq!(named.next(), Some(false));
}

#[test]
fn late_grant_after_the_release_is_released() {
    let mut fixture = Fixture::new(3);
    let (lock_request, id) = fixture.attempt();
    fixture.reply_all(&[0, 1], &granted(7));
    fixture.acquired(id).expect("a lease");
    fixture.release(&lock_request);
    // The release follows the attempt on the same connection.
    assert_eq!(fixture.kinds(2), ["try", "free"]);
    fixture.reply(2, granted(7));
    fixture.reply(2, released(true));
    assert!(fixture.kinds(2).is_empty());
}

#[test]
fn cancelled_attempt_is_released_wherever_it_was_asked() {
    let mut fixture = Fixture::new(3);
    let (_, id) = fixture.attempt();
    fixture.reply(0, granted(7));
    fixture.reply(1, refused());
    fixture.cancel(id);
    assert_eq!(fixture.kinds(0), ["release"]);
    assert!(fixture.kinds(1).is_empty());
    assert_eq!(fixture.kinds(2), ["try", "release"]);
    fixture.reply(2, granted(7));
    fixture.reply(2, released(true));
    fixture.reply(0, released(true));
    assert!(fixture.outcome(id).is_none());
    assert!(fixture.engine.is_idle());
}

/// A wait that ends hands the lock over.
#[test]
fn cancelled_wait_names_the_next_waiter() {
    let mut fixture = Fixture::new(3);
    let (_, id) = fixture.wait();
    let (next, _) = fixture.wait();
    fixture.cancel(id);
    assert_eq!(fixture.kinds(0), ["release"]);
    assert_eq!(successor(&fixture, 0), Some(next.owner));
}

#[test]
fn cancel_takes_back_a_grant_not_yet_told() {
    let mut fixture = Fixture::new(1);
    let lock_request = Arc::new(fixture.lock_request(false));
    let id = fixture.acquire(&lock_request);
    let (request, _) = fixture.sent[0].pop_front().unwrap();
    fixture.reply_to(0, request, granted(7));
    fixture.cancel(id);
    assert!(fixture.outcome(id).is_none());
    assert_eq!(fixture.kinds(0), ["release"]);
}

/// It may be an entry that was left behind. Anyone may publish a message, so it ends no lease.
#[test]
fn unknown_waiter_is_dequeued_where_it_was_notified() {
    let mut fixture = Fixture::new(3);
    let (lock_request, id) = fixture.wait();
    fixture.cancel(id);
    fixture.reply_all(&[0, 1, 2], &released(false));
    fixture.notify(1, &lock_request);
    assert_eq!(fixture.kinds(1), ["dequeue"]);
    assert!(fixture.kinds(0).is_empty());
}

/// A client that got a lease from another process is not connected when it releases the lease.
#[test]
fn release_waits_for_the_first_connection() {
    let mut fixture = Fixture::disconnected(3);
    let lock_request = Arc::new(fixture.lock_request(false));
    let id = fixture.release(&lock_request);
    assert!(fixture.outcome(id).is_none());
    (0..3).for_each(|member| fixture.connect(member));
    fixture.reply_all(&[0, 1], &released(true));
    assert!(matches!(fixture.outcome(id), Some(Outcome::Released(_))));
}

#[test]
fn release_without_connection_fails_in_time() {
    let mut fixture = Fixture::disconnected(3);
    let lock_request = Arc::new(fixture.lock_request(false));
    let id = fixture.release(&lock_request);
    fixture.pass(2_000);
    assert!(matches!(fixture.outcome(id), Some(Outcome::Failed(_))));
}

#[test]
fn detached_lease_is_left_alone() {
    let mut fixture = Fixture::new(3);
    let lock_request = fixture.held();
    fixture.detach(&lock_request);
    assert!((0..3).all(|member| fixture.kinds(member).is_empty()));
}

#[test]
fn contended_member_gets_the_whole_release() {
    let mut fixture = Fixture::new(3);
    let lock_request = fixture.held();
    let id = fixture.release(&lock_request);
    fixture.reply_all(&[0, 1], &Reply::Contended);
    assert_eq!(fixture.kinds(0), ["release"]);
    assert_eq!(fixture.kinds(2), ["free"]);
    fixture.reply(0, released(true));
    assert!(fixture.outcome(id).is_none());
    fixture.reply(1, released(true));
    assert!(fixture.outcome(id).is_some());
    fixture.reply(2, Reply::Contended);
    fixture.reply(2, released(true));
    assert!(fixture.engine.is_idle());
}

#[test]
fn contended_member_that_is_late_gets_the_release() {
    let mut fixture = Fixture::new(3);
    let lock_request = fixture.held();
    let id = fixture.release(&lock_request);
    fixture.pass(60_000);
    assert!(matches!(fixture.outcome(id), Some(Outcome::Failed(_))));
    fixture.reply(0, Reply::Contended);
    assert!(
        fixture.kinds(0).contains(&"release"),
        "{:?}",
        fixture.kinds(0)
    );
}

/// Otherwise the entry stays there until its turn.
#[test]
fn detached_lease_leaves_the_other_queues() {
    let mut fixture = Fixture::new(3);
    let (lock_request, id) = fixture.wait();
    for member in [0, 2] {
        fixture.notify(member, &lock_request);
        fixture.reply(member, granted(7));
    }
    fixture.acquired(id).expect("a lease");
    fixture.detach(&lock_request);
    assert_eq!(fixture.kinds(1), ["dequeue"]);
    assert!(fixture.kinds(0).is_empty() && fixture.kinds(2).is_empty());
}

/// A repair may have given the lease to this member.
#[test]
fn detached_lease_stays_at_a_repaired_member() {
    let mut fixture = Fixture::new(3);
    let (mut lock_request, _) = fixture.wait_unanswered();
    let repairs = Arc::make_mut(&mut lock_request);
    repairs.repairs = true;
    fixture.reply(1, busy(1));
    fixture.reply_all(&[0, 2], &granted(7));
    fixture.renew(&lock_request);
    fixture.reply_all(&[0, 2], &Reply::Renewed(vec![LeaseState::Renewed]));
    let gone = LeaseState::Lost(LostReason::Gone);
    fixture.reply(1, Reply::Renewed(vec![gone]));
    assert_eq!(fixture.kinds(1), ["repair"]);
    fixture.reply(1, Reply::Repaired(vec![true]));
    fixture.detach(&lock_request);
    assert_eq!(fixture.kinds(1), ["dequeue"]);
}

/// A member that refuses at once must not end the release before the others are asked.
#[test]
fn release_reaches_members_behind_a_full_one() {
    let mut fixture = Fixture::new(3);
    let (first, _) = fixture.attempt();
    fixture.reply_all(&[0, 1, 2], &granted(7));
    // A member at work would hold the attempts up.
    fixture.pass_without_timers(200);
    for number in 0..1_200 {
        let mut lock_request = fixture.lock_request(false);
        lock_request.key = Key::new(format!("lock {number}")).unwrap();
        fixture.acquire(&Arc::new(lock_request));
        fixture.reply_all(&[1, 2], &granted(7));
    }
    fixture.release(&first);
    assert_eq!(fixture.kinds(1), ["free"]);
    assert_eq!(fixture.kinds(2), ["free"]);
}

fn unconfirmed(fixture: &Fixture) -> usize {
    fixture.engine.unconfirmed_releases(fixture.now().instant)
}

#[test]
fn release_is_unconfirmed_while_a_majority_may_lack_it() {
    let mut fixture = Fixture::new(3);
    let lock_request = fixture.held();
    assert_eq!(unconfirmed(&fixture), 0);
    fixture.release(&lock_request);
    assert_eq!(unconfirmed(&fixture), 1);
    fixture.reply(0, released(true));
    fixture.disconnect(1);
    fixture.disconnect(2);
    assert_eq!(unconfirmed(&fixture), 1, "two are owed it");
    fixture.connect(1);
    assert_eq!(fixture.kinds(1), ["release"]);
    assert_eq!(unconfirmed(&fixture), 1);
    fixture.reply(1, released(true));
    assert_eq!(unconfirmed(&fixture), 0);
    fixture.disconnect(0);
    assert_eq!(unconfirmed(&fixture), 0);
}

/// A member that was never asked cannot have a lease of this client, but one that another client took.
#[test]
fn release_before_the_first_connection_concerns_other_clients() {
    let mut fixture = Fixture::disconnected(1);
    let own = Arc::new(fixture.lock_request(false));
    fixture.release(&own);
    let other = Owner::random(ClientId::random(&*fixture.entropy), &*fixture.entropy);
    let adopted = fixture.lock_request(false).with_owner(other);
    fixture.release(&Arc::new(adopted));
    // No connection is awaited any longer.
    fixture.pass(5_000);
    assert_eq!(unconfirmed(&fixture), 1);
}

/// The command ends with its first failure, and the lock would stay taken.
#[test]
fn lost_attempt_is_an_unconfirmed_release() {
    let mut fixture = Fixture::new(1);
    let (_, id) = fixture.attempt();
    fixture.disconnect(0);
    assert!(matches!(fixture.outcome(id), Some(Outcome::Failed(_))));
    assert_eq!(unconfirmed(&fixture), 1);
    fixture.connect(0);
    fixture.reply(0, released(true));
    assert_eq!(unconfirmed(&fixture), 0);
    fixture.attempt();
    fixture.disconnect(0);
    fixture.pass(TTL.as_millis() as u64);
    assert_eq!(unconfirmed(&fixture), 0, "the lease is over");
}
