use std::collections::BTreeMap;
use std::fmt;

use leasehold::clock::{BootInstant, Clock as _, SystemClock};
use serde::{Deserialize, Serialize};

use super::operation::{LOCKS, LockIndex, Manner};

/// Identifies a call that asked for a lock, and the guard that came of it. Counts up within a client.
pub(crate) type HoldNumber = u32;

/// Something that a client did or saw.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Event {
    /// On the clock that all processes of the machine read, in nanoseconds.
    pub(crate) at: u64,
    pub(crate) client: usize,
    pub(crate) what: What,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum What {
    Asked {
        hold: HoldNumber,
        lock: LockIndex,
        mode: HeldMode,
        manner: Manner,
        /// Whether the request is in the queue of this lock from now on, and not only once it has another lock.
        is_queued: bool,
    },
    Granted {
        hold: HoldNumber,
        fence: u64,
    },
    /// A process adopts a handle: the hold goes on.
    Adopted {
        hold: HoldNumber,
        lock: LockIndex,
        mode: HeldMode,
        fence: u64,
    },
    Refused {
        hold: HoldNumber,
        is_unexpected: bool,
        text: String,
    },
    Cancelled {
        hold: HoldNumber,
    },
    /// The guard said that it is valid until then, after the client read the time of this event.
    Valid {
        hold: HoldNumber,
        until: Option<u64>,
    },
    Lost {
        hold: HoldNumber,
        reason: String,
    },
    /// The client relies on the shared mode only from here on.
    Downgrading {
        hold: HoldNumber,
    },
    /// The client begins to end the hold.
    Ending {
        hold: HoldNumber,
        how: String,
    },
    /// The answer to a release, and whether the store freed the lock.
    Released {
        hold: HoldNumber,
        is_freed: bool,
        text: String,
    },
    Breaking {
        lock: LockIndex,
        fence: u64,
        at_once: bool,
    },
    Broke {
        lock: LockIndex,
        outcome: String,
    },
    /// The result of the request, and whether this call ran its body.
    Result {
        bytes: String,
        ran: bool,
    },
    /// Before a look at the leader.
    Looking {
        look: HoldNumber,
    },
    Leader {
        look: HoldNumber,
        fence: Option<u64>,
    },
    /// A call failed.
    Failed {
        call: String,
        is_unexpected: bool,
        text: String,
    },
    /// A fault of the program begins or ends. No client sees it.
    Fault {
        what: String,
    },
    Forked,
    Restarted,
    Finished,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum HeldMode {
    Exclusive,
    Shared,
    Permit,
}

impl Event {
    pub(crate) fn now(client: usize, what: What) -> Self {
        Self::at(SystemClock.now(), client, what)
    }

    pub(crate) fn at(at: BootInstant, client: usize, what: What) -> Self {
        let at = nanos(at);
        Self { at, client, what }
    }
}

pub(crate) fn nanos(at: BootInstant) -> u64 {
    let nanos = at.since(BootInstant::from_nanos(0)).as_nanos();
    u64::try_from(nanos).expect("a time since the boot")
}

/// Returns the history as people read it, with times since its first event. Of the looks at a guard it shows the last.
pub(crate) fn as_text(events: &[Event]) -> String {
    let begin = events.first().map_or(0, |event| event.at);
    let looked: BTreeMap<_, _> = events.iter().filter_map(look).collect();
    let is_shown =
        |event: &&Event| look(event).is_none_or(|(guard, at)| looked.get(&guard) == Some(&at));
    let line = |event: &Event| {
        let at = (event.at - begin) as f64 / 1e9;
        format!("{at:9.4}  {}\n", Line(event))
    };
    events.iter().filter(is_shown).map(line).collect()
}

/// The guard that a client looked at, and when.
fn look(event: &Event) -> Option<((usize, HoldNumber), u64)> {
    match event.what {
        What::Valid { hold, .. } => Some(((event.client, hold), event.at)),
        _ => None,
    }
}

struct Line<'a>(&'a Event);

impl fmt::Display for Line<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let client = self.0.client;
        let name = |lock: &LockIndex| LOCKS[usize::from(*lock)];
        if let What::Fault { what } = &self.0.what {
            return write!(f, "-- {what}");
        }
        write!(f, "c{client} ")?;
        match &self.0.what {
            What::Asked {
                hold,
                lock,
                mode,
                manner,
                ..
            } => write!(f, "h{hold} asks for {} {mode:?} {manner:?}", name(lock)),
            What::Granted { hold, fence } => write!(f, "h{hold} granted, fence {fence}"),
            What::Adopted {
                hold, lock, fence, ..
            } => write!(f, "h{hold} adopts {} with fence {fence}", name(lock)),
            What::Refused { hold, text, .. } => write!(f, "h{hold} refused: {text}"),
            What::Cancelled { hold } => write!(f, "h{hold} cancels its call"),
            What::Valid { hold, .. } => write!(f, "h{hold} is valid for the last time"),
            What::Lost { hold, reason } => write!(f, "h{hold} lost: {reason}"),
            What::Downgrading { hold } => write!(f, "h{hold} downgrades"),
            What::Ending { hold, how } => write!(f, "h{hold} {how}"),
            What::Released { hold, text, .. } => write!(f, "h{hold}: {text}"),
            What::Breaking {
                lock,
                fence,
                at_once,
            } => {
                let when = if *at_once { "at once" } else { "at its end" };
                write!(f, "breaks {} with fence {fence} {when}", name(lock))
            }
            What::Broke { lock, outcome } => write!(f, "broke {}: {outcome}", name(lock)),
            What::Result { bytes, ran } => {
                let how = if *ran { "ran" } else { "read" };
                write!(f, "{how} the request: {bytes}")
            }
            What::Looking { .. } => f.write_str("looks for the leader"),
            What::Leader { fence, .. } => write!(f, "sees the leader {fence:?}"),
            What::Failed { call, text, .. } => write!(f, "{call} failed: {text}"),
            What::Forked => f.write_str("forks"),
            What::Restarted => f.write_str("has a new client"),
            What::Finished => f.write_str("has finished"),
            What::Fault { .. } => Ok(()),
        }
    }
}
