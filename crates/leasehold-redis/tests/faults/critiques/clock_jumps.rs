use leasehold_testkit::servers::{RedisServer, until};

use super::fixture::{Fixture, LOCK, LONG, refused};
use super::naive::Counted;
use crate::set::{MAX_TTL, TTL};

/// "The clock on node C jumps forward, causing the lock to expire" (M. Kleppmann, How to do
/// distributed locking, 2016, the first example).
pub(super) fn scenario() {
    naive_clients_are_both_inside();
    ours_leaves_the_member_out();
}

/// Steps the clock past the end of every lease.
fn jump(server: &RedisServer) {
    server.clock().forward(LONG * 2);
}

fn naive_clients_are_both_inside() {
    let mut fixture = Fixture::of_three(&RedisServer::builder().steppable_clock());
    fixture.split();
    let [mut alice, mut bob] = fixture.naive(Counted::FromAsking);
    let first = alice.acquire(LOCK, LONG).expect("a free lock");
    assert!(bob.acquire(LOCK, LONG).is_none(), "the majorities meet");
    jump(fixture.in_common());
    let second = bob.acquire(LOCK, LONG).expect("the broken algorithm");
    assert!(first.is_valid() && second.is_valid());
}

fn ours_leaves_the_member_out() {
    let mut fixture = Fixture::of_three(&RedisServer::builder().steppable_clock());
    let [alice, bob] = fixture.ours(MAX_TTL);
    fixture.split();
    let _held = alice.lock(LOCK).ttl(TTL).wait(LONG).acquire().unwrap();
    jump(fixture.in_common());
    let lock = bob.lock(LOCK).ttl(TTL);
    until("the member's clock is named", || {
        let failure = refused(lock.try_acquire());
        let reason = failure.error.reason();
        reason.contains("its clock") && reason.contains("ahead")
    });
}
