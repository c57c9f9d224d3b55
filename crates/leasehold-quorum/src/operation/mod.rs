pub(crate) mod operations;

use std::sync::Arc;

use leasehold_types::{
    BootInstant, Busy, Error, Fence, Held, LockRequest, MemberHealth, Owner, PermitSlot, RecordKey,
    ReleaseReply, RenewReply, Term,
};

use crate::messages::{RecordAction, RecordAnswer};

/// Identifies an operation of one engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct OperationId(pub u64);

/// What a client asks of the quorum.
#[derive(Clone, Debug)]
pub enum Operation {
    /// Takes the lock. [`LockRequest`] says whether it waits in the queue, goes ahead of it, or asks once.
    ///
    /// A waiting operation continues through outages until it holds the lock or is cancelled.
    Acquire(Arc<LockRequest>),
    /// Extends leases; several at once share their requests.
    Renew(Vec<Held>),
    /// Frees a lease.
    Release(Arc<LockRequest>, ReleaseMode),
    /// Opens, writes or reads the record of a lock.
    Record(RecordKey, RecordAction),
    /// Asks each member for its status, for people and monitoring.
    Health,
}

/// What happens to a lock that is released.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ReleaseMode {
    /// The lock passes to the next waiter.
    #[default]
    HandOver,
    /// The lease stays until it expires, and the engine forgets it: no repair, no late release.
    Detach,
}

/// What an operation reports.
#[derive(Clone, Debug)]
pub enum Event {
    /// It continues.
    Progress(Progress),
    /// It is over.
    Done(Outcome),
}

/// An intermediate result of an operation that continues.
#[derive(Clone, Debug)]
pub enum Progress {
    /// A majority answered; another owner holds the lock.
    Busy(Busy),
    /// Too few members answer. The error has the reason of each member. Repeated when reasons may have changed.
    Unavailable(Error),
}

/// The result of an operation.
#[derive(Clone, Debug)]
pub enum Outcome {
    /// A majority granted the lease.
    Acquired(Acquired),
    /// Another owner holds the lock, and the operation does not wait.
    Busy(Busy),
    /// One result for each lease, in their order.
    Renewed(Vec<RenewReply>),
    /// The lease was released, or was lost before.
    Released(ReleaseReply),
    /// The answer of a majority about a record.
    Record(RecordAnswer),
    /// The state of each member, in the order of the members.
    Health(Vec<MemberHealth>),
    /// The operation failed. Asking again does not help, or is up to the caller.
    Failed(Error),
}

/// A lease that a majority granted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Acquired {
    /// The owner of the lease. It differs from the owner in the lock request if the wait took several rounds.
    pub owner: Owner,
    /// The fence.
    pub fence: Fence,
    /// The permit, if the owner wanted one.
    pub slot: Option<PermitSlot>,
    /// The term of the lease. It counts from when the latest of the majority's requests was sent.
    pub term: Term,
    /// When a member first notified the waiter that it is its turn.
    pub notified_at: Option<BootInstant>,
}
