//! The next waiter, or the holder, dies or stops.

use std::time::Duration;

use leasehold::clock::{BootInstant, Clock, SystemClock};
use leasehold_redis::codec::Codec;
use leasehold_testkit::servers::{RedisServer, Reply, until};

use super::fixture::{Fixture, queued};
use super::host::Host;
use super::{LOCK, note};

/// The limit after a release with a dead head, and after the end of a dead holder's lease. The release may
/// begin a gap for clients of other libraries.
const AT_ONCE: Duration = Codec::FOREIGN_GAP.saturating_add(Duration::from_millis(100));

/// A heartbeat of the waiter behind the head, and a margin for a slow machine.
const ONE_HEARTBEAT: Duration = Duration::from_millis(1500);

/// The presence of a stopped client, and a heartbeat.
const PRESENCE: Duration = Duration::from_secs(3);

/// Longer than any test takes.
const FOR_EVER: Duration = Duration::from_secs(600);

/// The number of rounds. It is odd, and most rounds must be in time, since the machine may stall during one.
const ROUNDS: usize = 5;

/// The same for leases that have to expire.
const LEASES: usize = 3;

/// The server sees that the head's connections are closed, and notifies the next waiter.
pub(super) fn is_killed_while_it_waits(members: usize) {
    let mut fixture = Fixture::of(members);
    let client = fixture.client();
    let mut next = fixture.host();
    let spans = (0..ROUNDS).map(|_| {
        let guard = fixture.hold(&client);
        let head = heads(&mut fixture, &mut next);
        head.kill();
        let span = fixture.time_from_release(guard);
        fixture.await_nothing_left();
        span
    });
    let spans = in_order(spans.collect());
    note(&format!(
        "{members} servers, head killed before the release: next grant after {spans:?}"
    ));
    assert!(spans[ROUNDS / 2] < AT_ONCE, "{spans:?}");
    next.finish();
    fixture.assert_well();
}

/// A head that dies after its notification. The waiter behind it notices with its next heartbeat.
pub(super) fn is_killed_in_its_turn(members: usize) {
    let mut fixture = Fixture::of(members);
    let client = fixture.client();
    let mut next = fixture.host();
    let spans = (0..ROUNDS).map(|_| {
        let guard = fixture.hold(&client);
        let head = heads(&mut fixture, &mut next);
        // The server notifies the head, which then does nothing.
        head.pause();
        let killed = std::thread::scope(|scope| {
            let killing = scope.spawn(|| {
                until("the head is notified", || {
                    let next = Reply::Bulk("leasehold:next".into());
                    let is_told = |server: &RedisServer| server.command(&["GET", LOCK]) == next;
                    fixture.servers.iter().all(is_told)
                });
                head.kill();
            });
            let span = fixture.time_from_release(guard);
            killing.join().expect("the head was killed");
            span
        });
        fixture.await_nothing_left();
        killed
    });
    let spans = in_order(spans.collect());
    note(&format!(
        "{members} servers, head killed when it was told: next grant after {spans:?}"
    ));
    assert!(spans[ROUNDS / 2] < ONE_HEARTBEAT, "{spans:?}");
    next.finish();
    fixture.assert_well();
}

/// The servers drop a stopped head when its presence ends. When it continues it gets its old place.
pub(super) fn stands_still(members: usize) {
    let mut fixture = Fixture::of(members);
    let client = fixture.client();
    let guard = fixture.hold(&client);
    let mut hosts: Vec<Host> = (0..3).map(|_| fixture.host()).collect();
    for host in &mut hosts {
        fixture.wait(host, 1);
    }
    hosts[0].pause();
    // Long enough for the first waiter to come back in the meantime.
    fixture.resource.ask_to_stay(Duration::from_secs(4));
    let span = fixture.time_from_release(guard);
    note(&format!(
        "{members} servers, head stopped: next grant after {span:?}"
    ));
    hosts[0].resume();
    until("the first has its place again", || {
        fixture.servers.iter().all(|server| queued(server) == 2)
    });
    fixture.await_grants(3);
    assert_eq!(fixture.order(), [1, 0, 2]);
    fixture.await_nothing_left();
    for host in hosts {
        host.finish();
    }
    fixture.assert_well();
    assert!(span < PRESENCE, "{span:?}");
}

/// The lock passes to the next waiter when the lease of a dead holder ends.
pub(super) fn holder_is_killed(members: usize) {
    let mut fixture = Fixture::of(members);
    let client = fixture.client();
    let mut next = fixture.host();
    let mut spans = Vec::new();
    for round in 0..LEASES {
        let guard = fixture.hold(&client);
        let holder = heads(&mut fixture, &mut next);
        fixture.resource.ask_to_stay(FOR_EVER);
        fixture.time_from_release(guard);
        holder.kill();
        let over = lease_end(&fixture);
        fixture.await_grants(2 * (round + 1));
        let holds = fixture.holds();
        let last = holds.last().expect("a grant");
        spans.push(last.granted.since(over));
        fixture.await_nothing_left();
    }
    let spans = in_order(spans);
    note(&format!(
        "{members} servers, holder killed: next grant {spans:?} after the end of its lease"
    ));
    assert!(spans[LEASES / 2] < AT_ONCE, "{spans:?}");
    next.finish();
    fixture.assert_exclusive();
}

/// Returns when the lease has ended on a majority of the servers. A minority may never have received it.
pub(super) fn lease_end(fixture: &Fixture) -> BootInstant {
    let left = fixture.servers.iter().map(|server| {
        let now = SystemClock.now();
        match server.command(&["PTTL", LOCK]) {
            Reply::Integer(-2) => now,
            Reply::Integer(left) => {
                now + Duration::from_millis(left.try_into().expect("a lease that ends"))
            }
            other => panic!("PTTL: {other:?}"),
        }
    });
    let mut ends: Vec<_> = left.collect();
    ends.sort_unstable();
    ends[ends.len() / 2]
}

/// Starts a host that waits, followed by another wait of `next`.
fn heads(fixture: &mut Fixture, next: &mut Host) -> Host {
    let mut head = fixture.host();
    fixture.wait(&mut head, 1);
    fixture.wait(next, 1);
    head
}

fn in_order(mut spans: Vec<Duration>) -> Vec<Duration> {
    spans.sort_unstable();
    spans
}
