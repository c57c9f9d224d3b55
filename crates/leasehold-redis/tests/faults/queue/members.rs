//! Members fail while waiters queue, and the lock still passes from holder to holder.

use std::time::Duration;

use leasehold::clock::{Clock, SystemClock};
use leasehold_testkit::servers::RedisServer;

use super::fixture::Fixture;
use super::host::Host;
use super::{note, pause};

const MEMBERS: usize = 5;
const HOSTS: usize = 4;

/// How many more waits each host starts while a member fails, and how many are served before that.
const WAITS_EACH: usize = 40;
const FIRST: usize = 20;

/// How long a member is stopped: longer than the limit of a request.
const A_WHILE: Duration = Duration::from_millis(1500);

/// How soon the next waiter must get the lock after a release, when one member fails in any way: presence,
/// a heartbeat, and a margin for a slow machine.
const NEXT: Duration = Duration::from_secs(5);

type Action = fn(&mut RedisServer);

pub(super) fn scenario() {
    let actions: [(&str, Action); 4] = [
        ("frozen and thawed", |server| {
            server.freeze();
            pause(A_WHILE);
            server.thaw();
        }),
        ("restarted empty", RedisServer::restart),
        ("killed", RedisServer::kill),
        ("back again", RedisServer::restart),
    ];
    let mut fixture = Fixture::of(MEMBERS);
    let mut hosts: Vec<Host> = (0..HOSTS).map(|_| fixture.host()).collect();
    let mut waits = 0;
    // One member after the other, but the member that was killed comes back.
    for ((name, action), member) in actions.into_iter().zip([0, 1, 2, 2]) {
        let begun = SystemClock.now();
        for host in &mut hosts {
            host.wait(WAITS_EACH);
        }
        fixture.await_grants(waits + FIRST);
        action(&mut fixture.servers[member]);
        let meanwhile = fixture.resource.grants() - waits;
        waits += HOSTS * WAITS_EACH;
        fixture.await_grants(waits);
        let gap = fixture.longest_gap(begun);
        note(&format!(
            "a member {name}: {meanwhile} of {} grants until then, longest gap {gap:?}",
            HOSTS * WAITS_EACH
        ));
        assert!(gap < NEXT, "{name}: {gap:?}");
    }
    fixture.await_nothing_left();
    for host in hosts {
        host.finish();
    }
    fixture.assert_well();
}
