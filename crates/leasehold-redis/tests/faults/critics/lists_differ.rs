use leasehold_testkit::servers::RedisSet;

use super::naive::{Counted, Naive};
use super::stage::{LOCK, LONG};

/// Two clients whose configurations name different members: each has a majority of its own, nothing
/// has failed, and no one notices.
pub(super) fn scenario() {
    naive_clients_are_both_inside();
}

/// Alice knows the first three of five servers, Bob the last three.
const ALICE: [usize; 3] = [0, 1, 2];
const BOB: [usize; 3] = [2, 3, 4];

fn naive_clients_are_both_inside() {
    let servers = RedisSet::start(5);
    let ports = |list: [usize; 3]| list.map(|member| servers[member].port());
    let mut alice = Naive::new("alice", &ports(ALICE), Counted::FromAsking);
    let mut bob = Naive::new("bob", &ports(BOB), Counted::FromAsking);
    let first = alice.acquire(LOCK, LONG).expect("a free lock");
    let second = bob.acquire(LOCK, LONG).expect("the broken algorithm");
    assert!(first.stands() && second.stands());
}
