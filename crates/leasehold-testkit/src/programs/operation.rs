use std::time::Duration;

use serde::{Deserialize, Serialize};

/// What several clients do with a few locks, and what fails meanwhile.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Program {
    pub(crate) clients: Vec<ClientProgram>,
    pub(crate) faults: Vec<FaultStep>,
}

/// The concurrent tasks of one client, which is a process of its own.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ClientProgram {
    pub(crate) tasks: Vec<Vec<Operation>>,
}

/// Milliseconds.
pub(crate) type Millis = u16;

pub(crate) fn millis(span: Millis) -> Duration {
    Duration::from_millis(span.into())
}

/// One of the few locks: an index of [`LOCKS`].
pub(crate) type LockIndex = u8;

/// The locks of a program. The others meet requests of one mode only, so that they are not refused.
pub(crate) const LOCKS: [&str; 5] = ["a", "b", "permits", "leader", "request"];

pub(crate) const PERMITS: LockIndex = 2;
pub(crate) const LEADER: LockIndex = 3;
pub(crate) const REQUEST: LockIndex = 4;

/// How many permits the lock [`PERMITS`] has.
pub(crate) const PERMIT_COUNT: u32 = 2;

/// One call of the library. What is done with a guard is done with the latest one of the task; without a guard it does nothing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Operation {
    Acquire(Acquire),
    /// Takes the first two locks together.
    AcquireAll {
        manner: Manner,
        cancel_after: Option<Millis>,
    },
    /// Works under all guards of the task, and looks again and again whether they are valid.
    Work(Millis),
    /// Waits for the next whole half second, so that calls of several tasks begin at one moment.
    Meet,
    Renew,
    Downgrade,
    Reenter,
    Release,
    /// Drops the guard.
    Drop,
    /// Releases the lock, and drops the future of that after the first poll.
    CancelRelease,
    /// Turns the guard into a handle, which any client may take.
    Detach,
    Adopt,
    RenewHandle,
    ReleaseHandle,
    Break {
        lock: LockIndex,
        at_once: bool,
    },
    /// Runs the request, whose body takes this long.
    Once {
        work: Millis,
        cancel_after: Option<Millis>,
    },
    /// Campaigns, publishes another value, works as the leader, and resigns.
    Lead {
        wait: Millis,
        work: Millis,
    },
    Observe,
    /// Forks the process. The child uses its copies of the client and the guards, which must be refused, and drops them.
    Fork,
    /// Ends the client, and goes on with a new one.
    Restart {
        close: bool,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Acquire {
    pub(crate) lock: LockIndex,
    pub(crate) shared: bool,
    pub(crate) manner: Manner,
    pub(crate) ttl: Ttl,
    pub(crate) cancel_after: Option<Millis>,
}

/// How a client asks for a lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Manner {
    Try,
    Wait(Millis),
    Barge(Millis),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Ttl {
    Short,
    Long,
}

impl FaultStep {
    pub(crate) fn span(&self, shortest_ttl: Duration) -> Duration {
        shortest_ttl.mul_f64(f64::from(self.lasts) / 1_000.0)
    }
}

impl Ttl {
    pub(crate) fn of(self, shortest: Duration) -> Duration {
        match self {
            Self::Short => shortest,
            Self::Long => shortest * 3,
        }
    }
}

/// A fault, when it begins, and how long it lasts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct FaultStep {
    pub(crate) at: Millis,
    /// In thousandths of the shortest TTL, so that it outlasts some leases on each store.
    pub(crate) lasts: u16,
    pub(crate) fault: Fault,
}

/// Clients and servers are counted modulo those that there are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Fault {
    /// The path between a client and one server, or all.
    Path {
        client: u8,
        server: Option<u8>,
        kind: PathFault,
    },
    /// SIGSTOP.
    StopClient(u8),
    /// SIGKILL.
    KillClient(u8),
    /// One of those that the store's servers can suffer.
    Server(u8),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum PathFault {
    /// All connections are reset.
    Cut,
    /// What the client has sent arrives after its connections are closed.
    LateRequests,
    /// Each answer is delayed by this span at first, and is lost in the second half.
    SlowAnswers(Millis),
    /// Each request is delayed by this span.
    SlowRequests(Millis),
    /// No answer arrives until the fault ends.
    Mute,
    Frozen,
    /// Everything is lost.
    HalfOpen,
    Refusing,
}
