//! The plain commands, next to the queue.

use super::*;

#[test]
fn free_lock_is_taken_by_plain_commands() {
    let mut fixture = Fixture::new(3);
    let (lock_request, _) = fixture.attempt();
    for member in 0..3 {
        assert_eq!(
            fixture.asked(member).proposal,
            lock_request.owner.since().as_micros() + 1
        );
    }
}

#[test]
fn busy_member_gets_script_with_next_proposal() {
    let mut fixture = Fixture::new(3);
    let lock_request = Arc::new(fixture.lock_request(true));
    fixture.acquire(&lock_request);
    assert_eq!(fixture.kinds(0), ["try"]);
    for member in 0..3 {
        fixture.reply(member, refused());
        let asked = fixture.asked(member);
        assert_eq!(asked.proposal, lock_request.owner.since().as_micros() + 2);
        assert!(matches!(asked.position, Some(Position::Ticket(_))));
    }
}

#[test]
fn lock_that_was_busy_gets_no_plain_commands() {
    let mut fixture = Fixture::new(3);
    fixture.attempt();
    fixture.reply_all(&[0, 1, 2], &refused());
    fixture.attempt();
    assert_eq!(fixture.kinds(0), ["acquire"]);
    fixture.reply_all(&[0, 1, 2], &refused());
    fixture.pass(1_001);
    fixture.attempt();
    assert_eq!(fixture.kinds(0), ["try"]);
}

/// Its release may have begun a gap, in which the plain commands would come before the waiters.
#[test]
fn contended_release_stops_plain_commands() {
    let mut fixture = Fixture::new(3);
    let lock_request = fixture.held();
    fixture.release(&lock_request);
    fixture.reply_all(&[0, 1, 2], &Reply::Contended);
    fixture.reply_all(&[0, 1, 2], &released(true));
    fixture.attempt();
    assert_eq!(fixture.kinds(0), ["acquire"]);
}

#[test]
fn release_of_a_waiter_stops_plain_commands() {
    let mut fixture = Fixture::new(1);
    let (lock_request, id) = fixture.wait();
    fixture.notify(0, &lock_request);
    hold_for_a_second(&mut fixture, id);
    release_stops_plain_commands(&mut fixture, &lock_request);
}

/// The release goes by the script, which may begin a gap.
#[test]
fn release_of_a_reader_stops_plain_commands() {
    let mut fixture = Fixture::new(1);
    let lock_request = Arc::new(fixture.lock_request(false).with_mode(Mode::Shared));
    let id = fixture.acquire(&lock_request);
    hold_for_a_second(&mut fixture, id);
    release_stops_plain_commands(&mut fixture, &lock_request);
}

#[test]
fn own_waiter_stops_plain_commands() {
    let mut fixture = Fixture::new(1);
    fixture.wait();
    fixture.pass_without_timers(1_001);
    fixture.attempt();
    assert_eq!(fixture.kinds(0), ["acquire"]);
}

#[test]
fn release_before_own_waiter_stops_plain_commands() {
    let mut fixture = Fixture::new(1);
    let lock_request = fixture.held();
    let (_, waiter) = fixture.wait();
    fixture.pass_without_timers(1_001);
    fixture.release(&lock_request);
    fixture.cancel(waiter);
    fixture.attempt();
    assert_eq!(fixture.kinds(0).last(), Some(&"acquire"));
}

/// Otherwise a lock that is taken again and again would never get plain commands back.
#[test]
fn release_without_a_wait_keeps_plain_commands() {
    let mut fixture = Fixture::new(1);
    let (lock_request, id) = fixture.wait_unanswered();
    hold_for_a_second(&mut fixture, id);
    fixture.release(&lock_request);
    assert_eq!(fixture.kinds(0), ["free"]);
    fixture.reply(0, released(true));
    fixture.attempt();
    assert_eq!(fixture.kinds(0), ["try"]);
}

#[test]
fn new_client_sends_no_plain_commands() {
    let mut fixture = Fixture::disconnected(3);
    (0..3).for_each(|member| fixture.connect(member));
    fixture.attempt();
    assert_eq!(fixture.kinds(0), ["acquire"]);
}

#[test]
fn new_client_takes_known_lock_with_plain_commands() {
    let mut fixture = Fixture::disconnected(3);
    (0..3).for_each(|member| fixture.connect(member));
    let lock_request = fixture.held();
    fixture.release(&lock_request);
    fixture.reply_all(&[0, 1, 2], &released(true));
    fixture.attempt();
    assert_eq!(fixture.kinds(0), ["try"]);
}

#[test]
fn readers_permits_and_barging_use_the_script() {
    let mut fixture = Fixture::new(3);
    let permits = Mode::Permit(Permits::new(2).unwrap());
    let lock_requests = [
        fixture.lock_request(false).with_mode(Mode::Shared),
        fixture.lock_request(false).with_mode(permits),
        fixture.lock_request(false).barging(true),
    ];
    for lock_request in lock_requests {
        fixture.acquire(&Arc::new(lock_request));
        assert_eq!(fixture.kinds(0).pop(), Some("acquire"));
    }
}

/// A lease without a fence of its own must draw one. It counts from the first request.
#[test]
fn counter_ahead_of_the_proposal_draws_a_fence() {
    let mut fixture = Fixture::new(1);
    let (_, id) = fixture.attempt();
    let sent = fixture.now().instant;
    fixture.pass(1);
    fixture.reply(0, Reply::GrantedBehind);
    assert!(fixture.outcome(id).is_none());
    assert_eq!(fixture.kinds(0), ["draw"]);
    fixture.pass(1);
    fixture.reply(0, granted(12));
    let acquired = fixture.acquired(id).expect("a lease");
    assert_eq!((acquired.fence, acquired.term.since), (fence(12), sent));
}

#[test]
fn fence_drawn_from_other_data_does_not_hold() {
    let mut fixture = Fixture::new(1);
    let (_, id) = fixture.attempt();
    fixture.reply(0, Reply::GrantedBehind);
    fixture.runs[0] = 1;
    fixture.reply(0, granted(12));
    assert!(matches!(fixture.outcome(id), Some(Outcome::Failed(_))));
}

/// The server drops a waiter whose client is not present.
#[test]
fn presence_goes_ahead_of_a_give_back() {
    let mut fixture = Fixture::new(3);
    fixture.mute[2] = true;
    fixture.acquire(&Arc::new(fixture.lock_request(true)));
    fixture.reply_all(&[0, 1], &refused());
    fixture.reply_all(&[0, 1], &busy(1));
    fixture.pass(10);
    assert_eq!(fixture.kinds(2), ["try", "heartbeat", "requeue"]);
}

#[test]
fn counter_expiry_is_set_every_ten_minutes() {
    let mut fixture = Fixture::new(3);
    let expires = |fixture: &mut Fixture| {
        fixture.attempt();
        let is_set = fixture.asked(0).expire;
        fixture.reply_all(&[0, 1, 2], &refused());
        // The attempt ended before its last answer.
        fixture.reply(2, released(false));
        fixture.pass(2_000);
        is_set
    };
    assert!(expires(&mut fixture));
    assert!(!expires(&mut fixture));
    fixture.pass(600_000);
    assert!(expires(&mut fixture));
    assert!(!expires(&mut fixture));
}

#[test]
fn counter_in_other_data_gets_an_expiry() {
    let mut fixture = Fixture::new(3);
    fixture.attempt();
    fixture.runs[0] = 1;
    fixture.reply_all(&[0, 1, 2], &refused());
    fixture.reply(2, released(false));
    fixture.pass(2_000);
    fixture.attempt();
    // The members are asked alike.
    for member in 0..3 {
        assert!(fixture.asked(member).expire, "member {member}");
    }
}

/// The only member grants the lock, and the pause after a busy answer passes.
fn hold_for_a_second(fixture: &mut Fixture, id: OperationId) {
    fixture.reply(0, granted(7));
    fixture.acquired(id).expect("a lease");
    fixture.pass_without_timers(1_001);
}

fn release_stops_plain_commands(fixture: &mut Fixture, lock_request: &Arc<LockRequest>) {
    fixture.release(lock_request);
    fixture.reply(0, released(true));
    fixture.attempt();
    assert_eq!(fixture.kinds(0), ["acquire"]);
}
