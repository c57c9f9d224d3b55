//! Many acquisitions at once.

use std::ops::Range;

use super::*;
use crate::waiting::admission::{PORTION, WINDOW_MAX, WINDOW_MIN};

/// Returns requests for this many locks, each of its own name.
fn lock_requests(fixture: &Fixture, locks: Range<usize>) -> Vec<Arc<LockRequest>> {
    let request = |number| {
        let mut lock_request = fixture.lock_request(true);
        lock_request.key = Key::new(format!("lock{number}")).unwrap();
        Arc::new(lock_request)
    };
    locks.map(request).collect()
}

/// Begins to take these locks.
fn begin(fixture: &mut Fixture, locks: Range<usize>) -> Vec<OperationId> {
    let requests = lock_requests(fixture, locks);
    requests.iter().map(|it| fixture.acquire(it)).collect()
}

/// All members grant what they are asked for, until nothing is left. Returns how many requests a member had at most.
fn grant_all(fixture: &mut Fixture, members: Range<usize>) -> usize {
    let mut most = 0;
    loop {
        let mut is_over = true;
        for member in members.clone() {
            most = most.max(fixture.sent(member).len());
            if let Some(request) = fixture.sent(member).first() {
                is_over = false;
                let reply = match request {
                    Request::TryAcquire { proposal, .. } | Request::Acquire { proposal, .. } => {
                        granted(*proposal)
                    }
                    Request::Heartbeat(waits) => {
                        Reply::Waiting(waits.iter().map(|_| members::still_waits()).collect())
                    }
                    _ => released(true),
                };
                fixture.reply(member, reply);
            }
        }
        if is_over && fixture.engine.net.admission.is_empty() {
            return most;
        }
        if is_over {
            fixture.pass(5);
        }
    }
}

fn count_acquired(fixture: &mut Fixture, ids: &[OperationId]) -> usize {
    let acquired = ids.iter().filter_map(|id| fixture.acquired(*id));
    acquired.count()
}

#[test]
fn burst_has_a_bounded_number_in_flight() {
    let mut fixture = Fixture::new(3);
    let ids = begin(&mut fixture, 0..WINDOW_MAX + 300);
    let most = grant_all(&mut fixture, 0..3);
    assert_eq!(count_acquired(&mut fixture, &ids), ids.len());
    assert!((WINDOW_MIN..=WINDOW_MAX).contains(&most), "{most}");
}

/// A member that has more to do than it can answer in time is not silent.
#[test]
fn burst_of_releases_has_a_bounded_number_in_flight() {
    let mut fixture = Fixture::new(3);
    let requests = lock_requests(&fixture, 0..WINDOW_MAX + 300);
    for lock_request in &requests {
        fixture.acquire(lock_request);
    }
    grant_all(&mut fixture, 0..3);
    let ids: Vec<_> = requests.iter().map(|it| fixture.release(it)).collect();
    let most = grant_all(&mut fixture, 0..3);
    assert!((WINDOW_MIN..=WINDOW_MAX).contains(&most), "{most}");
    for id in ids {
        let outcome = fixture.outcome(id);
        assert!(matches!(outcome, Some(Outcome::Released(_))), "{outcome:?}");
    }
}

/// The store grants an attempt whose release waits for its turn. The lease is released all the same.
#[test]
fn release_that_waits_follows_the_grant() {
    let mut fixture = Fixture::new(3);
    let requests = lock_requests(&fixture, 0..WINDOW_MIN + 300);
    let mut acquired = requests.iter().map(|it| fixture.acquire(it));
    let first = acquired.next().unwrap();
    acquired.for_each(drop);
    let release = fixture.release(&requests[0]);
    let is_release = |it: &&Request| matches!(it, Request::Free { .. } | Request::Release { .. });
    assert!(!fixture.sent(0).iter().any(is_release), "there is no room");
    (0..3).for_each(|member| drop(fixture.reply(member, granted(7))));
    fixture
        .acquired(first)
        .expect("a grant, which nobody may take");
    grant_all(&mut fixture, 0..3);
    let outcome = fixture.outcome(release);
    assert!(matches!(outcome, Some(Outcome::Released(_))), "{outcome:?}");
}

/// Members that are slow for a moment get fewer requests at once.
#[test]
fn exceeded_limit_narrows_the_window() {
    let mut fixture = Fixture::new(1);
    begin(&mut fixture, 0..WINDOW_MAX);
    let narrow = fixture.sent(0).len();
    for _ in 0..narrow {
        fixture.reply(0, granted(1));
    }
    let wide = fixture.sent(0).len();
    assert!(wide > narrow, "{wide} and {narrow}");
    // The member answers only the question for its status.
    fixture.pass(4_000);
    let window = fixture.engine.net.admission.window();
    assert!(window < wide, "{window}");
}

#[test]
fn cancelled_attempt_of_a_burst_asks_nothing() {
    let mut fixture = Fixture::new(1);
    let ids = begin(&mut fixture, 0..WINDOW_MAX + 2);
    fixture.cancel(ids[WINDOW_MAX]);
    grant_all(&mut fixture, 0..1);
    assert!(fixture.outcome(ids[WINDOW_MAX]).is_none());
    assert!(fixture.acquired(ids[WINDOW_MAX + 1]).is_some());
}

/// Each waiter learns of an outage once, and portions leave time to renew leases.
#[test]
fn outage_is_reported_in_portions_and_once() {
    let mut fixture = Fixture::new(3);
    (0..2).for_each(|member| fixture.disconnect(member));
    let count = PORTION + 200;
    let ids = begin(&mut fixture, 0..count);
    fixture.pass(100);
    assert_eq!(fixture.progress().len(), count);
    let now = fixture.now();
    let error = Error::new(ErrorKind::Unreachable, "no route to the host");
    fixture.engine.handle_disconnect(now, 1.into(), error);
    fixture.poll();
    assert_eq!(fixture.progress().len(), PORTION);
    fixture.pass(100);
    assert_eq!(fixture.progress().len(), count - PORTION);
    // They look again each second, and learn nothing new.
    fixture.pass(5_000);
    assert_eq!(fixture.progress().len(), 0);
    (0..2).for_each(|member| fixture.connect(member));
    grant_all(&mut fixture, 0..3);
    assert_eq!(count_acquired(&mut fixture, &ids), count);
}
