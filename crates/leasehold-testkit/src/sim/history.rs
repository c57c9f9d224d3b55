use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use leasehold::{ErrorKind, Mode, Owner};

use super::execution::{Execution, Stand};
use super::timeline::Timeline;
use crate::virtual_time::lock;

/// Something that happened, and when on the world's timeline.
#[derive(Clone, Debug, Hash)]
pub(crate) struct Event {
    pub(crate) at: Duration,
    pub(crate) what: What,
}

/// What a client's caller calls one `acquire` by, and the guard that comes of it.
pub(crate) type Hold = usize;

/// What happened. Clients, servers and keys are named by their numbers; `until` is an instant of
/// the timeline.
#[derive(Clone, Debug, Hash)]
pub(crate) enum What {
    /// A client begins, with a list of so many members.
    Joined {
        client: usize,
        members: usize,
    },
    Asked {
        hold: Hold,
        client: usize,
        key: usize,
        mode: Mode,
        /// Together with the delay.
        ttl: Duration,
        /// For so long it is to stay shut after an unclean end.
        delay: Duration,
        manner: Manner,
        /// The first hold of the set that it is one of.
        set: Option<Hold>,
    },
    Granted {
        hold: Hold,
        owner: Owner,
        fence: u64,
        until: Duration,
    },
    Denied {
        hold: Hold,
        named: Named,
    },
    /// The caller dropped its future.
    Cancelled {
        hold: Hold,
    },
    /// The guard's deadline is another one now.
    Moved {
        hold: Hold,
        until: Duration,
    },
    /// The guard was asked whether it is valid.
    Answered {
        hold: Hold,
        valid: bool,
    },
    /// The guard said by itself that it is lost.
    Lost {
        hold: Hold,
    },
    /// The caller gives the guard away, and will not ask it again.
    Ended {
        hold: Hold,
        how: Ending,
    },
    /// The caller has made the guard shared, or is about to: from now on it counts on no more.
    Downgraded {
        hold: Hold,
    },
    Released {
        hold: Hold,
        outcome: Freed,
    },
    /// The record that checks fences was written to, or refused it.
    Wrote {
        hold: Hold,
        key: usize,
        fence: u64,
        accepted: bool,
    },
    /// The record was read by one who may not be alone, or refused it as it was written to by
    /// somebody later.
    Read {
        hold: Hold,
        key: usize,
        fence: u64,
        accepted: bool,
    },

    /// A client stands still; its clocks too, if `frozen`.
    Paused {
        client: usize,
        frozen: bool,
    },
    Woke {
        client: usize,
    },
    /// A client ended: its connections too if it was killed, and not if its power failed.
    Crashed {
        client: usize,
        killed: bool,
    },

    /// A client sent an attempt for the first time.
    Sent {
        client: usize,
        key: usize,
        /// No two programs of a client ask for the same one.
        ttl: Duration,
        owner: Owner,
        /// The wait that it is part of.
        waiter: Option<Owner>,
    },
    Executed(Execution),
    /// A server was asked how it is, or about its card.
    Looked {
        server: usize,
        client: usize,
    },
    /// What a server holds under a key, after something else than a request changed it.
    Holds {
        server: usize,
        key: usize,
        stands: Vec<Stand>,
    },
    /// Who is in the queue of a key, as soon as that has changed; the one that the lock is reserved
    /// for is first.
    Queue {
        server: usize,
        key: usize,
        waiters: Vec<Owner>,
    },
    /// A waiter had itself taken out of the queue.
    LeftQueue {
        server: usize,
        key: usize,
        waiter: Owner,
    },
    /// A lock was given back, and left free for a moment for whoever comes first.
    LeftFree {
        server: usize,
        key: usize,
    },
    /// A server told a waiter something, or found nobody to tell it to.
    Told {
        server: usize,
        key: usize,
        waiter: Owner,
        word: Told,
        heard: bool,
    },
    /// A server forgot some or all that it held.
    Forgot {
        server: usize,
    },
    /// A server began a new run, or was told FLUSHALL.
    Restarted {
        server: usize,
    },
    Stepped {
        server: usize,
        micros: i64,
    },
    /// Of interest to readers alone.
    Note(String),

    /// A program did not end, or ended in a panic.
    Stuck {
        client: usize,
    },
    /// Everything is set right, and nothing goes wrong any more.
    Cleared,
    /// Nothing has gone wrong for so long that nothing is in the way of any lock, nor will be before
    /// [`Quiet`](What::Quiet).
    Calm,
    /// Nobody asks for locks any more, and nothing is broken.
    Quiet,
    /// The time is over by which nothing may be held; what is held all the same follows.
    Settled,
    Left {
        server: usize,
        key: usize,
        owner: Option<Owner>,
    },
    /// Nobody has asked for so long that queues are forgotten.
    Rested,
    /// Somebody is queued all the same, in the end or when all had settled.
    Queued {
        server: usize,
        key: usize,
        waiter: Owner,
    },
    /// Nothing was in the way of this grant: it must have come within the span that was allowed.
    Probed {
        key: usize,
        granted: bool,
        took: Duration,
        allowed: Duration,
    },
}

/// How a lock is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Manner {
    /// Once, without waiting.
    Once,
    /// In turn, for some time at most.
    Limited,
    /// In turn, for as long as it takes.
    Patient,
    /// Waiting, and ahead of the queue.
    Barging,
}

/// What a server says of itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Told {
    YourTurn,
    Soon(Duration),
}

/// How an `acquire` that gave no guard was reported.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Named {
    Busy,
    NoEffect(ErrorKind),
    Unknown(ErrorKind),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Ending {
    Released,
    Dropped,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Freed {
    Released,
    WasLost,
    Unknown,
}

/// What happened in a world, in the order in which it happened.
#[derive(Clone, Debug)]
pub(crate) struct History {
    timeline: Timeline,
    events: Arc<Mutex<Vec<Event>>>,
}

impl History {
    pub(crate) fn new(timeline: Timeline) -> Self {
        Self {
            timeline,
            events: Arc::default(),
        }
    }

    pub(crate) fn add(&self, what: What) {
        let at = self.timeline.now();
        lock(&self.events).push(Event { at, what });
    }

    pub(crate) fn note(&self, text: impl Into<String>) {
        self.add(What::Note(text.into()));
    }

    pub(crate) fn take(&self) -> Vec<Event> {
        std::mem::take(&mut lock(&self.events))
    }
}

/// The same for the same history, in every process.
pub(crate) fn fingerprint(events: &[Event]) -> u64 {
    let mut hasher = DefaultHasher::new();
    events.hash(&mut hasher);
    hasher.finish()
}
