//! Workers share a lock over an ensemble of three, while a test breaks the leader and the network.
//!
//! Each fault strikes once. `LEASEHOLD_FAULTS_SECONDS` makes each test strike again and again for that time, and
//! `--nocapture` shows what the judges found.
#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "in a test's helpers a failure is the test's failure"
)]

mod ensemble;

use std::time::Duration;

use leasehold::clock::{Clock as _, SystemClock};
use leasehold_testkit::faults::{Findings, NetworkFault};
use leasehold_testkit::servers::until;

use ensemble::{Ensemble, TTL, pause};

/// Strikes, and judges what happened. `may_end_early` says that the fault can make the ensemble end leases early: then
/// two guards may be valid at once, and the fences alone must keep the record right.
fn survives(fault: &str, may_end_early: bool, strike: impl Fn(&mut Ensemble)) {
    let mut ensemble = Ensemble::start();
    let begun = SystemClock.now();
    let mut rounds = 0;
    while rounds == 0 || SystemClock.now() < begun + seconds() {
        strike(&mut ensemble);
        ensemble.await_grants(3);
        rounds += 1;
    }
    let lasted = SystemClock.now().since(begun);
    let history = ensemble.finish();
    let mut found = Findings::of(&history);
    let overlaps = found.valid_overlaps.len();
    if may_end_early {
        found.valid_overlaps.clear();
    }
    let mut holds = history.holds;
    holds.sort_by_key(|hold| hold.granted);
    let gaps = holds
        .windows(2)
        .map(|pair| pair[1].granted.since(pair[0].granted));
    println!(
        "{fault}: {rounds} rounds in {lasted:.1?}, {} grants, {overlaps} times two valid guards, {} stale requests \
         refused, {} updates lost without fences, longest time between two grants {:.1?}, {} refusals, the last: {:?}",
        found.grants,
        found.stale_refused,
        found.plain_updates_lost,
        gaps.max().unwrap_or_default(),
        history.refusals.len(),
        history.refusals.last(),
    );
    assert_eq!(found.violations(), [""; 0], "{fault}");
}

/// How long each test goes on.
fn seconds() -> Duration {
    #[expect(
        clippy::disallowed_methods,
        reason = "a longer run is asked for by a variable"
    )]
    let wanted = std::env::var("LEASEHOLD_FAULTS_SECONDS");
    Duration::from_secs(wanted.map_or(0, |text| text.parse().unwrap()))
}

#[test]
fn killed_leader_of_etcd_is_replaced() {
    survives("leader killed", false, |ensemble| {
        let leader = ensemble.servers.leader();
        ensemble.await_holder();
        ensemble.servers[leader].kill();
        ensemble.servers.leader_but(leader);
        ensemble.await_grants(1);
        ensemble.servers[leader].restart();
    });
}

#[test]
fn stopped_leader_of_etcd_causes_no_stale_write() {
    survives("leader stopped for longer than the TTL", true, |ensemble| {
        let leader = ensemble.servers.leader();
        ensemble.await_holder();
        ensemble.servers[leader].freeze();
        ensemble.servers.leader_but(leader);
        ensemble.await_grants(1);
        pause(TTL);
        ensemble.await_holder();
        ensemble.servers[leader].thaw();
        until("the former leader follows", || {
            !ensemble.servers[leader].is_leader()
        });
    });
}

#[test]
fn partitioned_leader_of_etcd_is_replaced() {
    survives("leader cut off from the other members", true, |ensemble| {
        let leader = ensemble.servers.leader();
        ensemble.await_holder();
        // What the leader sends and what it gets: nothing passes between it and the others.
        for peer in ensemble.servers.peers() {
            peer.set(NetworkFault::HalfOpen);
        }
        pause(TTL);
        for (number, peer) in ensemble.servers.peers().iter().enumerate() {
            if number != leader {
                peer.set(NetworkFault::None);
                peer.cut();
            }
        }
        ensemble.servers.leader_but(leader);
        ensemble.await_grants(1);
        let peer = &ensemble.servers.peers()[leader];
        peer.set(NetworkFault::None);
        peer.cut();
    });
}

#[test]
fn clients_survive_broken_paths_to_etcd() {
    survives(
        "paths between clients and members broken",
        false,
        |ensemble| {
            let faults = [
                NetworkFault::Refusing,
                NetworkFault::HalfOpen,
                NetworkFault::Frozen,
                NetworkFault::SlowAnswers(TTL / 2),
            ];
            for fault in faults {
                for path in &ensemble.paths[..2] {
                    path.set(fault);
                }
                ensemble.await_grants(2);
                pause(TTL / 2);
                for path in &ensemble.paths {
                    path.set(NetworkFault::None);
                    path.cut();
                }
            }
        },
    );
}

#[test]
fn ensemble_of_etcd_without_a_majority_grants_nothing() {
    survives("majority killed", false, |ensemble| {
        ensemble.await_holder();
        ensemble.servers[0].kill();
        ensemble.servers[1].kill();
        // Answers that are on their way may still arrive.
        pause(TTL / 3);
        let before = ensemble.grants();
        pause(TTL);
        assert_eq!(ensemble.grants(), before, "granted without a majority");
        ensemble.servers[0].restart();
        ensemble.servers[1].restart();
    });
}
