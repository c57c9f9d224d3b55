use foldhash::HashMap;
use leasehold_types::{BootInstant, RecordKey};

use super::action::RecordAction;
use super::rounds::Round;
use crate::operation::OperationId;

/// The record operations of one client.
#[derive(Debug, Default)]
pub(crate) struct Records {
    pub(super) running: HashMap<OperationId, RecordOperation>,
}

#[derive(Debug)]
pub(super) struct RecordOperation {
    pub(super) record: RecordKey,
    pub(super) action: RecordAction,
    pub(super) began: BootInstant,
    pub(super) round: Round,
    /// How many requests have no reply.
    pub(super) unanswered: usize,
    /// The members whose status is not known yet.
    pub(super) pending: Vec<usize>,
    pub(super) timer: Option<BootInstant>,
}
