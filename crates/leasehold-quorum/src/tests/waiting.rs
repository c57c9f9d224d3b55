//! Waiters: when they ask, and their heartbeats.

use super::*;

#[test]
fn presence_goes_ahead_of_the_first_wait() {
    let mut fixture = Fixture::new(3);
    fixture.mute = vec![true; 3];
    fixture.wait_unanswered();
    assert_eq!(fixture.kinds(0), ["heartbeat", "acquire"]);
    fixture.wait_unanswered();
    assert_eq!(fixture.kinds(0), ["heartbeat", "acquire", "acquire"]);
}

#[test]
fn all_members_get_the_same_ticket() {
    let mut fixture = Fixture::new(3);
    fixture.wait_unanswered();
    for member in 0..3 {
        let ticket = Position::Ticket(fixture.micros());
        assert_eq!(fixture.asked(member).position, Some(ticket));
    }
}

#[test]
fn waiter_asks_the_member_that_notifies() {
    let mut fixture = Fixture::new(3);
    let (lock_request, _) = fixture.wait();
    fixture.notify(1, &lock_request);
    assert!(fixture.kinds(0).is_empty());
    assert_eq!(fixture.kinds(1), ["acquire"]);
    // The waiter never has two requests in flight at once.
    fixture.notify(1, &lock_request);
    assert_eq!(fixture.kinds(1), ["acquire"]);
}

#[test]
fn waiter_asks_when_the_answer_said_so() {
    let mut fixture = Fixture::new(3);
    let (_, _) = fixture.wait_unanswered();
    let later = Reply::Busy(Refusal {
        busy: Busy::default(),
        ask_again: Some(Duration::from_millis(300)),
        turn: false,
    });
    fixture.reply(0, later);
    fixture.reply_all(&[1, 2], &busy(1));
    fixture.pass(299);
    assert!(fixture.kinds(0).is_empty());
    fixture.pass(1);
    assert_eq!(fixture.kinds(0), ["acquire"]);
}

#[test]
fn heartbeat_names_the_oldest_waiter_of_each_lock() {
    let mut fixture = Fixture::new(3);
    let (lock_request, _) = fixture.wait();
    fixture.pass(100);
    fixture.wait();
    fixture.pass(900);
    let [Request::Heartbeat(waits)] = fixture.sent(0)[..] else {
        panic!("{:?}", fixture.sent(0));
    };
    let owners: Vec<_> = waits
        .iter()
        .map(|lock_request| lock_request.owner)
        .collect();
    assert_eq!(owners, [lock_request.owner]);
}

#[test]
fn heartbeats_end_with_the_last_wait() {
    let mut fixture = Fixture::new(3);
    let (_, id) = fixture.wait();
    fixture.cancel(id);
    fixture.reply_all(&[0, 1, 2], &released(false));
    fixture.pass(5_000);
    assert!(fixture.kinds(0).is_empty());
    assert_eq!(fixture.engine.next_timeout(), None);
}

#[test]
fn heartbeat_for_many_locks_comes_in_parts() {
    let mut fixture = Fixture::new(1);
    for number in 0..150 {
        let mut lock_request = fixture.lock_request(true);
        lock_request.key = Key::new(format!("lock {number}")).unwrap();
        fixture
            .engine
            .net
            .waiters
            .note_busy(&lock_request.key, fixture.now().instant);
        fixture.acquire(&Arc::new(lock_request));
        fixture.reply(0, busy(1));
    }
    fixture.pass(1_000);
    let parts = fixture.sent(0).into_iter().map(|request| match request {
        Request::Heartbeat(waits) => waits.len(),
        other => panic!("{other:?}"),
    });
    assert_eq!(parts.collect::<Vec<_>>(), [64, 64, 22]);
}

/// Without this, the waits of a stopped client never end.
#[test]
fn heartbeat_answers_make_the_waiter_ask() {
    let turn = Refusal {
        busy: Busy::default(),
        ask_again: None,
        turn: true,
    };
    let not_queued = Refusal::default();
    for answer in [turn, not_queued] {
        let mut fixture = Fixture::new(3);
        fixture.wait();
        fixture.pass(1_000);
        fixture.reply(0, Reply::Waiting(vec![answer]));
        assert_eq!(fixture.kinds(0), ["acquire"]);
    }
}

#[test]
fn busy_is_reported_once_per_place() {
    let mut fixture = Fixture::new(3);
    let (lock_request, _) = fixture.wait_unanswered();
    let positions = |fixture: &mut Fixture| {
        let told = fixture.progress().into_iter();
        let position = told.map(|progress| match progress {
            Progress::Busy(busy) => busy.position,
            Progress::Unavailable(error) => panic!("{error}"),
        });
        position.collect::<Vec<_>>()
    };
    fixture.reply(0, busy(2));
    assert_eq!(positions(&mut fixture), []);
    fixture.reply(1, busy(2));
    fixture.reply(2, busy(2));
    assert_eq!(positions(&mut fixture), [Some(2)]);
    for member in 0..3 {
        fixture.notify(member, &lock_request);
        fixture.reply(member, busy(1));
    }
    assert_eq!(positions(&mut fixture), [Some(1)]);
}

/// Rule 6: a late server is asked once it notifies, and its grant joins the lease.
#[test]
fn late_grant_joins_the_lease() {
    let mut fixture = Fixture::new(3);
    let (lock_request, id) = fixture.wait();
    for member in [0, 2] {
        fixture.notify(member, &lock_request);
        fixture.reply(member, granted(7));
    }
    assert_eq!(fixture.acquired(id).expect("a lease").fence, fence(7));
    fixture.notify(1, &lock_request);
    assert_eq!(fixture.asked(1).proposal, 7);
    fixture.reply(1, granted(7));
    fixture.pass(3_000);
    assert!(fixture.kinds(1).is_empty(), "it keeps the lease");
    fixture.release(&lock_request);
    assert_eq!(fixture.kinds(1), ["release"]);
}

#[test]
fn barging_attempt_asks_once_ahead_of_the_queue() {
    let mut fixture = Fixture::new(3);
    let lock_request = Arc::new(fixture.lock_request(false).barging(true));
    let id = fixture.acquire(&lock_request);
    assert_eq!(fixture.asked(0).position, Some(Position::Barging));
    fixture.reply_all(&[0, 1], &refused());
    assert!(matches!(fixture.outcome(id), Some(Outcome::Busy(_))));
}

#[test]
fn waits_of_one_client_keep_their_order() {
    let mut fixture = Fixture::new(1);
    fixture.wait_unanswered();
    fixture.wait_unanswered();
    let tickets = fixture.sent(0).into_iter().map(|request| match request {
        Request::Acquire {
            position: Position::Ticket(ticket),
            ..
        } => *ticket,
        other => panic!("{other:?}"),
    });
    let tickets: Vec<_> = tickets.collect();
    assert!(tickets[0] < tickets[1], "{tickets:?}");
}
