//! Machines that lose power. The servers still see their waiters as listening.

use std::time::Duration;

use leasehold_testkit::faults::{NetworkFault, Proxy};

use super::fixture::Fixture;
use super::head::lease_end;
use super::host::Host;
use super::note;

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
    let mut fixture = Fixture::of(members);
    let client = fixture.client();
    let guard = fixture.hold(&client);
    let (doomed, alive) = two_kinds(&mut fixture, 1);
    fixture.resource.ask_to_stay(FOR_EVER);
    fixture.time_from_release(guard);
    power_off(&doomed);
    let over = lease_end(&fixture);
    fixture.await_grants(2);
    let span = fixture.holds()[1].granted.since(over);
    assert_eq!(fixture.order(), [0, 1], "{}", fixture.tell());
    alive.finish();
    fixture.assert_exclusive();
    span
}

fn time_after(members: usize, dead: usize) -> Duration {
    let mut fixture = Fixture::of(members);
    let client = fixture.client();
    let guard = fixture.hold(&client);
    let (doomed, alive) = two_kinds(&mut fixture, dead);
    power_off(&doomed);
    let span = fixture.time_from_release(guard);
    assert_eq!(fixture.order(), [dead], "{}", fixture.tell());
    alive.finish();
    fixture.assert_exclusive();
    span
}

/// Starts hosts with many waits each, followed by a host with a single wait.
fn two_kinds(fixture: &mut Fixture, doomed: usize) -> (Vec<(Host, Vec<Proxy>)>, Host) {
    let mut doomed: Vec<_> = (0..doomed).map(|_| fixture.host_behind_proxies()).collect();
    for (host, _) in &mut doomed {
        fixture.wait(host, CROWD);
    }
    let mut alive = fixture.host();
    fixture.wait(&mut alive, 1);
    (doomed, alive)
}

fn power_off(hosts: &[(Host, Vec<Proxy>)]) {
    for proxy in hosts.iter().flat_map(|(_, proxies)| proxies) {
        proxy.set(NetworkFault::HalfOpen);
    }
}
