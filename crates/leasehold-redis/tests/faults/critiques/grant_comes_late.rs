use std::time::Duration;

use leasehold::clock::{Clock, SystemClock};
use leasehold_testkit::faults::NetworkFault;
use leasehold_testkit::servers::{RedisServer, Reply, until};

use super::fixture::{Fixture, LOCK, LONG};
use super::naive::Counted;
use crate::set::TTL;

/// The answers to a request travel for longer than the lease lasts. The Redlock page says to subtract the
/// time that asking took. Many implementations that count from the answer do not.
pub(super) fn scenario() {
    naive_clients_are_both_inside();
    ours_throws_the_attempt_away_and_frees_it();
}

/// Longer than the lease.
fn delay(fixture: &Fixture, ttl: Duration) {
    let delay = ttl + Duration::from_secs(1);
    fixture.set_network_fault_at_alice(NetworkFault::SlowAnswers(delay));
}

fn naive_clients_are_both_inside() {
    let fixture = Fixture::of_three(&RedisServer::builder());
    let [mut alice, mut bob] = fixture.naive(Counted::FromTheAnswer);
    delay(&fixture, TTL);
    let asked = alice.ask(LOCK, TTL);
    until("every member has granted it", || {
        fixture.servers.iter().all(has_been_asked)
    });
    let mut second = None;
    until("the lease is over", || {
        second = bob.acquire(LOCK, LONG);
        second.is_some()
    });
    let first = alice.hear(asked, TTL).expect("the broken algorithm");
    assert!(first.is_valid() && second.expect("a belief").is_valid());
}

/// Whether its first SET was carried out, no matter how long ago.
fn has_been_asked(server: &RedisServer) -> bool {
    match server.command(&["INFO", "commandstats"]) {
        Reply::Bulk(counts) => counts.contains("cmdstat_set:calls=1,"),
        other => panic!("INFO: {other:?}"),
    }
}

fn ours_throws_the_attempt_away_and_frees_it() {
    let fixture = Fixture::of_three(&RedisServer::builder());
    let [alice, bob] = fixture.ours(LEASE);
    delay(&fixture, LEASE);
    let asked = SystemClock.now();
    let error = alice.lock(LOCK).ttl(LEASE).try_acquire();
    let error = error.expect_err("no answer has come");
    assert!(error.is_unreachable(), "{error}");
    assert_eq!(error.effect(), leasehold::Effect::Unknown, "{error}");
    fixture.set_network_fault_at_alice(NetworkFault::None);
    let guard = bob.lock(LOCK).ttl(LEASE).wait(LONG).acquire();
    let waited = SystemClock.now().since(asked);
    assert!(waited < LEASE, "it was not freed, it expired: {waited:?}");
    assert!(guard.expect("a lock that was freed").is_valid());
}

/// So long that a lock stays taken unless it is released.
const LEASE: Duration = Duration::from_secs(20);
