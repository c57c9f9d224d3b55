//! Members that disconnect, fall silent, or are too busy.

use super::*;

/// Rule 2: subscribe (the driver), heartbeat, releases without an answer, all waits.
#[test]
fn reconnected_member_gets_heartbeat_releases_waits() {
    let mut fixture = Fixture::new(3);
    let held = fixture.held();
    let (lock_request, _) = fixture.wait();
    fixture.release(&held);
    fixture.mute = vec![true; 3];
    fixture.disconnect(0);
    fixture.connect(0);
    let kinds = fixture.kinds(0);
    let kinds: Vec<_> = kinds.into_iter().filter(|kind| *kind != "status").collect();
    assert_eq!(kinds, ["heartbeat", "release", "acquire"]);
    let Some(Request::Acquire {
        lock_request: asked,
        ..
    }) = fixture.sent(0).pop()
    else {
        panic!("{:?}", fixture.sent(0));
    };
    assert_eq!(asked.owner, lock_request.owner);
}

/// A client that reaches only a minority must not block the lock there.
#[test]
fn waiter_without_majority_leaves_the_queues() {
    let mut fixture = Fixture::new(3);
    let (lock_request, id) = fixture.wait();
    fixture.progress();
    fixture.disconnect(0);
    assert!(fixture.kinds(2).is_empty());
    fixture.disconnect(1);
    assert_eq!(fixture.kinds(2), ["release"]);
    fixture.reply(2, released(false));
    let told = fixture.progress();
    assert!(matches!(told[..], [Progress::Unavailable(_)]), "{told:?}");
    // It does not ask the minority again.
    fixture.notify(2, &lock_request);
    fixture.pass(10_000);
    let kinds = fixture.kinds(2);
    assert!(!kinds.contains(&"acquire"), "{kinds:?}");
    // It asks all members once it has a majority.
    fixture.connect(1);
    for member in [1, 2] {
        assert_eq!(fixture.kinds(member).last(), Some(&"acquire"), "{member}");
    }
    assert!(fixture.outcome(id).is_none());
}

/// A caller uses the latest reasons to decide how long to wait.
#[test]
fn waiter_without_majority_learns_new_reasons() {
    let mut fixture = Fixture::new(3);
    fixture.wait();
    (0..2).for_each(|member| fixture.disconnect(member));
    fixture.progress();
    let now = fixture.now();
    let error = Error::new(ErrorKind::Unreachable, "no route to the host");
    fixture.engine.handle_disconnect(now, 1.into(), error);
    fixture.poll();
    let told = fixture.progress();
    let [Progress::Unavailable(error)] = &told[..] else {
        panic!("{told:?}");
    };
    assert!(error.to_string().contains("no route"), "{error}");
}

/// A waiter without a majority would block the lock for others.
#[test]
fn waiter_leaves_the_queues_of_a_silent_majority() {
    let mut fixture = Fixture::new(3);
    fixture.wait();
    fixture.mute[0] = true;
    fixture.mute[1] = true;
    fixture.pass(1_000);
    fixture.reply(2, Reply::Waiting(vec![still_waits()]));
    assert!(fixture.kinds(2).is_empty());
    fixture.pass(1_000);
    assert!(
        fixture.kinds(2).contains(&"release"),
        "{:?}",
        fixture.kinds(2)
    );
}

#[test]
fn waiter_keeps_its_ticket_over_an_outage() {
    let mut fixture = Fixture::new(3);
    fixture.wait_unanswered();
    let before = fixture.asked(0).position;
    (0..3).for_each(|member| fixture.disconnect(member));
    fixture.pass(500);
    (0..3).for_each(|member| fixture.connect(member));
    // The release of the former owner goes ahead.
    fixture.reply(0, released(false));
    assert_eq!(fixture.asked(0).position, before);
}

#[test]
fn wait_begins_when_a_majority_is_connected() {
    let mut fixture = Fixture::disconnected(3);
    let lock_request = Arc::new(fixture.lock_request(true));
    fixture.acquire(&lock_request);
    fixture.connect(0);
    assert!(fixture.kinds(0).is_empty());
    fixture.connect(1);
    assert_eq!(fixture.kinds(0), ["acquire"]);
    assert_eq!(fixture.kinds(1), ["acquire"]);
}

#[test]
fn attempt_waits_for_the_first_connection() {
    let mut fixture = Fixture::disconnected(3);
    let (_, id) = fixture.attempt();
    assert!(fixture.outcome(id).is_none());
    (0..3).for_each(|member| fixture.connect(member));
    fixture.reply_all(&[0, 1], &granted(7));
    fixture.acquired(id).expect("a lease");
}

#[test]
fn attempt_fails_at_once_without_connections() {
    let mut fixture = Fixture::disconnected(3);
    (0..3).for_each(|member| fixture.disconnect(member));
    let (_, id) = fixture.attempt();
    let error = fixture.failure(id);
    assert_eq!(error.kind(), ErrorKind::NoQuorum);
    assert_eq!(error.effect(), Effect::None);
}

#[test]
fn wait_ends_when_all_members_refuse_the_client() {
    let mut fixture = Fixture::disconnected(3);
    let lock_request = Arc::new(fixture.lock_request(true));
    let id = fixture.acquire(&lock_request);
    for member in 0..3 {
        let error = Error::new(ErrorKind::Refused, "wrong password");
        let now = fixture.now();
        fixture.engine.handle_disconnect(now, member.into(), error);
    }
    fixture.poll();
    let error = fixture.failure(id);
    assert_eq!(error.kind(), ErrorKind::Refused);
}

#[test]
fn wait_ends_where_permits_differ_on_a_majority() {
    let mut fixture = Fixture::new(3);
    let (_, id) = fixture.wait_unanswered();
    let error = Error::new(ErrorKind::PermitsDiffer, "3 permits, not 2");
    fixture.reply_all(&[0, 1], &Reply::Failed(error));
    let error = fixture.failure(id);
    assert_eq!(error.kind(), ErrorKind::PermitsDiffer);
    assert_eq!(fixture.kinds(2), ["acquire", "release"]);
}

#[test]
fn silent_member_gets_a_status_request_only() {
    let mut fixture = Fixture::new(3);
    fixture.mute[2] = true;
    let (_, id) = fixture.attempt();
    fixture.reply_all(&[0, 1], &granted(7));
    fixture.acquired(id).expect("a lease");
    fixture.pass(501);
    assert_eq!(fixture.kinds(2), ["try", "status"]);
    let (_, id) = fixture.attempt();
    assert_eq!(fixture.kinds(2), ["try", "status"]);
    fixture.reply_all(&[0, 1], &granted(8));
    fixture.acquired(id).expect("a lease of the others");
    fixture.mute[2] = false;
    fixture.reply(2, granted(7));
    fixture.attempt();
    assert_eq!(fixture.kinds(2), ["try"]);
}

#[test]
fn slow_member_is_not_silent_within_its_limit() {
    let mut fixture = Fixture::new(3);
    fixture.mute[2] = true;
    fixture.attempt();
    fixture.reply_all(&[0, 1], &granted(7));
    fixture.pass(499);
    assert_eq!(fixture.kinds(2), ["try"]);
    fixture.reply(2, granted(7));
    fixture.attempt();
    assert_eq!(fixture.kinds(2), ["try"]);
}

/// A store that answers each request after 1.2 seconds is slow, and not silent.
#[test]
fn server_that_answers_slowly_is_used() {
    let mut fixture = Fixture::disconnected(1);
    fixture.mute[0] = true;
    fixture.connect(0);
    let (_, id) = fixture.wait_unanswered();
    for _ in 0..2 {
        fixture.pass(1_200);
        let status = Reply::Status(Box::new(fixture.status(0)));
        fixture.reply(0, status);
    }
    assert_eq!(fixture.kinds(0), ["heartbeat", "acquire"]);
    fixture.pass(1_200);
    fixture.reply(0, Reply::Waiting(Vec::new()));
    fixture.reply(0, granted(7));
    fixture.acquired(id).expect("a lease");
}

#[test]
fn slow_renewal_extends_the_lease() {
    for (members, millis) in [(1, 3_000), (3, 1_500)] {
        let mut fixture = Fixture::new(members);
        fixture.mute = vec![true; members];
        let (lock_request, id) = fixture.attempt();
        let all: Vec<usize> = (0..members).collect();
        fixture.reply_all(&all, &granted(7));
        let acquired = fixture.acquired(id).expect("a lease");
        let held = Held {
            request: lock_request,
            fence: acquired.fence,
        };
        let id = fixture.start(Operation::Renew(vec![held]));
        fixture.pass(millis);
        fixture.reply_all(&all, &Reply::Renewed(vec![LeaseState::Renewed]));
        assert!(fixture.is_renewed(id));
    }
}

/// A request with a short limit becomes overdue on its own, even behind one with a long limit.
#[test]
fn request_limits_are_independent() {
    let mut fixture = Fixture::new(3);
    fixture.mute = vec![true; 3];
    fixture.wait_unanswered();
    let mut lock_request = fixture.lock_request(false);
    lock_request.ttl = Duration::from_secs(1);
    let id = fixture.acquire(&Arc::new(lock_request));
    fixture.pass(51);
    assert!(fixture.outcome(id).is_some());
}

/// Starts an attempt on a lock of its own.
fn attempt_at(fixture: &mut Fixture, number: usize) -> (Arc<LockRequest>, OperationId) {
    let mut lock_request = fixture.lock_request(false);
    lock_request.key = Key::new(format!("lock {number}")).unwrap();
    let lock_request = Arc::new(lock_request);
    let id = fixture.acquire(&lock_request);
    (lock_request, id)
}

#[test]
fn burst_of_attempts_and_releases_is_sent_whole() {
    for members in [1, 3] {
        let mut fixture = Fixture::new(members);
        let all: Vec<_> = (0..1_500)
            .map(|number| attempt_at(&mut fixture, number))
            .collect();
        for (_, id) in &all {
            (0..members).for_each(|member| drop(fixture.reply(member, granted(7))));
            fixture.acquired(*id).expect("a lease");
        }
        let releases: Vec<_> = all
            .iter()
            .map(|(lock_request, _)| fixture.release(lock_request))
            .collect();
        for id in releases {
            assert!(fixture.outcome(id).is_none(), "it has no answer yet");
            (0..members).for_each(|member| drop(fixture.reply(member, released(true))));
            let outcome = fixture.outcome(id);
            let freed = ReleaseReply::Released;
            assert!(matches!(outcome, Some(Outcome::Released(it)) if it == freed));
        }
    }
}

/// Its client has thousands of requests in flight.
#[test]
fn waiter_of_a_busy_client_takes_its_turn() {
    let mut fixture = Fixture::new(1);
    let (lock_request, id) = fixture.wait();
    (0..1_500).for_each(|number| drop(attempt_at(&mut fixture, number)));
    fixture.notify(0, &lock_request);
    assert_eq!(fixture.kinds(0).last(), Some(&"acquire"), "it asks");
    (0..1_500).for_each(|_| drop(fixture.reply(0, granted(7))));
    fixture.reply(0, granted(8));
    fixture.acquired(id).expect("a lease");
}

#[test]
fn busy_client_stays_present() {
    let mut fixture = Fixture::new(1);
    fixture.wait();
    (0..1_500).for_each(|number| drop(attempt_at(&mut fixture, number)));
    fixture.pass(1_000);
    assert_eq!(fixture.kinds(0).last(), Some(&"heartbeat"));
}

/// A silent member gets some releases, and the rest once it answers again.
#[test]
fn releases_to_a_silent_member_are_limited() {
    let mut fixture = Fixture::new(3);
    let all: Vec<_> = (0..1_500)
        .map(|number| {
            let (lock_request, _) = attempt_at(&mut fixture, number);
            fixture.reply_all(&[0, 1, 2], &granted(7));
            lock_request
        })
        .collect();
    fixture.mute[2] = true;
    attempt_at(&mut fixture, 1_500);
    fixture.pass(1_000);
    for lock_request in &all {
        fixture.release(lock_request);
        fixture.reply_all(&[0, 1], &released(true));
    }
    let sent = fixture.sent(2).len();
    assert!((500..=1_000).contains(&sent), "{sent}");
    let mut releases = 0;
    while !fixture.sent(2).is_empty() {
        let request = fixture.reply(2, released(true));
        releases += usize::from(matches!(
            request,
            Request::Free { .. } | Request::Release { .. }
        ));
    }
    // The attempt that had no answer is released, too.
    assert_eq!(releases, all.len() + 1);
}

pub(super) fn still_waits() -> Refusal {
    match busy(1) {
        Reply::Busy(refusal) => refusal,
        _ => unreachable!(),
    }
}

#[test]
fn new_client_waits_a_moment_for_all_members() {
    for is_connected_in_time in [true, false] {
        let (mut fixture, id) = attempt_of_a_new_client();
        assert!(fixture.acquired(id).is_none(), "one more may be asked");
        if is_connected_in_time {
            fixture.connect(2);
            assert_eq!(fixture.kinds(2), ["acquire"]);
        } else {
            fixture.pass(29);
            assert!(fixture.acquired(id).is_none());
            fixture.pass(1);
        }
        fixture.acquired(id).expect("a lease");
    }
}

/// Two of three members connect within 30 ms, and grant the lease.
fn attempt_of_a_new_client() -> (Fixture, OperationId) {
    let mut fixture = Fixture::disconnected(3);
    let (_, id) = fixture.attempt();
    fixture.pass(30);
    fixture.connect(0);
    fixture.connect(1);
    fixture.reply_all(&[0, 1], &granted(7));
    (fixture, id)
}

/// A frozen server takes a connection and never answers on it.
#[test]
fn only_the_first_attempt_waits_for_connections() {
    let (mut fixture, id) = attempt_of_a_new_client();
    fixture.pass(30);
    fixture.acquired(id).expect("a lease");
    let (lock_request, id) = fixture.attempt();
    fixture.reply_all(&[0, 1], &granted(8));
    fixture.acquired(id).expect("a lease at once");
    let id = fixture.release(&lock_request);
    fixture.reply_all(&[0, 1], &released(true));
    let outcome = fixture.outcome(id);
    assert!(matches!(outcome, Some(Outcome::Released(_))), "{outcome:?}");
    assert!(fixture.engine.is_idle());
}

#[test]
fn renewal_of_a_new_client_waits_for_connections() {
    let mut fixture = Fixture::disconnected(3);
    let lock_request = Arc::new(fixture.lock_request(false));
    let id = fixture.renew(&lock_request);
    fixture.pass(30);
    (0..2).for_each(|member| fixture.connect(member));
    let renewed = Reply::Renewed(vec![LeaseState::Renewed]);
    fixture.reply_all(&[0, 1], &renewed);
    assert!(fixture.is_renewed(id));
    fixture.pass(30);
    fixture.connect(2);
    assert!(fixture.kinds(2).is_empty(), "{:?}", fixture.kinds(2));
}

/// The error must name what each member reported.
#[test]
fn failure_waits_for_first_connections() {
    let mut fixture = Fixture::disconnected(3);
    (0..2).for_each(|member| fixture.connect(member));
    let (_, id) = fixture.attempt();
    let error = Error::new(ErrorKind::Refused, "no such right");
    fixture.reply_all(&[0, 1], &Reply::Failed(error));
    fixture.pass(19);
    assert!(fixture.outcome(id).is_none());
    fixture.pass(1);
    assert!(matches!(fixture.outcome(id), Some(Outcome::Failed(_))));
}

#[test]
fn member_that_was_not_asked_may_have_a_vote() {
    let mut fixture = Fixture::disconnected(3);
    let lock_request = Arc::new(fixture.lock_request(true));
    fixture.acquire(&lock_request);
    (0..2).for_each(|member| fixture.disconnect(member));
    let told = fixture.progress();
    let Some(Progress::Unavailable(error)) = told.last() else {
        panic!("{told:?}");
    };
    let votes = "at most 1 of 3 servers have a vote, 2 needed";
    assert!(error.to_string().contains(votes), "{error}");
}
