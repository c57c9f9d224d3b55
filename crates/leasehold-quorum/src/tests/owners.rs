//! An owner names one round: once a release of it may have been sent, it never asks again.

use std::cell::Cell;
use std::collections::HashSet;

use super::*;

impl Fixture {
    /// Returns the present owner of the wait that a request began.
    pub(super) fn owner_now(&self, lock_request: &LockRequest) -> Owner {
        let began = |owner: &&Owner| owner.since() == lock_request.owner.since();
        let by_owner = &self.engine.net.owners;
        match by_owner.contains_key(&lock_request.owner) {
            true => lock_request.owner,
            false => by_owner
                .keys()
                .find(began)
                .copied()
                .unwrap_or(lock_request.owner),
        }
    }
}

#[test]
fn wait_continues_with_another_owner() {
    let mut fixture = Fixture::new(3);
    let (lock_request, id) = fixture.wait_unanswered();
    fixture.reply(0, granted(7));
    fixture.reply(1, busy(1));
    fixture.pass(100);
    let mut next = HashSet::new();
    for member in 0..3 {
        let Some(Request::Release {
            lock_request: former,
            requeue: Some(requeue),
            ..
        }) = fixture.sent(member).last()
        else {
            panic!("{member}: {:?}", fixture.sent(member));
        };
        assert_eq!(former.owner, lock_request.owner);
        next.insert(requeue.owner);
    }
    assert_eq!(next.len(), 1);
    assert!(!next.contains(&lock_request.owner));
    for member in [0, 1] {
        fixture.reply(member, released(true));
        fixture.notify(member, &lock_request);
        let asked = fixture.reply(member, granted(9));
        assert!(
            matches!(asked, Request::Acquire { lock_request, .. } if next.contains(&lock_request.owner))
        );
    }
    let acquired = fixture.acquired(id).expect("a majority");
    assert!(next.contains(&acquired.owner));
}

/// Releases the lease of a request, whose owner is another one by now.
fn release_by_request(fixture: &mut Fixture, lock_request: LockRequest, id: OperationId) {
    let owner = fixture.acquired(id).expect("a lease").owner;
    assert_ne!(owner, lock_request.owner);
    fixture.release(&Arc::new(lock_request));
    match fixture.sent(0).last() {
        Some(Request::Free { lock_request } | Request::Release { lock_request, .. }) => {
            assert_eq!(lock_request.owner, owner);
        }
        other => panic!("{other:?}"),
    }
    let net = &fixture.engine.net;
    assert!(net.owners.is_empty() && net.first_owners.is_empty());
}

/// Its caller may keep the wait, and not poll it.
#[test]
fn release_of_a_request_ends_its_later_round() {
    let mut fixture = Fixture::new(3);
    let (lock_request, id) = fixture.wait_unanswered();
    fixture.reply(0, granted(7));
    fixture.reply(1, busy(1));
    fixture.pass(100);
    for member in [0, 1] {
        fixture.reply(member, released(true));
        fixture.notify(member, &lock_request);
        fixture.reply(member, granted(9));
    }
    release_by_request(&mut fixture, LockRequest::clone(&lock_request), id);
}

/// A wait that goes ahead of the queues asks each time for another owner.
#[test]
fn release_of_a_request_ends_its_later_attempt() {
    let mut fixture = Fixture::new(1);
    let first = fixture.lock_request(true).barging(true);
    let next = Owner::at(fixture.client.id, first.owner.since(), &*fixture.entropy);
    let id = fixture.acquire(&Arc::new(first.clone().with_owner(next)));
    fixture.reply(0, granted(7));
    release_by_request(&mut fixture, first, id);
}

#[test]
fn waiter_without_a_majority_returns_with_another_owner() {
    let mut fixture = Fixture::new(1);
    let (lock_request, _) = fixture.wait();
    fixture.mute[0] = true;
    fixture.pass(5_000);
    assert!(fixture.kinds(0).contains(&"release"));
    fixture.mute[0] = false;
    fixture.disconnect(0);
    fixture.connect(0);
    fixture.pass(1_000);
    let owners = fixture.sent(0).into_iter().filter_map(|it| match it {
        Request::Acquire { lock_request, .. } => Some(lock_request.owner),
        _ => None,
    });
    let owners: Vec<Owner> = owners.collect();
    assert!(
        !owners.is_empty() && !owners.contains(&lock_request.owner),
        "{owners:?}"
    );
}

#[test]
fn own_answer_to_plain_commands_is_asked_by_script() {
    let mut fixture = Fixture::new(1);
    let (lock_request, id) = fixture.attempt();
    assert_eq!(fixture.kinds(0), ["try"]);
    let own = Busy::by(Some(lock_request.owner));
    fixture.reply(
        0,
        Reply::Busy(Refusal {
            busy: own,
            ..Refusal::default()
        }),
    );
    assert_eq!(fixture.kinds(0), ["acquire"]);
    let asked = fixture.now().instant;
    fixture.reply(0, granted(7));
    assert_eq!(fixture.acquired(id).expect("a grant").term.since, asked);
}

#[test]
fn notification_of_another_client_is_ignored() {
    let mut fixture = Fixture::new(1);
    fixture.attempt();
    fixture.reply(0, granted(7));
    let client = ClientId::random(&*fixture.entropy);
    let owner = Owner::random(client, &*fixture.entropy);
    let lock_request = fixture.lock_request(true).with_owner(owner);
    fixture.notify(0, &lock_request);
    assert!(fixture.kinds(0).is_empty());
}

/// The requests that were sent so far, in order, and what the rule forbids.
#[derive(Default)]
struct Watch {
    next: u64,
    released: HashSet<Owner>,
}

impl Watch {
    fn look(&mut self, fixture: &Fixture, seed: u64) {
        let all = fixture.sent.iter().flatten();
        let mut new: Vec<_> = all.filter(|(id, _)| id.0 >= self.next).collect();
        new.sort_unstable_by_key(|(id, _)| *id);
        for (id, request) in new {
            self.next = id.0 + 1;
            let (asks, released) = match request {
                Request::TryAcquire { lock_request, .. }
                | Request::Acquire { lock_request, .. } => (Some(lock_request.owner), None),
                Request::Free { lock_request } => (None, Some(lock_request.owner)),
                Request::Release {
                    lock_request,
                    successor,
                    ..
                } => (
                    successor.as_ref().map(|it| it.lock_request.owner),
                    Some(lock_request.owner),
                ),
                _ => (None, None),
            };
            self.released.extend(released);
            let is_reused = asks.is_some_and(|owner| self.released.contains(&owner));
            assert!(
                !is_reused,
                "seed {seed}: a released owner asks: {request:?}"
            );
        }
    }
}

/// Answers the oldest request of a member in one of the ways that are possible.
fn answer(fixture: &mut Fixture, member: usize, random: u64) {
    let Some((_, request)) = fixture.sent[member].front() else {
        return;
    };
    let reply = match request {
        Request::Release { .. } => released(random.is_multiple_of(2)),
        Request::Free { .. } if random.is_multiple_of(3) => Reply::Contended,
        Request::Free { .. } => released(true),
        Request::Dequeue { .. } => Reply::Dequeued,
        Request::TryAcquire { .. } | Request::Acquire { .. } => match random % 3 {
            0 => granted(7),
            1 => busy(1),
            _ => Reply::Failed(Error::new(ErrorKind::Unreachable, "not ready")),
        },
        _ => Reply::Failed(Error::new(ErrorKind::Unreachable, "not ready")),
    };
    fixture.reply(member, reply);
}

#[test]
fn released_owner_never_asks_again() {
    for seed in 0..300 {
        let state = Cell::<u64>::new(seed);
        let below = |end: u64| {
            let next = state
                .get()
                .wrapping_mul(0x5851_f42d_4c95_7f2d)
                .wrapping_add(1);
            state.set(next);
            (next >> 33) % end
        };
        let members = if below(3) == 0 { 1 } else { 3 };
        let mut fixture = Fixture::new(members as usize);
        let (mut watch, mut lock_requests) = (Watch::default(), Vec::new());
        for _ in 0..150 {
            let member = below(members) as usize;
            match below(12) {
                0 => lock_requests.push(fixture.wait_unanswered()),
                1 => lock_requests.push(fixture.attempt()),
                2 if !lock_requests.is_empty() => {
                    let (lock_request, id) =
                        lock_requests.swap_remove(below(lock_requests.len() as u64) as usize);
                    fixture.cancel(id);
                    let owner = fixture.owner_now(&lock_request);
                    let held = LockRequest::clone(&lock_request).with_owner(owner);
                    fixture.release(&Arc::new(held));
                }
                3 => fixture.disconnect(member),
                4 => fixture.connect(member),
                5 if !lock_requests.is_empty() => {
                    let lock_request =
                        Arc::clone(&lock_requests[below(lock_requests.len() as u64) as usize].0);
                    fixture.notify(member, &lock_request);
                }
                6 | 7 => fixture.pass(below(400)),
                _ => answer(&mut fixture, member, below(6)),
            }
            watch.look(&fixture, seed);
        }
    }
}
