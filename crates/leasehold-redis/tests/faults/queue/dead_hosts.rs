//! Machines that lose power. The servers still see their waiters as listening.

use std::time::Duration;

use leasehold_testkit::faults::{NetworkFault, Proxy};

use super::head::lease_end;
use super::host::Host;
use super::note;
use super::scene::Scene;

/// How many waits each machine has that loses power.
const CROWD: usize = 50;

/// The servers drop all waiters of a machine when its presence ends, and those of other machines at the
/// same time.
const LIMIT: Duration = Duration::from_secs(5);

/// The limit after the end of a lease whose holder lost power with the waiters. The servers drop these long
/// before.
const AFTER_LEASE: Duration = Duration::from_millis(100);

/// Longer than any test takes.
const FOR_EVER: Duration = Duration::from_secs(600);

/// The greatest number of rounds. The machine of the test may stall in all of them but one.
const TRIES: usize = 3;

pub(super) fn scenario(members: usize) {
    for dead in 1..=2 {
        let mut spans = Vec::new();
        while spans.last().is_none_or(|span| *span > LIMIT) {
            assert!(spans.len() < TRIES, "{dead} hosts of {CROWD}: {spans:?}");
            spans.push(time_after(members, dead));
        }
        note(&format!(
            "{members} servers, {dead} hosts of {CROWD} powered off: next grant after {spans:?}"
        ));
    }
}

/// The holder loses power together with the waiters behind it.
pub(super) fn with_the_holder(members: usize) {
    let mut spans = Vec::new();
    while spans.last().is_none_or(|span| *span > AFTER_LEASE) {
        assert!(spans.len() < TRIES, "{spans:?}");
        spans.push(time_after_lease(members));
    }
    note(&format!(
        "{members} servers, a host of {CROWD} powered off with the holder: next grant {spans:?} \
         after the end of the lease"
    ));
}

fn time_after_lease(members: usize) -> Duration {
    let mut scene = Scene::of(members);
    let client = scene.client();
    let guard = scene.hold(&client);
    let (doomed, alive) = two_kinds(&mut scene, 1);
    scene.gate.ask_to_stay(FOR_EVER);
    scene.time_from_release(guard);
    power_off(&doomed);
    let over = lease_end(&scene);
    scene.await_grants(2);
    let span = scene.holds()[1].granted.since(over);
    assert_eq!(scene.order(), [0, 1], "{}", scene.tell());
    alive.finish();
    scene.assert_exclusive();
    span
}

fn time_after(members: usize, dead: usize) -> Duration {
    let mut scene = Scene::of(members);
    let client = scene.client();
    let guard = scene.hold(&client);
    let (doomed, alive) = two_kinds(&mut scene, dead);
    power_off(&doomed);
    let span = scene.time_from_release(guard);
    assert_eq!(scene.order(), [dead], "{}", scene.tell());
    alive.finish();
    scene.assert_exclusive();
    span
}

/// Starts hosts with many waits each, followed by a host with a single wait.
fn two_kinds(scene: &mut Scene, doomed: usize) -> (Vec<(Host, Vec<Proxy>)>, Host) {
    let mut doomed: Vec<_> = (0..doomed).map(|_| scene.host_behind_proxies()).collect();
    for (host, _) in &mut doomed {
        scene.wait(host, CROWD);
    }
    let mut alive = scene.host();
    scene.wait(&mut alive, 1);
    (doomed, alive)
}

fn power_off(hosts: &[(Host, Vec<Proxy>)]) {
    for proxy in hosts.iter().flat_map(|(_, proxies)| proxies) {
        proxy.set(NetworkFault::HalfOpen);
    }
}
