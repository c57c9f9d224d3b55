//! Histories that never happened, for the checkers' own tests. Owner `n` is that of hold `n`.

use std::time::Duration;

use leasehold::{ClientId, Mode, Owner};

use crate::sim::execution::{Execution, Kind, Stand};
use crate::sim::history::{Ending, Event, Hold, Manner, Told, What};
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
        mode: Mode::Exclusive,
        until: Duration::from_millis(until),
    }
}

/// Leases of readers, by hold and end.
pub(super) fn shared(leases: &[(Hold, u64)]) -> Vec<Stand> {
    let mut stands: Vec<Stand> = leases.iter().copied().map(stand).collect();
    stands.iter_mut().for_each(|it| it.mode = Mode::Shared);
    stands
}

/// The same events, in which locks are asked for in this mode.
pub(super) fn in_mode(wanted: Mode, mut events: Vec<Event>) -> Vec<Event> {
    for event in &mut events {
        if let What::Asked { mode, .. } = &mut event.what {
            *mode = wanted;
        }
    }
    events
}

/// The same events, in which each lock is to stay shut for a second after an unclean end.
pub(super) fn with_delay(mut events: Vec<Event>) -> Vec<Event> {
    for event in &mut events {
        if let What::Asked { delay, .. } = &mut event.what {
            *delay = Duration::from_secs(1);
        }
    }
    events
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
            mode: Mode::Exclusive,
            ttl: TTL,
            delay: Duration::ZERO,
            manner,
            set: None,
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

/// The same events, in which each lock is asked for as one of a set.
pub(super) fn of_a_set(mut events: Vec<Event>) -> Vec<Event> {
    for event in &mut events {
        if let What::Asked { set, hold, .. } = &mut event.what {
            *set = Some(*hold);
        }
    }
    events
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

pub(super) fn crashed(millis: u64, client: usize, killed: bool) -> Event {
    event(millis, What::Crashed { client, killed })
}

pub(super) fn holds(millis: u64, server: usize, key: usize, hold: Hold, until: u64) -> Event {
    let stands = vec![stand((hold, until))];
    let holds = What::Holds {
        server,
        key,
        stands,
    };
    event(millis, holds)
}

/// Who waits for key 0 at a server.
pub(super) fn queue(millis: u64, server: usize, waiters: &[Hold]) -> Event {
    let waiters = waiters.iter().map(|hold| owner(*hold)).collect();
    let queue = What::Queue {
        server,
        key: 0,
        waiters,
    };
    event(millis, queue)
}

/// The same at each of three servers.
pub(super) fn queues(millis: u64, waiters: &[Hold]) -> Vec<Event> {
    (0..3)
        .map(|server| queue(millis, server, waiters))
        .collect()
}

pub(super) fn queued(millis: u64, hold: Hold) -> Event {
    let waiter = owner(hold);
    event(
        millis,
        What::Queued {
            server: 0,
            key: 0,
            waiter,
        },
    )
}

/// A client of three members asks for key 0, and sends its first attempt at once.
pub(super) fn waits(millis: u64, hold: Hold, client: usize, manner: Manner) -> Vec<Event> {
    vec![
        joined(client, 3),
        asked_with(millis, hold, client, 0, manner),
        sent(millis, client, hold),
    ]
}

/// What `hold` asked for before is granted.
pub(super) fn granted(millis: u64, hold: Hold, until: u64) -> Event {
    event(
        millis,
        What::Granted {
            hold,
            owner: owner(hold),
            fence: hold as u64,
            until: Duration::from_millis(until),
        },
    )
}

/// The lease of `left` goes over to `hold`.
pub(super) fn inherits(millis: u64, hold: Hold, left: Hold) -> Event {
    let mut event = granted(millis, hold, 9_000);
    if let What::Granted { owner: of, .. } = &mut event.what {
        *of = owner(left);
    }
    event
}

/// A waiter is told that it may be its turn.
pub(super) fn told(millis: u64, hold: Hold) -> Event {
    event(
        millis,
        What::Told {
            server: 0,
            key: 0,
            waiter: owner(hold),
            word: Told::YourTurn,
            heard: true,
        },
    )
}

/// A waiter's attempt, which is refused.
pub(super) fn asks_in_turn(millis: u64, server: usize, by: Hold) -> Event {
    let mut event = executed(millis, server, Kind::Acquire, by, None, None);
    if let What::Executed(execution) = &mut event.what {
        execution.waiter = Some(owner(by));
    }
    event
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
        before: before.map(stand).into_iter().collect(),
        after: after.map(stand).into_iter().collect(),
    };
    event(millis, What::Executed(execution))
}
