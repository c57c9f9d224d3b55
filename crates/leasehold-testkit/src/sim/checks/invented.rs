//! Histories that never happened, for the checkers' own tests. Owner `n` is that of hold `n`.

use std::time::Duration;

use leasehold::{ClientId, Owner};

use crate::sim::history::{Ending, Event, Execution, Hold, Kind, Manner, Stand, What};
use crate::virtual_time::SeededEntropy;

const TTL: Duration = Duration::from_secs(5);

pub(super) fn event(millis: u64, what: What) -> Event {
    let at = Duration::from_millis(millis);
    Event { at, what }
}

fn owner(hold: Hold) -> Owner {
    let entropy = SeededEntropy::new(hold as u64);
    Owner::random(ClientId::random(&entropy), &entropy)
}

fn stand((hold, until): (Hold, u64)) -> Stand {
    Stand {
        owner: owner(hold),
        until: Duration::from_millis(until),
    }
}

pub(super) fn joined(client: usize, members: usize) -> Event {
    event(0, What::Joined { client, members })
}

pub(super) fn asked(millis: u64, hold: Hold, client: usize, key: usize) -> Event {
    asked_with(millis, hold, client, key, Manner::Once)
}

pub(super) fn asked_with(
    millis: u64,
    hold: Hold,
    client: usize,
    key: usize,
    manner: Manner,
) -> Event {
    event(
        millis,
        What::Asked {
            hold,
            client,
            key,
            ttl: TTL,
            manner,
        },
    )
}

pub(super) fn sent(millis: u64, client: usize, hold: Hold) -> Event {
    event(
        millis,
        What::Sent {
            client,
            key: 0,
            ttl: TTL,
            owner: owner(hold),
            waiter: Some(owner(hold)),
        },
    )
}

pub(super) fn grant(hold: Hold, client: usize, key: usize, millis: u64, until: u64) -> Vec<Event> {
    grant_with_fence(hold, client, key, millis, until, hold as u64)
}

pub(super) fn grant_with_fence(
    hold: Hold,
    client: usize,
    key: usize,
    millis: u64,
    until: u64,
    fence: u64,
) -> Vec<Event> {
    let (owner, until) = (owner(hold), Duration::from_millis(until));
    let granted = What::Granted {
        hold,
        owner,
        fence,
        until,
    };
    vec![asked(millis, hold, client, key), event(millis, granted)]
}

pub(super) fn moved(millis: u64, hold: Hold, until: u64) -> Event {
    let until = Duration::from_millis(until);
    event(millis, What::Moved { hold, until })
}

pub(super) fn lost(millis: u64, hold: Hold) -> Event {
    event(millis, What::Lost { hold })
}

pub(super) fn ended(millis: u64, hold: Hold) -> Event {
    let how = Ending::Dropped;
    event(millis, What::Ended { hold, how })
}

pub(super) fn paused(millis: u64, client: usize, frozen: bool) -> Event {
    event(millis, What::Paused { client, frozen })
}

pub(super) fn holds(millis: u64, server: usize, key: usize, hold: Hold, until: u64) -> Event {
    let stand = Some(stand((hold, until)));
    event(millis, What::Holds { server, key, stand })
}

/// A request for key 0 by the client of `by`.
pub(super) fn executed(
    millis: u64,
    server: usize,
    kind: Kind,
    by: Hold,
    before: Option<(Hold, u64)>,
    after: Option<(Hold, u64)>,
) -> Event {
    let execution = Execution {
        server,
        client: 0,
        kind,
        key: 0,
        owner: owner(by),
        waiter: None,
        stray: false,
        before: before.map(stand),
        after: after.map(stand),
    };
    event(millis, What::Executed(execution))
}
