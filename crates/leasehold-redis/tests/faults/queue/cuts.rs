//! Connections of waiters are reset, again and again.

use std::time::Duration;

use leasehold::clock::{Clock, SystemClock};
use leasehold_testkit::faults::Proxy;
use leasehold_testkit::servers::{RedisServer, Reply, until};

use super::fixture::Fixture;
use super::host::{Host, host_of};
use super::{note, pause};

/// The host whose connections are not cut while the lock passes around. Its waiters keep their order.
const SPARED: usize = 0;

const HOSTS: usize = 4;
const WAITS_EACH: usize = 5;
const ALL: usize = HOSTS * WAITS_EACH;

/// How many times connections are cut while the lock is held, and while it passes around.
const CUTS: usize = 12;

/// The time between two cuts, and how many waits each host then starts: more than are served in that time.
const PAUSE: Duration = Duration::from_millis(150);
const MORE: usize = 5;

/// How soon the next waiter must get the lock after any cut: presence, a heartbeat, and a margin for a slow
/// machine.
const NEXT: Duration = Duration::from_secs(5);

pub(super) fn while_they_wait(members: usize) {
    let mut fixture = Fixture::of(members);
    let client = fixture.client();
    let guard = fixture.hold(&client);
    let mut hosts = start(&mut fixture);
    let clients = queue_up(&fixture, &mut hosts);
    cut_some(&hosts);
    fixture.await_queued(ALL);
    // The holder listens as well.
    await_hearing(&fixture, HOSTS + 1);
    let host_of = |client: &String| clients.iter().position(|other| other == client);
    let order: Vec<_> = fixture.clients().iter().filter_map(host_of).collect();
    let before = SystemClock.now();
    let span = fixture.time_from_release(guard);
    fixture.await_grants(ALL);
    assert_eq!(fixture.order(), order);
    note(&format!(
        "{members} servers, connections cut while waiting: first grant after {span:?}, longest \
         gap {:?}",
        fixture.longest_gap(before)
    ));
    end(&fixture, hosts);
}

pub(super) fn while_the_lock_goes_around(members: usize) {
    let mut fixture = Fixture::of(members);
    let client = fixture.client();
    let guard = fixture.hold(&client);
    let mut hosts = start(&mut fixture);
    queue_up(&fixture, &mut hosts);
    let begun = SystemClock.now();
    let released = guard.release();
    assert!(released.is_ok(), "{released:?}");
    let mut granted = ALL;
    for round in 0..CUTS {
        let (_, proxies) = &hosts[SPARED + 1 + round % (HOSTS - 1)];
        for proxy in proxies {
            proxy.cut();
        }
        for (number, (host, _)) in hosts.iter_mut().enumerate() {
            // The waits whose order is checked start one after the other.
            let more = if number == SPARED { 1 } else { MORE };
            host.wait(more);
            granted += more;
        }
        pause(PAUSE);
    }
    fixture.await_grants(granted);
    let spared: Vec<usize> = fixture
        .holds()
        .iter()
        .map(|hold| hold.worker)
        .filter(|worker| host_of(*worker) == SPARED)
        .collect();
    assert!(spared.is_sorted(), "{spared:?}");
    let gap = fixture.longest_gap(begun);
    note(&format!(
        "{members} servers, connections cut during {granted} hand-overs: longest gap {gap:?}"
    ));
    assert!(gap < NEXT, "{gap:?}");
    end(&fixture, hosts);
}

fn start(fixture: &mut Fixture) -> Vec<(Host, Vec<Proxy>)> {
    (0..HOSTS).map(|_| fixture.host_behind_proxies()).collect()
}

/// Starts all waits, by turns. Returns the clients of the hosts.
fn queue_up(fixture: &Fixture, hosts: &mut [(Host, Vec<Proxy>)]) -> Vec<String> {
    let mut clients = Vec::new();
    for _ in 0..WAITS_EACH {
        let turn = hosts.iter_mut().map(|(host, _)| fixture.wait(host, 1));
        clients = turn.collect();
    }
    clients
}

fn cut_some(hosts: &[(Host, Vec<Proxy>)]) {
    for round in 0..CUTS {
        let (_, proxies) = &hosts[round % hosts.len()];
        for proxy in proxies.iter().skip(round % 3) {
            proxy.cut();
        }
        pause(PAUSE);
    }
}

/// Waits until every server can notify that many clients again.
fn await_hearing(fixture: &Fixture, clients: usize) {
    let hears = |server: &RedisServer| match server.command(&["PUBSUB", "CHANNELS"]) {
        Reply::Array(channels) => channels.len() == clients,
        other => panic!("PUBSUB: {other:?}"),
    };
    until("all clients listen again", || {
        fixture.servers.iter().all(hears)
    });
}

fn end(fixture: &Fixture, hosts: Vec<(Host, Vec<Proxy>)>) {
    fixture.await_nothing_left();
    for (host, _proxies) in hosts {
        host.finish();
    }
    fixture.assert_well();
}
