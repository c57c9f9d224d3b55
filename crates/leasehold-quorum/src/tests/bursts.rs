//! Many acquisitions at once.

use std::ops::Range;

use super::*;
use crate::acquire::{PORTION, WINDOW};

/// Begins to take this many locks, each of its own name.
fn begin(fixture: &mut Fixture, locks: Range<usize>) -> Vec<OperationId> {
    let begin_one = |number| {
        let mut lock_request = fixture.lock_request(true);
        lock_request.key = Key::new(format!("lock{number}")).unwrap();
        fixture.acquire(&Arc::new(lock_request))
    };
    locks.map(begin_one).collect()
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
    let ids = begin(&mut fixture, 0..WINDOW + 300);
    let most = grant_all(&mut fixture, 0..3);
    assert_eq!(count_acquired(&mut fixture, &ids), ids.len());
    assert_eq!(most, WINDOW);
}

#[test]
fn cancelled_attempt_of_a_burst_asks_nothing() {
    let mut fixture = Fixture::new(1);
    let ids = begin(&mut fixture, 0..WINDOW + 2);
    fixture.cancel(ids[WINDOW]);
    grant_all(&mut fixture, 0..1);
    assert!(fixture.outcome(ids[WINDOW]).is_none());
    assert!(fixture.acquired(ids[WINDOW + 1]).is_some());
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
