use std::time::Duration;

use leasehold::blocking;
use leasehold::clock::{Clock, SystemClock};
use leasehold_testkit::servers::{RedisSet, until};

use super::fixture::{LOCK, LONG};
use super::naive::{Counted, Naive};
use crate::set::{self, MAX_TTL, TTL};

/// Two clients whose configurations name different members. Each has a majority of its own, although
/// nothing failed, and neither client notices.
pub(super) fn scenario() {
    naive_clients_are_both_inside();
    ours_refuses_the_second_list();
    ours_takes_the_limits_of_the_members();
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
    assert!(first.is_valid() && second.is_valid());
}

fn ours_refuses_the_second_list() {
    let servers = RedisSet::start(5);
    let urls = |list: [usize; 3]| list.map(|member| servers[member].url()).to_vec();
    set::form(&servers, &urls(ALICE), MAX_TTL);
    let alice = set::client(&urls(ALICE), MAX_TTL);
    let bob = set::client(&urls(BOB), MAX_TTL);
    let held = alice.lock(LOCK).ttl(TTL).wait(LONG).acquire().unwrap();
    // This also holds when the members that Alice does not know have been up long enough to have a vote.
    let end = SystemClock.now() + MAX_TTL + Duration::from_secs(2);
    let ids = ALICE.into_iter().chain(BOB);
    let ids: Vec<_> = ids
        .map(|member| format!("127.0.0.1:{}", servers[member].port()))
        .collect();
    let mut are_named = false;
    until("both lists are named, and Bob has tried for long", || {
        let told = refused(&bob);
        are_named |= ids.iter().all(|id| told.contains(id));
        are_named && SystemClock.now() >= end
    });
    drop(held);
}

/// Bob believes in a longer TTL than a restarted server waits for.
fn ours_takes_the_limits_of_the_members() {
    let servers = RedisSet::start(3);
    set::form(&servers, &servers.urls(), MAX_TTL);
    let other = MAX_TTL * 2;
    let bob = set::client(&servers.urls(), other);
    let refused = bob.lock(LOCK).ttl(other).try_acquire().unwrap_err();
    let told = refused.to_string();
    assert!(told.contains(&format!("to {MAX_TTL:?}")), "{told}");
    assert!(bob.lock(LOCK).ttl(MAX_TTL).try_acquire().unwrap().is_some());
}

/// Returns the reason why a client with another configuration is refused.
fn refused(client: &blocking::Client) -> String {
    match client.lock(LOCK).ttl(TTL).try_acquire() {
        Err(error) => error.to_string(),
        Ok(None) => panic!("busy, though this client knows another set"),
        Ok(Some(guard)) => panic!("a second valid guard, fence {}", guard.fence()),
    }
}
