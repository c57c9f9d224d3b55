use leasehold_testkit::servers::RedisServer;

use super::naive::Counted;
use super::stage::{LOCK, LONG, Stage};

/// A member crashes and restarts without its data, while a lease lives that it helped to grant: the
/// case for which the Redlock page itself asks for fsync or delayed restarts.
pub(super) fn scenario() {
    naive_clients_are_both_inside();
}

fn naive_clients_are_both_inside() {
    let mut stage = Stage::of_three(&RedisServer::builder());
    stage.split();
    let [mut alice, mut bob] = stage.naive(Counted::FromAsking);
    let first = alice.acquire(LOCK, LONG).expect("a free lock");
    assert!(bob.acquire(LOCK, LONG).is_none(), "the majorities meet");
    stage.in_common().restart();
    let [_, mut bob] = stage.naive(Counted::FromAsking);
    let second = bob.acquire(LOCK, LONG).expect("the broken algorithm");
    assert!(first.stands() && second.stands());
}
