//! Machines that are gone without a word: as far as the servers know, those who waited there still
//! listen.

use std::time::Duration;

use leasehold_testkit::faults::{Proxy, Weather};

use super::host::Host;
use super::note;
use super::scene::Scene;
use crate::world::pause;

/// How long they wait before the machines go.
const A_WHILE: Duration = Duration::from_secs(4);

/// How many wait on each machine that goes.
const CROWD: usize = 50;

/// For one machine, and for two. The second one is found out only when somebody asks who stands
/// that far back.
const LIMITS: [Duration; 2] = [Duration::from_secs(3), Duration::from_secs(15)];

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

fn time_after(members: usize, dead: usize) -> Duration {
    let mut scene = Scene::of(members);
    let client = scene.client();
    let guard = scene.hold(&client);
    let mut doomed: Vec<(Host, Vec<Proxy>)> =
        (0..dead).map(|_| scene.host_behind_proxies()).collect();
    for (host, _) in &mut doomed {
        scene.wait(host, CROWD);
    }
    let mut alive = scene.host();
    scene.wait(&mut alive, 1);
    // Long enough for everybody to have asked again, and to rest until the floor.
    pause(A_WHILE);
    for (_, proxies) in &doomed {
        for proxy in proxies {
            proxy.set(Weather::HalfOpen);
        }
    }
    let span = scene.time_from_release(guard);
    assert_eq!(scene.order(), [dead], "{}", scene.tell());
    alive.finish();
    scene.assert_exclusive();
    span
}
