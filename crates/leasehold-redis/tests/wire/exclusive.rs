use std::sync::Arc;
use std::time::Duration;

use leasehold::member::FenceConfirmation;
use leasehold::store::LockRequest;
use leasehold::{ErrorKind, LostReason, Mode};
use leasehold_quorum::{LeaseState, Position, Reply, Request};

use crate::fixture::{TTL, lease, start};

const FENCE: &str = "leasehold:fence:0:{deploy}:deploy";

#[test]
fn free_lock_is_granted_with_the_proposal() {
    let (_server, mut client) = start();
    let lock_request = client.lock_request(Mode::Exclusive);
    let (fence, slot) = client.acquire(&lock_request, Position::None).granted();
    assert_eq!(fence, lock_request.owner.since().as_micros() + 1);
    assert_eq!(slot, None);
    assert_eq!(client.value(), Some(lock_request.owner.to_string()));
    assert!(client.release(&lock_request));
    assert_eq!(client.value(), None);
    assert!(!client.release(&lock_request));
}

#[test]
fn release_frees_no_lease_of_another_wait() {
    let (_server, mut client) = start();
    let earlier = client.hold(Mode::Exclusive);
    client.release(&earlier);
    let held = client.hold(Mode::Exclusive);
    let lock_request = earlier.clone();
    let freed = client.ask(&Request::Free { lock_request });
    assert!(matches!(freed, Reply::Contended), "{freed:?}");
    assert!(!client.release(&earlier));
    assert_eq!(client.value(), Some(held.owner.to_string()));
}

#[test]
fn fence_is_above_counter_and_proposal() {
    let (_server, mut client) = start();
    let ahead = 9_000_000_000_000_000_u64;
    client.command(&["ZADD", FENCE, &ahead.to_string(), "f"]);
    let lock_request = client.lock_request(Mode::Exclusive);
    let (fence, _) = client.acquire(&lock_request, Position::None).granted();
    assert_eq!(fence, ahead + 1);
    let noted = client.command(&["ZSCORE", FENCE, &lock_request.owner.to_string()]);
    assert_eq!(noted.as_number(), Some(fence as f64));
    client.release(&lock_request);
    // The note goes with the next one.
    let next = client.lock_request(Mode::Exclusive);
    client.acquire(&next, Position::None).granted();
    let noted = client.command(&["ZSCORE", FENCE, &lock_request.owner.to_string()]);
    assert_eq!(noted, leasehold_redis::resp::Value::Null);
}

#[test]
fn holder_that_asks_again_gets_a_new_fence() {
    let (_server, mut client) = start();
    let lock_request = client.lock_request(Mode::Exclusive);
    let (first, _) = client.acquire(&lock_request, Position::None).granted();
    client.command(&["PEXPIRE", "deploy", "1000"]);
    let (second, _) = client.acquire(&lock_request, Position::Ticket(1)).granted();
    assert!(second > first);
    // The lease counts from now.
    let left = client.command(&["PTTL", "deploy"]).as_integer().unwrap();
    assert!(left > 1000, "{left}");
}

#[test]
fn plain_commands_take_a_free_lock() {
    let (_server, mut client) = start();
    let lock_request = client.lock_request(Mode::Exclusive);
    let proposal = lock_request.owner.since().as_micros() + 1;
    let attempt = |lock_request: &Arc<LockRequest>, proposal| Request::TryAcquire {
        lock_request: Arc::clone(lock_request),
        proposal,
        expire: true,
    };
    let reply = client.ask(&attempt(&lock_request, proposal));
    assert!(matches!(reply, Reply::Granted { fence, .. } if fence.get() == proposal));
    // The lease of an earlier sending does not count from this one.
    match client.ask(&attempt(&lock_request, proposal)) {
        Reply::Busy(refusal) => assert_eq!(refusal.busy.holder, Some(lock_request.owner)),
        other => panic!("{other:?}"),
    }
    assert!(client.release(&lock_request));
    // The counter is ahead of the next request.
    let lock_request = client.lock_request(Mode::Exclusive);
    let counter = proposal + 100;
    client.command(&["ZADD", FENCE, &counter.to_string(), "f"]);
    let behind = client.ask(&attempt(&lock_request, proposal + 1));
    assert!(matches!(behind, Reply::GrantedBehind), "{behind:?}");
    let drawn = client.ask(&Request::DrawFence {
        lock_request: lock_request.clone(),
    });
    assert!(matches!(drawn, Reply::Granted { fence, .. } if fence.get() == counter + 1));
    let noted = client.command(&["ZSCORE", FENCE, &lock_request.owner.to_string()]);
    assert_eq!(noted.as_number(), Some((counter + 1) as f64));
    let other = client.lock_request(Mode::Exclusive);
    match client.ask(&attempt(&other, proposal)) {
        Reply::Busy(refusal) => {
            assert_eq!(refusal.busy.holder, Some(lock_request.owner));
            assert_eq!(refusal.busy.position, None);
        }
        reply => panic!("{reply:?}"),
    }
    let rest = client.command(&["PTTL", FENCE]).as_integer().unwrap();
    assert!(rest > 604_000_000);
}

#[test]
fn lock_is_freed_alone_unless_requests_wait() {
    let (_server, mut client) = start();
    let lock_request = client.lock_request(Mode::Exclusive);
    let free = Request::Free {
        lock_request: lock_request.clone(),
    };
    assert!(matches!(client.ask(&free), Reply::Contended), "not held");
    client.acquire(&lock_request, Position::None).granted();
    let waiter = client.lock_request(Mode::Exclusive);
    client.acquire(&waiter, Position::Ticket(1));
    assert!(matches!(client.ask(&free), Reply::Contended), "waited for");
    assert_eq!(client.value(), Some(lock_request.owner.to_string()));
    client.command(&["DEL", "leasehold:queue:{deploy}:deploy"]);
    let freed = client.ask(&free);
    assert!(matches!(freed, Reply::Released { freed: true, .. }));
    assert_eq!(client.value(), None);
    client.command(&["HSET", "deploy", "uuid:1", "1"]);
    assert!(matches!(client.ask(&free), Reply::Contended), "a hash");
}

#[test]
fn lock_of_another_type_is_an_error() {
    let (_server, mut client) = start();
    client.command(&["HSET", "deploy", "uuid:1", "1"]);
    let lock_request = client.lock_request(Mode::Exclusive);
    let error = client.acquire(&lock_request, Position::Ticket(1)).failed();
    assert_eq!(error.kind(), ErrorKind::IncompatibleKey);
    assert!(error.to_string().contains("hash"), "{error}");
    let proposal = 7;
    let reply = client.ask(&Request::TryAcquire {
        lock_request: lock_request.clone(),
        proposal,
        expire: false,
    });
    assert!(matches!(reply, Reply::Failed(error) if error.kind() == ErrorKind::IncompatibleKey));
    assert!(!client.release(&lock_request));
    assert!(matches!(
        client.renew(&lock_request),
        LeaseState::Lost(LostReason::Taken)
    ));
    let kept = client.command(&["HGET", "deploy", "uuid:1"]);
    assert_eq!(kept.as_text(), Some("1"));
    let queue = client.command(&["EXISTS", "leasehold:queue:{deploy}:deploy"]);
    assert_eq!(queue.as_integer(), Some(0));
}

#[test]
fn value_of_another_library_is_respected() {
    let (_server, mut client) = start();
    client.command(&["SET", "deploy", "token", "NX", "PX", "60000"]);
    let lock_request = client.lock_request(Mode::Exclusive);
    let refusal = client.acquire(&lock_request, Position::Ticket(1)).refused();
    assert_eq!(refusal.busy.position, Some(1));
    assert_eq!(refusal.ask_again, Some(Duration::from_millis(25)));
    assert!(refusal.busy.remaining.unwrap() > Duration::from_secs(50));
    assert!(!client.release(&lock_request));
    assert_eq!(client.value().as_deref(), Some("token"));
}

#[test]
fn leases_are_renewed_each_on_its_own() {
    let (_server, mut client) = start();
    let keys = ["held", "free", "taken", "damaged", "foreign"];
    let lock_requests = keys.map(|key| client.request_on(key, Mode::Exclusive));
    for lock_request in [&lock_requests[0], &lock_requests[3]] {
        client.acquire(lock_request, Position::None).granted();
    }
    let other = client.request_on("taken", Mode::Exclusive);
    client.acquire(&other, Position::None).granted();
    client.command(&["DEL", "leasehold:fence:0:{damaged}:damaged"]);
    client.command(&["SET", "leasehold:fence:0:{damaged}:damaged", "x"]);
    client.command(&["SADD", "foreign", "x"]);
    client.command(&["PEXPIRE", "held", "1000"]);
    let leases = lock_requests
        .iter()
        .map(|lock_request| lease(lock_request, 1, None))
        .collect();
    let states = client.renew_all(leases);
    assert!(matches!(states[0], LeaseState::Renewed));
    assert!(matches!(states[1], LeaseState::Lost(LostReason::Gone)));
    assert!(matches!(states[2], LeaseState::Lost(LostReason::Taken)));
    let LeaseState::Failed(error) = &states[3] else {
        panic!("{states:?}")
    };
    assert_eq!(error.kind(), ErrorKind::Corrupt);
    assert!(matches!(states[4], LeaseState::Lost(LostReason::Taken)));
    let left = client.command(&["PTTL", "held"]).as_integer().unwrap();
    assert!(left > 1000 && left <= TTL.as_millis() as i64);
}

#[test]
fn renewal_shortens_no_lease() {
    let (_server, mut client) = start();
    let held = client.hold(Mode::Exclusive);
    client.command(&["PEXPIRE", "deploy", "100000"]);
    assert!(matches!(client.renew(&held), LeaseState::Renewed));
    let shared = Arc::new((*held).clone().with_mode(Mode::Shared));
    for lock_request in [&held, &shared, &shared] {
        assert!(matches!(client.renew(lock_request), LeaseState::Renewed));
        let left = client.command(&["PTTL", "deploy"]).as_integer().unwrap();
        assert!(left > 90_000, "{left}");
    }
}

#[test]
fn many_leases_are_renewed_in_parts() {
    let (_server, mut client) = start();
    let lock_requests: Vec<_> = (0..130)
        .map(|number| client.request_on(&format!("k{number}"), Mode::Exclusive))
        .collect();
    for lock_request in lock_requests
        .iter()
        .filter(|lock_request| lock_request.key.as_str() != "k128")
    {
        client.acquire(lock_request, Position::None).granted();
    }
    let leases = lock_requests
        .iter()
        .map(|lock_request| lease(lock_request, 1, None))
        .collect();
    let states = client.renew_all(leases);
    assert_eq!(states.len(), 130);
    for (number, state) in states.iter().enumerate() {
        let stands = matches!(state, LeaseState::Renewed);
        assert_eq!(stands, number != 128, "{number}: {state:?}");
    }
    let waiters: Vec<_> = lock_requests.iter().collect();
    assert_eq!(client.heartbeat(&waiters).len(), 130);
}

#[test]
fn fence_is_confirmed_while_the_lease_stands() {
    let (_server, mut client) = start();
    let lock_request = client.lock_request(Mode::Exclusive);
    let (fence, _) = client.acquire(&lock_request, Position::None).granted();
    assert_eq!(
        client.confirm(&lock_request, fence + 100),
        FenceConfirmation::Confirmed
    );
    let noted = client.command(&["ZSCORE", FENCE, &lock_request.owner.to_string()]);
    assert_eq!(noted.as_number(), Some((fence + 100) as f64));
    client.release(&lock_request);
    assert_eq!(
        client.confirm(&lock_request, fence + 200),
        FenceConfirmation::NotHeld
    );
    let next = client.lock_request(Mode::Exclusive);
    let (later, _) = client.acquire(&next, Position::None).granted();
    assert_eq!(later, fence + 101);
}

#[test]
fn lost_lease_is_restored_on_free_locks() {
    let (_server, mut client) = start();
    let lock_request = client.lock_request(Mode::Exclusive);
    let fence = 5_000_000_000_000_000;
    client.command(&["ZADD", FENCE, "9000000000000", "gap"]);
    assert!(!client.repair(&lock_request, fence), "in a gap");
    client.command(&["ZREM", FENCE, "gap"]);
    assert!(client.repair(&lock_request, fence));
    assert_eq!(client.value(), Some(lock_request.owner.to_string()));
    assert!(!client.repair(&lock_request, fence));
    client.release(&lock_request);
    let next = client.lock_request(Mode::Exclusive);
    assert_eq!(client.acquire(&next, Position::None).granted().0, fence + 1);
    let shared = client.lock_request(Mode::Shared);
    assert!(!client.repair(&shared, 7));
    assert!(!client.repair(&lock_request, 8));
}
