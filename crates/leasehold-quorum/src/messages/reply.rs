use std::time::Duration;

use leasehold_types::{
    Busy, Error, Fence, Key, LostReason, MemberStatus, Mode, Owner, PermitSlot, Sample,
};

use super::record_action::RecordAnswer;
use super::request::RequestId;

/// The answer of one member to one [`Request`](crate::Request).
#[derive(Clone, Debug)]
pub enum Reply {
    /// The owner has the lease.
    Granted {
        /// The fence that the member drew.
        fence: Fence,
        /// The permit, if the owner wants one.
        slot: Option<PermitSlot>,
    },
    /// The owner has the lease, but the counter was not below the proposal. A fence has to be drawn.
    GrantedBehind,
    /// Another owner holds the lock, or it is another waiter's turn.
    Busy(Refusal),
    /// The answer to a release: whether the lease was valid, and what the successor got.
    Released {
        /// The lease was valid and is now free.
        freed: bool,
        /// The successor now holds the lock, with this fence and permit.
        successor: Option<(Fence, Option<PermitSlot>)>,
    },
    /// The wait is over.
    Dequeued,
    /// The lease is not valid, or other clients wait: send [`Request::Release`](crate::Request::Release).
    Contended,
    /// The answers to a renewal, in the order of its leases.
    Renewed(Vec<LeaseState>),
    /// The answers to a heartbeat, in the order of its waiters.
    Waiting(Vec<Refusal>),
    /// The answer to [`Request::ConfirmFence`](crate::Request::ConfirmFence).
    Confirmed(leasehold_types::FenceConfirmation),
    /// The answers to a repair: whether each lease was restored.
    Repaired(Vec<bool>),
    /// The answer to [`Request::Record`](crate::Request::Record).
    Record(RecordAnswer),
    /// The member's status.
    Status(Box<MemberStatus>),
    /// Whether the member's record was written, or an observation was noted.
    Recorded(bool),
    /// The member refused the request, or its answer makes no sense. `effect` says whether the request may
    /// have taken effect.
    Failed(Error),
}

impl Reply {
    /// Returns whether a member that refuses to grant locks would have refused the request.
    pub(crate) fn grants(&self) -> bool {
        matches!(
            self,
            Self::Granted { .. } | Self::GrantedBehind | Self::Busy(_) | Self::Waiting(_)
        )
    }
}

/// What a waiter learns from a member that did not grant the lock.
#[derive(Clone, Debug, Default)]
pub struct Refusal {
    /// The holder, the remaining lease, the position in the queue (1 is next; `None`: not queued), and
    /// whether the server can notify the waiter.
    pub busy: Busy,
    /// When to ask again; `None`: wait for a notification.
    pub ask_again: Option<Duration>,
    /// It is the waiter's turn: ask at once. Only a heartbeat says so.
    pub turn: bool,
}

/// The answer of a member for one of several leases.
#[derive(Clone, Debug)]
pub enum LeaseState {
    /// The lease was valid and is extended.
    Renewed,
    /// The lease is no longer valid.
    Lost(LostReason),
    /// The member had an error with this lease only.
    Failed(Error),
}

/// An unsolicited message of a member to a client. It is a hint to ask again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Notification {
    /// The lock.
    pub key: Key,
    /// The waiter whose turn it is.
    pub waiter: Owner,
    /// How the waiter wants to hold the lock. A client that does not know the waiter needs this to release it.
    pub mode: Mode,
}

/// The replies to requests that were written together, and the sample that follows them.
///
/// The member shows its clock and the epoch of its record after the last command of a batch. The sample
/// therefore shows whether data was lost during the batch.
#[derive(Debug)]
pub struct BatchReply {
    /// What the member reported about itself.
    pub sample: Sample,
    /// The replies, in the order of the requests.
    pub replies: Vec<(RequestId, Reply)>,
}
