use std::sync::Arc;

use leasehold::Fence;
use leasehold::clock::BootInstant;
use leasehold::store::LockRequest;
use leasehold_quorum::{OperationId, RecordAction};

use crate::history::Wait;
use crate::rng::SimRng;
use crate::time::Time;

/// A program of a client. It takes a lock, holds it for a while and releases it, again and again.
#[derive(Debug)]
pub(crate) struct Program {
    pub(crate) rng: SimRng,
    pub(crate) state: ProgramState,
    /// Timers with other tokens are void.
    pub(crate) token: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ProgramState {
    Idle,
    Waiting(Wait, OperationId),
    Holding(Wait),
    Releasing,
    Over,
}

/// Why a client began an operation.
#[derive(Debug)]
pub(crate) enum Purpose {
    Acquire {
        program: usize,
        wait: Wait,
        lock_request: Arc<LockRequest>,
    },
    Renew {
        waits: Vec<Wait>,
        sent: BootInstant,
    },
    Release {
        wait: Wait,
        program: Option<usize>,
    },
    Record(RecordStep),
}

/// A lease that a program holds. It follows the rules of `leasehold/src/lease.rs`.
#[derive(Debug)]
pub(crate) struct Guard {
    pub(crate) program: usize,
    pub(crate) lock_request: Arc<LockRequest>,
    pub(crate) fence: Fence,
    pub(crate) deadline: BootInstant,
    pub(crate) renew_at: BootInstant,
    pub(crate) renewing: bool,
}

impl Program {
    pub(crate) fn new(rng: SimRng) -> Self {
        Self {
            rng,
            state: ProgramState::Idle,
            token: 0,
        }
    }
}

/// The next step of a holder at the record of its lock.
#[derive(Clone, Debug)]
pub(crate) struct RecordStep {
    pub(crate) lock: usize,
    pub(crate) fence: Fence,
    /// How many writes came before.
    pub(crate) writes: u32,
    pub(crate) began: Time,
    pub(crate) action: RecordAction,
}
