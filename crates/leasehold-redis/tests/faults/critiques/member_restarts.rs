use leasehold_testkit::servers::{RedisServer, until};

use super::fixture::{Fixture, LOCK, LONG, refused};
use super::naive::Counted;
use crate::set::{MAX_TTL, TTL};

/// A member crashes and restarts without its data during a lease that it helped to grant. For this case,
/// the Redlock page itself asks for fsync or delayed restarts.
pub(super) fn scenario() {
    naive_clients_are_both_inside();
    ours_waits_until_no_lease_can_be_forgotten();
}

fn naive_clients_are_both_inside() {
    let mut fixture = Fixture::of_three(&RedisServer::builder());
    fixture.split();
    let [mut alice, mut bob] = fixture.naive(Counted::FromAsking);
    let first = alice.acquire(LOCK, LONG).expect("a free lock");
    assert!(bob.acquire(LOCK, LONG).is_none(), "the majorities meet");
    fixture.in_common().restart();
    let [_, mut bob] = fixture.naive(Counted::FromAsking);
    let second = bob.acquire(LOCK, LONG).expect("the broken algorithm");
    assert!(first.is_valid() && second.is_valid());
}

fn ours_waits_until_no_lease_can_be_forgotten() {
    let mut fixture = Fixture::of_three(&RedisServer::builder());
    let [alice, bob] = fixture.ours(MAX_TTL);
    fixture.split();
    let held = alice.lock(LOCK).ttl(TTL).wait(LONG).acquire().unwrap();
    fixture.in_common().restart();
    let lock = bob.lock(LOCK).ttl(TTL);
    until("its loss is named", || {
        let failure = refused(lock.try_acquire());
        failure.error.reason().contains("lost")
    });
    // The other members have to note that it began anew, and each client reaches only one of them.
    fixture.heal();
    drop(held);
    let next = lock.wait(LONG).acquire();
    next.expect("a majority").release().unwrap();
}
