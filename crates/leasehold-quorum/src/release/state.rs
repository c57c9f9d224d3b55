use std::sync::Arc;

use leasehold_types::{BootInstant, Claim, MemberFailure};

use crate::members::Members;
use crate::tally::Tally;

/// One release. It lasts until each member answered.
#[derive(Debug)]
pub(crate) struct Release {
    pub(super) claim: Arc<Claim>,
    pub(super) began: BootInstant,
    /// Other claims may wait for the lock.
    pub(super) contended: bool,
    pub(super) tally: Tally,
    pub(super) failures: Vec<MemberFailure>,
    /// How many members have not answered.
    pub(super) open: usize,
    /// The members that are not connected for the first time yet.
    pub(super) pending: Members,
    pub(super) decided: bool,
}

impl Release {
    /// Whether its outcome is known, and each member that can be asked was asked.
    pub(crate) fn is_decided(&self) -> bool {
        self.decided && self.pending.is_empty()
    }
}
