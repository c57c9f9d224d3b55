use super::line::Line;
use super::*;

#[test]
fn whoever_the_lock_was_kept_for_comes_before_those_who_were_told_a_place() {
    let line = Line::new();
    let (first, second) = (line.wait(0, 1), line.ask(0, 2));
    // Kept for the first, which no queue has any more; another client's waiter is before the second.
    line.answer(second, None, 2);
    line.waits.refused(&line.waits.of(second).unwrap());
    let vigil = line.waits.of(first).unwrap();
    vigil.hold(&claim(first), Fence::new(1).unwrap());
    line.waits.granted(&vigil);
    assert_eq!(line.left_to(&line.lease(0), &[second]), None);
    line.freed_by(0, Mode::Exclusive);
    assert!(!line.is_called(second));
}

#[test]
fn a_lease_goes_over_to_the_first_of_its_client_if_nobody_is_before_that_one() {
    let line = Line::new();
    let (other, behind) = (line.wait(1, 1), line.wait(0, 2));
    assert_eq!(line.left_to(&line.lease(0), &[behind]), None);
    assert_eq!(line.left_to(&line.lease(1), &[other]), Some(other));
    assert!(line.inherit(behind).is_none(), "it was left to another");
    assert_eq!(line.inherit(other), Fence::new(2));
    assert!(line.inherit(other).is_none(), "once");
}

#[test]
fn who_shares_a_lock_has_nothing_counted_for_heirs() {
    let line = Line::new();
    line.wait(0, 1);
    let claim = line.lease(0).claim;
    let shared = claim.as_ref().clone().with_mode(Mode::Shared);
    assert!(line.waits.begin_reserve(&claim).is_some());
    assert!(line.waits.begin_reserve(&shared).is_none());
}

/// Whom the others know of is not known, and nobody checks it again.
#[test]
fn a_lease_does_not_go_over_on_the_word_of_a_minority() {
    let line = Line::of(3);
    let waiter = line.wait(0, 1);
    let lease = line.lease(0);
    assert_eq!(line.left_to(&lease, &[waiter]), None);
    line.answer_of(1, waiter, Some(owner()), 1);
    assert_eq!(line.left_to(&lease, &[waiter]), Some(waiter));
}

#[test]
fn heirs_come_one_after_the_other_each_with_the_next_fence() {
    let line = Line::new();
    let waiters = [line.wait(0, 1), line.wait(0, 2), line.wait(0, 3)];
    let lease = line.lease(0);
    for (before, heir) in waiters.iter().enumerate() {
        let waiting = &waiters[before..];
        assert_eq!(line.left_to(&lease, waiting), Some(*heir));
        assert_eq!(line.inherit(*heir), Fence::new(before as u64 + 2));
    }
    let last = line.wait(0, 1);
    line.waits.end_reserve(lease.claim.owner);
    assert_eq!(line.left_to(&lease, &[last]), None, "it was given back");
}

/// As long as it is not taken out, an heir stands in a member's queue, before those who come.
#[test]
fn a_place_behind_an_heir_counts_down_only_where_that_one_stood_in_the_queue() {
    let line = Line::new();
    let heir = line.wait(0, 1);
    // Asks while the heir is queued: another client's is between them.
    let early = line.ask(0, 3);
    let lease = line.lease(0);
    assert_eq!(line.left_to(&lease, &[heir]), Some(heir));
    line.inherit(heir);
    assert_eq!(line.left_to(&lease, &[early]), None);
    line.waits.leave(early);
    // And this one when it is gone.
    let late = line.wait(0, 2);
    assert_eq!(line.left_to(&lease, &[late]), None);
    line.waits.leave(late);
    let next = line.wait(0, 1);
    assert_eq!(line.left_to(&lease, &[next]), Some(next));
}

#[test]
fn what_is_left_to_one_that_stops_waiting_is_not_lost() {
    let line = Line::new();
    let (first, second) = (line.wait(0, 1), line.wait(0, 2));
    let lease = line.lease(0);
    assert_eq!(line.left_to(&lease, &[first, second]), Some(first));
    let owner = lease.claim.owner;
    let mut late = claim(first).as_ref().clone();
    late.ttl *= 2;
    assert!(line.take(first, &late).is_none(), "not half of it is left");
    let vigil = line.waits.of(first).unwrap();
    let left = vigil.renounce().expect("it was left to it");
    assert_eq!(left.claim.owner, owner);
    assert!(vigil.renounce().is_none());
    line.waits.leave(first);
    assert!(line.inherit(first).is_none());
}

/// It may stop while it is looked whether it can inherit: what is left to it then nobody would give back.
#[test]
fn nothing_is_left_to_one_that_stopped_waiting() {
    let line = Line::new();
    let waiter = line.wait(0, 1);
    let (lease, now) = (line.lease(0), line.waits.ambient.clock.now());
    let vigil = line.waits.of(waiter).unwrap();
    line.waits.leave(waiter);
    assert!(!vigil.leave_to_it(&lease, Fence::new(2).unwrap(), now));
    assert!(vigil.renounce().is_none());
}

#[test]
fn who_asks_at_the_moment_or_wants_another_lease_inherits_none() {
    let line = Line::new();
    let waiter = line.wait(0, 1);
    let lease = line.lease(0);
    assert!(
        !line.waits.bequeath(&lease),
        "an attempt of it may be under way"
    );
    let wants = |change: fn(Claim) -> Claim| {
        let wanted = change(claim(waiter).as_ref().clone());
        let vigil = line.waits.of(waiter).unwrap();
        vigil.begin(&wanted, &line.waits.ambient);
        line.answer(waiter, Some(owner()), 1);
        line.left_to(&lease, &[waiter])
    };
    assert_eq!(wants(|claim| claim.with_mode(Mode::Shared)), None);
    assert_eq!(wants(Claim::without_inheriting), None);
    let shorter = |mut claim: Claim| {
        claim.ttl -= Duration::from_millis(1);
        claim
    };
    assert_eq!(wants(shorter), None, "others would be kept out for longer");
    let delayed = |claim: Claim| claim.with_delay(Duration::from_secs(1));
    assert_eq!(wants(delayed), None, "it would not be shut for so long");
    let longer = |mut claim: Claim| {
        claim.ttl *= 2;
        claim
    };
    assert_eq!(wants(longer), None, "not half of it is left");
    assert_eq!(wants(|claim| claim), Some(waiter));
}
