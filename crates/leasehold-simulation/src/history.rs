use std::fmt;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::rc::Rc;

use leasehold::{ErrorKind, Mode};

use crate::time::{SECOND, Time};

/// Identifies one `acquire`, from the call to its outcome, and the guard that results from it.
pub(crate) type Wait = usize;

/// An event of a run.
#[derive(Clone, Debug, Hash)]
pub(crate) struct Event {
    pub(crate) at: Time,
    pub(crate) what: What,
}

/// The kind of an event. Clients, servers and locks are identified by their numbers.
#[derive(Clone, Debug, Hash)]
pub(crate) enum What {
    /// A client starts. It knows that many members.
    Joined {
        client: usize,
        members: usize,
    },
    Asked(Asked),
    /// The wait ended with a guard that is valid before `until`.
    Granted {
        wait: Wait,
        fence: u64,
        until: Time,
    },
    /// The wait ended without a guard.
    Denied {
        wait: Wait,
        reason: Denial,
    },
    /// The caller cancelled its wait.
    Cancelled {
        wait: Wait,
    },
    /// A renewal moved the guard's deadline.
    Extended {
        wait: Wait,
        until: Time,
    },
    /// The guard is lost.
    Lost {
        wait: Wait,
    },
    /// The caller makes the guard shared, and relies only on that from now on.
    Downgraded {
        wait: Wait,
    },
    /// The caller releases the guard.
    Ended {
        wait: Wait,
    },
    /// The lease of a guard that was released stays until it expires.
    Detached {
        wait: Wait,
    },
    /// The store answered the release.
    Released {
        wait: Wait,
        outcome: Freed,
    },

    /// A client stops; its clocks stop as well if `frozen`.
    Paused {
        client: usize,
        frozen: bool,
    },
    Woke {
        client: usize,
    },
    /// A client ended, and its connections with it (`killed`) or not (power loss).
    Crashed {
        client: usize,
        killed: bool,
    },

    /// A server ran a request.
    Executed(Execution),
    /// What a server holds of a lock, after a change that no request caused.
    Holds {
        server: usize,
        lock: usize,
        leases: Rc<[Lease]>,
    },
    /// The queue of a lock at a server changed. The list includes dead entries.
    Queue {
        server: usize,
        lock: usize,
        waits: Vec<Wait>,
    },
    /// A majority answered a request about the record of a lock.
    Record {
        client: usize,
        lock: usize,
        what: RecordEvent,
    },
    /// A client asked a server for its status.
    Looked {
        server: usize,
        client: usize,
    },
    /// A notification reached the waiter's client.
    Notified {
        server: usize,
        wait: Wait,
    },
    /// A server stops answering, or answers again.
    Available {
        server: usize,
        is_up: bool,
    },
    /// A server lost its data.
    Forgot {
        server: usize,
    },
    /// A server restarted.
    Restarted {
        server: usize,
    },
    /// A server's clock was stepped.
    Stepped {
        server: usize,
        micros: i64,
    },
    /// Only for readers of the trace.
    Note(String),

    /// The last fault ended.
    Cleared,
    /// All servers have a vote again, and no fault disturbs any lock until [`Quiet`](What::Quiet).
    Calm,
    /// From now on no program asks for a lock.
    Quiet,
    /// A wait or a release that did not end.
    Stuck {
        wait: Wait,
    },
    /// By now all leases must have ended.
    Settled,
    /// By now all queues must have ended.
    Rested,
}

/// A call of `acquire`.
#[derive(Clone, Copy, Debug, Hash)]
pub(crate) struct Asked {
    pub(crate) wait: Wait,
    pub(crate) client: usize,
    pub(crate) lock: usize,
    pub(crate) mode: Mode,
    pub(crate) ttl: Time,
    /// The part of `ttl` for which the lock stays closed after an unclean end.
    pub(crate) delay: Time,
    pub(crate) manner: Manner,
}

/// How a client asks for a lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Manner {
    /// Once, without waiting.
    Try,
    /// In the queue.
    Queued,
    /// Waiting, ahead of the queue.
    Barging,
    /// By polling, with the commands of another library.
    Foreign,
}

/// Why a wait ended without a guard.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Denial {
    Busy,
    /// An error, and whether it rules out an effect.
    Failed {
        kind: ErrorKind,
        without_effect: bool,
    },
}

/// The store's answer to a release.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Freed {
    Released,
    WasLost,
    Unknown,
}

/// What a client learned about a record. A version is a fence and a step.
#[derive(Clone, Copy, Debug, Hash)]
pub(crate) enum RecordEvent {
    Opened {
        fence: u64,
        found: Option<(u64, u32)>,
    },
    Written {
        version: (u64, u32),
    },
    Read {
        began: Time,
        found: Option<(u64, u32)>,
        settled: bool,
    },
}

/// A request as a server ran it, with one entry for each lease or wait that it names.
#[derive(Clone, Debug, Hash)]
pub(crate) struct Execution {
    pub(crate) server: usize,
    pub(crate) client: usize,
    pub(crate) kind: Kind,
    pub(crate) lock: usize,
    pub(crate) wait: Wait,
    /// When the client sent it.
    pub(crate) sent: Time,
    /// The client had given up the connection before.
    pub(crate) stray: bool,
    /// A release names a later round of the same wait as its successor, so it may grant the lock to it.
    pub(crate) grants_own: bool,
    pub(crate) before: Rc<[Lease]>,
    pub(crate) after: Rc<[Lease]>,
}

impl Execution {
    pub(crate) fn own_before(&self) -> Option<&Lease> {
        self.before.iter().find(|lease| lease.wait == self.wait)
    }

    pub(crate) fn own_after(&self) -> Option<&Lease> {
        self.after.iter().find(|lease| lease.wait == self.wait)
    }
}

/// A lease at a server, which ends at `until` unless something happens before.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Lease {
    pub(crate) wait: Wait,
    pub(crate) mode: Mode,
    pub(crate) slot: Option<u32>,
    pub(crate) until: Time,
}

/// The kind of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Kind {
    /// A request with a position in the queue.
    Acquire,
    /// A request without a position in the queue.
    Try,
    DrawFence,
    Renew,
    Release,
    /// A release that returns the waiter to the queue.
    Requeue,
    /// The end of a wait that holds nothing.
    Dequeue,
    ConfirmFence,
    Repair,
    Heartbeat,
}

impl fmt::Display for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:>10.6}  ", self.at as f64 / SECOND as f64)?;
        match &self.what {
            What::Executed(it) => {
                let leases = |all: &[Lease]| {
                    let all = all.iter().map(|lease| {
                        let until = lease.until as f64 / SECOND as f64;
                        let slot = lease.slot.map(|slot| format!("#{slot}"));
                        format!(
                            "w{}{} until {until:.3}",
                            lease.wait,
                            slot.unwrap_or_default()
                        )
                    });
                    all.collect::<Vec<_>>().join(", ")
                };
                let Execution {
                    server,
                    client,
                    kind,
                    lock,
                    wait,
                    ..
                } = it;
                let stray = if it.stray { "stray " } else { "" };
                write!(
                    f,
                    "s{server} ran {stray}{kind:?} of c{client} for w{wait} lock {lock}"
                )?;
                write!(f, ": [{}]", leases(&it.before))?;
                if it.before != it.after {
                    write!(f, " -> [{}]", leases(&it.after))?;
                }
                Ok(())
            }
            What::Note(text) => f.write_str(text),
            other => write!(f, "{other:?}"),
        }
    }
}

/// Returns a number that is the same for equal histories.
pub(crate) fn fingerprint(events: &[Event]) -> u64 {
    let mut hasher = DefaultHasher::new();
    events.hash(&mut hasher);
    hasher.finish()
}
