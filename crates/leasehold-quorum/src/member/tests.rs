use std::sync::Arc;

use leasehold_types::Fence;

use super::*;
use crate::tests::values::lock_request;

const TTL: Duration = Duration::from_secs(10);

fn at(millis: u64) -> BootInstant {
    BootInstant::from_nanos(0) + Duration::from_millis(millis)
}

fn lease(ttl: Duration) -> Lease {
    Lease {
        lock_request: Arc::new(lock_request(ttl)),
        fence: Fence::new(1).expect("the fence is not 0"),
        slot: None,
    }
}

fn connected() -> Member {
    Member {
        connected: Some(at(0)),
        ..Member::default()
    }
}

/// A member with requests that reach their limits at these times.
fn asked(limits: impl IntoIterator<Item = u64>) -> Member {
    let mut member = Member::default();
    for (id, limit) in (1..).zip(limits) {
        member.push(RequestId(id), Task::Dequeue, at(0), at(limit));
    }
    member
}

#[test]
fn requests_are_looked_at_in_steps() {
    let mut member = asked([1_000, 1_001, 1_002, 2_000]);
    assert_eq!(member.next_timeout(), Some(at(1_000)));
    assert_eq!(member.expire(at(1_000), |_| None).len(), 1);
    assert_eq!(member.next_timeout(), Some(at(1_010)));
    assert_eq!(member.expire(at(1_009), |_| None).len(), 0);
    assert_eq!(member.expire(at(1_010), |_| None).len(), 2);
    assert_eq!(member.next_timeout(), Some(at(2_000)));
}

#[test]
fn releases_owed_to_a_member_are_limited() {
    let mut member = connected();
    for millis in 0..OWED_MAX as u64 + 5 {
        member.owe(lease(TTL * 10), at(millis));
    }
    let owed = std::iter::from_fn(|| member.pop_owed(at(20_000), false));
    assert_eq!(owed.count(), OWED_MAX);
}

#[test]
fn ended_leases_make_room_for_other_releases() {
    let mut member = connected();
    for _ in 0..OWED_MAX {
        member.owe(lease(TTL), at(0));
    }
    member.owe(lease(TTL), at(10_000));
    assert!(member.pop_owed(at(10_001), false).is_some());
    assert!(member.pop_owed(at(10_001), false).is_none());
}
