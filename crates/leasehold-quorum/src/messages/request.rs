use std::sync::Arc;
use std::time::Duration;

use leasehold_types::{
    DataGeneration, Fence, Key, LockRequest, MemberId, MemberRecordEdit, Owner, PermitSlot,
};

use super::record_action::RecordAction;

/// Identifies a request of one engine. A reply carries the same id.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RequestId(pub u64);

/// A request to one member. The codec turns it into one script call or a few plain commands.
///
/// The owner in a lock request names one round of a wait. It is also the identity of the waiter.
#[derive(Clone, Debug)]
pub enum Request {
    /// Takes an exclusive lock that is free, with plain commands.
    ///
    /// `SET lock owner NX GET PX ttl`, then `ZADD fence GT CH proposal`. The reply is
    /// [`Reply::Granted`](crate::Reply::Granted) if both took effect,
    /// [`Reply::GrantedBehind`](crate::Reply::GrantedBehind) if the counter was ahead, otherwise
    /// [`Reply::Busy`](crate::Reply::Busy) without a position.
    TryAcquire {
        /// The lease to take.
        lock_request: Arc<LockRequest>,
        /// The fence to draw, if the counter is below it: `owner.since()` + 1 in microseconds. A
        /// client that displays the holder derives the fence from the owner.
        proposal: u64,
        /// `PEXPIRE fence` follows. A client sends it for each lock from time to time.
        expire: bool,
    },
    /// Draws the fence of a lease that [`Request::TryAcquire`] took without one.
    DrawFence {
        /// The lease.
        lock_request: Arc<LockRequest>,
    },
    /// Takes the lock if it is the owner's turn. Otherwise the waiter enters the queue if it has a ticket.
    Acquire {
        /// The lease to take.
        lock_request: Arc<LockRequest>,
        /// The greatest fence that the client knows, usually its wall clock in microseconds.
        proposal: u64,
        /// The position of the owner in the queue.
        position: Position,
        /// The permit that the client prefers, if it wants a permit.
        preferred: Option<PermitSlot>,
    },
    /// Frees an exclusive lease if no client waits. Otherwise it changes nothing, and the reply is
    /// [`Reply::Contended`](crate::Reply::Contended).
    Free {
        /// The lease.
        lock_request: Arc<LockRequest>,
    },
    /// Frees the lease, ends the wait, or gives back a failed attempt.
    Release {
        /// The lease, or the wait.
        lock_request: Arc<LockRequest>,
        /// Returns the waiter to the queue, after a failed round.
        requeue: Option<Requeue>,
        /// The oldest waiter of the same client. If it is next, the server grants it the lock in the same step.
        successor: Option<Successor>,
    },
    /// Ends a wait. It never frees a lease.
    Dequeue {
        /// The wait.
        lock_request: Arc<LockRequest>,
    },
    /// Extends leases. Each lease gets its own answer.
    Renew(Vec<Lease>),
    /// Reports that the client is alive, and asks about its oldest waiter of each lock.
    Heartbeat(Vec<Arc<LockRequest>>),
    /// Raises the counter to `fence` if the owner has the lease.
    ConfirmFence {
        /// The lease.
        lock_request: Arc<LockRequest>,
        /// The fence of the lease.
        fence: Fence,
    },
    /// Restores exclusive leases on a member that lost them, where their locks are free.
    Repair(Vec<Lease>),
    /// Opens, writes or reads the record of a lock.
    Record(Key, RecordAction),
    /// Asks the member for its status and its record of the quorum.
    Status,
    /// Writes the member's record of the quorum.
    WriteMemberRecord(Box<MemberRecordEdit>),
    /// Tells the member which data generations of its peers the client observed.
    RecordObservation(Vec<(MemberId, DataGeneration)>),
}

/// The position of an attempt in the queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Position {
    /// No position: the attempt fails if the lock is held, or if a live waiter is ahead.
    None,
    /// The ticket: when the wait began, in microseconds of the servers' clocks (their lower median).
    Ticket(u64),
    /// Ahead of the queue.
    Barging,
}

/// A lease that a client holds.
#[derive(Clone, Debug)]
pub struct Lease {
    /// The lock request as it was granted.
    pub lock_request: Arc<LockRequest>,
    /// The fence it was granted with.
    pub fence: Fence,
    /// The permit it holds.
    pub slot: Option<PermitSlot>,
}

/// The waiter that a release names as its successor.
#[derive(Clone, Debug)]
pub struct Successor {
    /// What it wants.
    pub lock_request: Arc<LockRequest>,
    /// The greatest fence that the client knows.
    pub proposal: u64,
    /// Its position in the queue.
    pub ticket: u64,
    /// The permit that it prefers.
    pub preferred: Option<PermitSlot>,
}

/// How a waiter returns to the queue when it gives a round back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Requeue {
    /// The owner of its next round. The owner that the release names never asks again.
    pub owner: Owner,
    /// Its ticket, which stays.
    pub ticket: u64,
}

impl Request {
    /// Returns the shortest time after which a reply is of no use; `None` if the request has no lease.
    pub fn usable_ttl(&self) -> Option<Duration> {
        match self {
            Self::TryAcquire { lock_request, .. }
            | Self::DrawFence { lock_request }
            | Self::Acquire { lock_request, .. }
            | Self::ConfirmFence { lock_request, .. }
            | Self::Free { lock_request }
            | Self::Dequeue { lock_request }
            | Self::Release { lock_request, .. } => Some(lock_request.usable_ttl()),
            Self::Renew(leases) | Self::Repair(leases) => leases
                .iter()
                .map(|lease| lease.lock_request.usable_ttl())
                .min(),
            Self::Heartbeat(_)
            | Self::Record(..)
            | Self::Status
            | Self::WriteMemberRecord(_)
            | Self::RecordObservation(_) => None,
        }
    }
}

impl Lease {
    /// Names a lease in a release, which does not send the fence.
    pub(crate) fn of(lock_request: &Arc<LockRequest>) -> Self {
        Self {
            lock_request: Arc::clone(lock_request),
            fence: Fence::MAX,
            slot: None,
        }
    }
}
