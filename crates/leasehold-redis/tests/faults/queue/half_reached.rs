//! Hosts that reach too few members. They must not get the lock, and must not keep the others from it,
//! although their places in the queue are the best.

use std::time::Duration;

use leasehold::clock::{Clock, SystemClock};
use leasehold_testkit::faults::{NetworkFault, Proxy};
use leasehold_testkit::servers::until;

use super::fixture::Fixture;
use super::host::{Host, host_of};
use super::note;

const MEMBERS: usize = 5;

/// The host that is cut off from a majority of the members.
const CUT_OFF: usize = 0;

/// How many waits this host has, and each of the others.
const IN_FRONT: usize = 5;
const BEHIND: usize = 40;
const OTHERS: usize = 2;

/// How soon the next waiter must get the lock: the presence of a host that does not come, a heartbeat, and
/// a margin for a slow machine.
const NEXT: Duration = Duration::from_secs(5);

pub(super) fn scenario() {
    for (name, fault) in [
        ("half open", NetworkFault::HalfOpen),
        ("refused", NetworkFault::Refusing),
    ] {
        let mut fixture = Fixture::of(MEMBERS);
        let client = fixture.client();
        let guard = fixture.hold(&client);
        let (mut host, proxies) = fixture.host_behind_proxies();
        fixture.wait(&mut host, IN_FRONT);
        let mut others: Vec<Host> = (0..OTHERS).map(|_| fixture.host()).collect();
        for other in &mut others {
            fixture.wait(other, BEHIND);
        }
        set_network_fault(&proxies, fault);
        let begun = SystemClock.now();
        let first = fixture.time_from_release(guard);
        let all_others = OTHERS * BEHIND;
        let served = |fixture: &Fixture| {
            fixture
                .resource
                .grants_to(|worker| host_of(worker) != CUT_OFF)
        };
        until("all the others are served", || {
            served(&fixture) == all_others
        });
        let (gap, in_vain) = (
            fixture.longest_gap(begun),
            fixture.resource.grants() - all_others,
        );
        note(&format!(
            "{MEMBERS} servers, the first host cut off from a majority, {name}: first grant after \
             {first:?}, longest gap {gap:?}, {in_vain} granted to it"
        ));
        assert_eq!(in_vain, 0, "it reaches two members");
        assert!(first.max(gap) < NEXT, "{first:?}, {gap:?}");
        set_network_fault(&proxies, NetworkFault::None);
        fixture.await_grants(all_others + IN_FRONT);
        fixture.await_nothing_left();
        host.finish();
        for other in others {
            other.finish();
        }
        fixture.assert_well();
    }
}

fn set_network_fault(proxies: &[Proxy], fault: NetworkFault) {
    for proxy in &proxies[..=MEMBERS / 2] {
        proxy.set(fault);
    }
}
