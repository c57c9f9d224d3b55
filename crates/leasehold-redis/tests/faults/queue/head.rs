//! What becomes of a lock whose next in line is gone.

use std::time::Duration;

use leasehold_testkit::servers::{Reply, until};

use super::host::Host;
use super::note;
use super::scene::{Scene, queued};
use crate::queue::{LOCK, OFFERED};

/// Less than a reservation lasts: who has to wait for one to lapse takes longer.
const NO_RESERVATION: Duration = Duration::from_millis(700);

/// A reservation, and room for a slow machine.
const ONE_RESERVATION: Duration = Duration::from_millis(1900);

/// An odd number, of which most must be in time: the machine may stand still during one.
const ROUNDS: usize = 5;

/// A head whose connections are closed is not given the lock at all.
pub(super) fn is_killed_while_it_waits(members: usize) {
    let mut scene = Scene::of(members);
    let client = scene.client();
    let mut next = scene.host();
    let spans = (0..ROUNDS).map(|_| {
        let guard = scene.hold(&client);
        let head = heads(&mut scene, &mut next);
        head.kill();
        let span = scene.time_from_release(guard);
        scene.await_nothing_left();
        span
    });
    let spans = in_order(spans.collect());
    note(&format!(
        "{members} servers, head killed before the release: next grant after {spans:?}"
    ));
    assert!(spans[ROUNDS / 2] < NO_RESERVATION, "{spans:?}");
    next.finish();
    scene.assert_well();
}

/// A head that dies when it was told already holds the others up for as long as its reservation.
pub(super) fn is_killed_in_its_turn(members: usize) {
    let mut scene = Scene::of(members);
    let client = scene.client();
    let mut next = scene.host();
    let spans = (0..ROUNDS).map(|_| {
        let guard = scene.hold(&client);
        let head = heads(&mut scene, &mut next);
        // So it is told, and does nothing any more.
        head.pause();
        let killed = std::thread::scope(|scope| {
            let killing = scope.spawn(|| {
                until("the lock is reserved", || {
                    let reserved = |server| value_at(server).contains("leasehold:next:");
                    scene.servers.iter().all(reserved)
                });
                head.kill();
            });
            let span = scene.time_from_release(guard);
            killing.join().expect("the head was killed");
            span
        });
        scene.await_nothing_left();
        killed
    });
    let spans = in_order(spans.collect());
    note(&format!(
        "{members} servers, head killed when it was told: next grant after {spans:?}"
    ));
    assert!(spans[ROUNDS / 2] < ONE_RESERVATION, "{spans:?}");
    next.finish();
    scene.assert_well();
}

/// A head that stands still is passed over, and has its old place when it goes on.
pub(super) fn stands_still(members: usize) {
    let mut scene = Scene::of(members);
    let client = scene.client();
    let guard = scene.hold(&client);
    let mut hosts: Vec<Host> = (0..3).map(|_| scene.host()).collect();
    for host in &mut hosts {
        scene.wait(host, 1);
    }
    hosts[0].pause();
    // Long enough for the first to come back meanwhile.
    scene.gate.ask_to_stay(Duration::from_secs(4));
    let span = scene.time_from_release(guard);
    note(&format!(
        "{members} servers, head stopped: next grant after {span:?}"
    ));
    hosts[0].resume();
    until("the first has its place again", || {
        scene.servers.iter().all(|server| queued(server) == 2)
    });
    scene.await_grants(3);
    assert_eq!(scene.order(), [1, 0, 2]);
    for server in scene.servers.iter() {
        let offered = server.command(&["ZCARD", OFFERED]);
        assert_eq!(offered, Reply::Integer(0), "{}", scene.tell());
    }
    scene.await_nothing_left();
    for host in hosts {
        host.finish();
    }
    scene.assert_well();
    assert!(span < ONE_RESERVATION, "{span:?}");
}

/// A host that waits, and then another wait of `next`.
fn heads(scene: &mut Scene, next: &mut Host) -> Host {
    let mut head = scene.host();
    scene.wait(&mut head, 1);
    scene.wait(next, 1);
    head
}

fn in_order(mut spans: Vec<Duration>) -> Vec<Duration> {
    spans.sort_unstable();
    spans
}

fn value_at(server: &leasehold_testkit::servers::RedisServer) -> String {
    match server.command(&["GET", LOCK]) {
        Reply::Bulk(value) => value,
        _ => String::new(),
    }
}
