//! Invented histories, for the tests of the checks. Instants are in milliseconds.

use leasehold::Mode;

use super::Violation;
use super::facts::Facts;
use crate::faults::Faults;
use crate::history::{Asked, Event, Execution, Kind, Lease, Manner, Wait, What};
use crate::plan::{LockUse, Plan};
use crate::rng::SimRng;
use crate::time::MILLIS;

/// Returns how many violations a check finds in a run with three servers.
pub(super) fn judge(check: fn(&Facts<'_>) -> Vec<Violation>, mut events: Vec<Event>) -> usize {
    events.sort_by_key(|event| event.at);
    check(&Facts::new(&events, &plan())).len()
}

pub(super) fn plan() -> Plan {
    let drawn = Plan::draw(&SimRng::new(0, 0), Faults::NONE);
    Plan {
        servers: 3,
        locks: vec![LockUse::Exclusive],
        delay: (100, 200),
        spikes: 0,
        pollers: 0,
        lazy_scripts: false,
        ..drawn
    }
}

pub(super) fn event(millis: u64, what: What) -> Event {
    let at = millis * MILLIS;
    Event { at, what }
}

/// A wait in the queue, by the client with the same number.
pub(super) fn asked(millis: u64, wait: Wait, client: usize) -> Event {
    event(
        millis,
        What::Asked(Asked {
            wait,
            client,
            lock: 0,
            mode: Mode::Exclusive,
            ttl: 5_000 * MILLIS,
            delay: 0,
            manner: Manner::Queued,
        }),
    )
}

pub(super) fn granted(millis: u64, wait: Wait, until: u64) -> Event {
    let (fence, until) = (wait as u64 + 1, until * MILLIS);
    event(millis, What::Granted { wait, fence, until })
}

pub(super) fn grant(wait: Wait, client: usize, millis: u64, until: u64) -> Vec<Event> {
    vec![asked(millis, wait, client), granted(millis, wait, until)]
}

pub(super) fn in_mode(mode: Mode, mut events: Vec<Event>) -> Vec<Event> {
    for event in &mut events {
        if let What::Asked(asked) = &mut event.what {
            asked.mode = mode;
        }
    }
    events
}

pub(super) fn fenced(number: u64, mut events: Vec<Event>) -> Vec<Event> {
    for event in &mut events {
        if let What::Granted { fence, .. } = &mut event.what {
            *fence = number;
        }
    }
    events
}

/// A request that a server ran. Each lease is given as a wait and the end of its exclusive lease.
pub(super) fn ran(
    millis: u64,
    server: usize,
    kind: Kind,
    wait: Wait,
    before: &[(Wait, u64)],
    after: &[(Wait, u64)],
) -> Event {
    let leases = |all: &[(Wait, u64)]| {
        let lease = |(wait, until): &(Wait, u64)| Lease {
            wait: *wait,
            mode: Mode::Exclusive,
            slot: None,
            until: until * MILLIS,
        };
        all.iter().map(lease).collect()
    };
    event(
        millis,
        What::Executed(Execution {
            server,
            client: 0,
            kind,
            lock: 0,
            wait,
            sent: millis * MILLIS,
            stray: false,
            grants_own: false,
            before: leases(before),
            after: leases(after),
        }),
    )
}

pub(super) fn queue(millis: u64, server: usize, waits: &[Wait]) -> Event {
    let waits = waits.to_vec();
    event(
        millis,
        What::Queue {
            server,
            lock: 0,
            waits,
        },
    )
}
