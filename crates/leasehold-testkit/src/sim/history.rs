use std::fmt;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use leasehold::{ErrorKind, Owner};

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
        ttl: Duration,
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

    /// A client stands still; its clocks too, if `frozen`.
    Paused {
        client: usize,
        frozen: bool,
    },
    Woke {
        client: usize,
    },
    Crashed {
        client: usize,
    },

    /// A client sent an attempt for the first time.
    Sent {
        client: usize,
        key: usize,
        owner: Owner,
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
        stand: Option<Stand>,
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
    /// Nobody asks for locks any more, and nothing is broken.
    Quiet,
    /// The time is over by which nothing may be held; what is held all the same follows.
    Settled,
    Left {
        server: usize,
        key: usize,
        owner: Option<Owner>,
    },
    /// Nothing was in the way of this grant: it must have come within the span that was allowed.
    Probed {
        key: usize,
        granted: bool,
        took: Duration,
        allowed: Duration,
    },
}

/// A request as a server carried it out, one per key that it names.
#[derive(Clone, Debug, Hash)]
pub(crate) struct Execution {
    pub(crate) server: usize,
    pub(crate) client: usize,
    pub(crate) kind: Kind,
    pub(crate) key: usize,
    pub(crate) owner: Owner,
    /// It was carried out before, or belongs to a connection that was given up.
    pub(crate) stray: bool,
    pub(crate) before: Option<Stand>,
    pub(crate) after: Option<Stand>,
}

/// A lease at a server, which ends there at `until` unless something happens.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Stand {
    pub(crate) owner: Owner,
    pub(crate) until: Duration,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Kind {
    Acquire,
    Renew,
    Release,
    Seal,
    Heal,
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

impl fmt::Display for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:>9.3}  {}", self.at.as_secs_f64(), self.what)
    }
}

impl fmt::Display for What {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Joined { client, members } => {
                write!(f, "client {client} begins, with {members} members")
            }
            Self::Asked {
                hold,
                client,
                key,
                ttl,
            } => {
                write!(
                    f,
                    "h{hold}  client {client} asks for key {key}, ttl {ttl:?}"
                )
            }
            Self::Granted {
                hold,
                owner,
                fence,
                until,
            } => write!(
                f,
                "h{hold}  GRANTED to {} with fence {fence}, until {}",
                short(owner),
                secs(*until)
            ),
            Self::Denied { hold, named } => write!(f, "h{hold}  denied: {named:?}"),
            Self::Cancelled { hold } => write!(f, "h{hold}  cancelled"),
            Self::Moved { hold, until } => write!(f, "h{hold}  deadline now {}", secs(*until)),
            Self::Answered { hold, valid: true } => write!(f, "h{hold}  says valid"),
            Self::Answered { hold, valid: false } => write!(f, "h{hold}  says lost"),
            Self::Lost { hold } => write!(f, "h{hold}  LOST"),
            Self::Ended { hold, how } => write!(f, "h{hold}  ends: {how:?}"),
            Self::Released { hold, outcome } => write!(f, "h{hold}  release: {outcome:?}"),
            Self::Wrote {
                hold,
                key,
                fence,
                accepted,
            } => {
                let word = if *accepted { "accepts" } else { "REFUSES" };
                write!(f, "h{hold}  record {key} {word} fence {fence}")
            }
            Self::Paused { client, frozen } => {
                let clocks = if *frozen { " with its clocks" } else { "" };
                write!(f, "client {client} stands still{clocks}")
            }
            Self::Woke { client } => write!(f, "client {client} goes on"),
            Self::Crashed { client } => write!(f, "client {client} CRASHES"),
            Self::Sent { client, key, owner } => {
                write!(f, "client {client} key {key}: attempt {}", short(owner))
            }
            Self::Executed(execution) => execution.fmt(f),
            Self::Looked { server, client } => {
                write!(f, "        server {server} is looked at by client {client}")
            }
            Self::Holds { server, key, stand } => {
                write!(
                    f,
                    "        server {server} key {key} holds {}",
                    stood(stand)
                )
            }
            Self::Forgot { server } => write!(f, "server {server} FORGETS"),
            Self::Restarted { server } => write!(f, "server {server} RESTARTS"),
            Self::Stepped { server, micros } => {
                write!(f, "server {server} clock STEPS by {} ms", micros / 1_000)
            }
            Self::Note(text) => f.write_str(text),
            Self::Stuck { client } => write!(f, "client {client} DOES NOT END"),
            Self::Quiet => f.write_str("-- quiet --"),
            Self::Settled => f.write_str("-- settled --"),
            Self::Left { server, key, owner } => {
                let owner = owner.as_ref().map_or("somebody".into(), short);
                write!(f, "server {server} key {key} is still held by {owner}")
            }
            Self::Probed {
                key,
                granted,
                took,
                allowed,
            } => write!(
                f,
                "probe of key {key}: granted {granted} after {took:?}, allowed {allowed:?}"
            ),
        }
    }
}

impl fmt::Display for Execution {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let stray = if self.stray { " (stray)" } else { "" };
        write!(
            f,
            "        server {} key {}: {:?} of client {} for {}{stray}: {} -> {}",
            self.server,
            self.key,
            self.kind,
            self.client,
            short(&self.owner),
            stood(&self.before),
            stood(&self.after)
        )
    }
}

fn secs(at: Duration) -> String {
    format!("{:.3}", at.as_secs_f64())
}

/// Enough of an owner to tell it from all others of a history.
fn short(owner: &Owner) -> String {
    let text = owner.to_string();
    let nonce = text.split('.').nth(1).unwrap_or(&text);
    nonce.chars().take(6).collect()
}

fn stood(stand: &Option<Stand>) -> String {
    match stand {
        None => "free".into(),
        Some(stand) => format!("{} until {}", short(&stand.owner), secs(stand.until)),
    }
}
