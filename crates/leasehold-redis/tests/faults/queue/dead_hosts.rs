//! Machines that are gone without a word: as far as the servers know, those who waited there still
//! listen.

use std::time::Duration;

use leasehold::clock::{Clock, SystemClock};
use leasehold_testkit::faults::{Proxy, Weather};
use leasehold_testkit::servers::Reply;

use super::host::Host;
use super::scene::Scene;
use super::{LOCK, note};
use crate::world::pause;

/// How long they wait before the machines go.
const A_WHILE: Duration = Duration::from_secs(4);

/// How many wait on each machine that goes.
const CROWD: usize = 50;

/// For one machine, and for two, or one with the holder: whoever is next behind them is told of one
/// alone, and finds out the rest when it asks by itself.
const LIMITS: [Duration; 2] = [Duration::from_secs(3), Duration::from_secs(15)];

/// Longer than any test takes.
const FOR_EVER: Duration = Duration::from_secs(600);

/// How often the machine of the test may stand still.
const TRIES: usize = 3;

pub(super) fn scenario(members: usize) {
    for (dead, limit) in (1..).zip(LIMITS) {
        let mut spans = Vec::new();
        while spans.last().is_none_or(|span| *span > limit) {
            assert!(spans.len() < TRIES, "{dead} hosts of {CROWD}: {spans:?}");
            spans.push(time_after(members, dead));
        }
        note(&format!(
            "{members} servers, {dead} hosts of {CROWD} powered off: next grant after {spans:?}"
        ));
    }
}

/// The holder dies with those of its host who are next: nobody else is told anything.
pub(super) fn with_the_holder(members: usize) {
    let mut scene = Scene::of(members);
    let client = scene.client();
    let guard = scene.hold(&client);
    let (doomed, alive) = two_kinds(&mut scene, 1);
    scene.gate.ask_to_stay(FOR_EVER);
    scene.time_from_release(guard);
    power_off(&doomed);
    let left = scene.servers[0].command(&["PTTL", LOCK]);
    let Reply::Integer(left) = left else {
        panic!("PTTL: {left:?}")
    };
    let left = Duration::from_millis(left.try_into().expect("a lease"));
    let over = SystemClock.now() + left;
    scene.await_grants(2);
    let span = scene.holds()[1].granted.since(over);
    note(&format!(
        "{members} servers, a host of {CROWD} powered off with the holder: next grant {span:?} \
         after the end of the lease"
    ));
    assert_eq!(scene.order(), [0, 1], "{}", scene.tell());
    assert!(span < LIMITS[1], "{span:?}");
    alive.finish();
    scene.assert_exclusive();
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

/// So many hosts with many waits, and behind them one with a single one.
fn two_kinds(scene: &mut Scene, doomed: usize) -> (Vec<(Host, Vec<Proxy>)>, Host) {
    let mut doomed: Vec<_> = (0..doomed).map(|_| scene.host_behind_proxies()).collect();
    for (host, _) in &mut doomed {
        scene.wait(host, CROWD);
    }
    let mut alive = scene.host();
    scene.wait(&mut alive, 1);
    // Long enough for everybody to have asked again, and to rest until the floor.
    pause(A_WHILE);
    (doomed, alive)
}

fn power_off(hosts: &[(Host, Vec<Proxy>)]) {
    for proxy in hosts.iter().flat_map(|(_, proxies)| proxies) {
        proxy.set(Weather::HalfOpen);
    }
}
