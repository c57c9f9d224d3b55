use std::collections::VecDeque;

use crate::env::clock::BootInstant;
use crate::types::{BreakRecord, Owner};

/// The breaks of one key.
#[derive(Debug, Default)]
pub(super) struct Breaks {
    /// The owners of the last broken leases.
    owners: VecDeque<Owner>,
    last: Option<(BreakRecord, BootInstant)>,
}

/// How many owners of broken leases are remembered. An older owner does not hold the lock either.
const REMEMBERED_MAX: usize = 16;

impl Breaks {
    /// Returns whether the lease of `owner` was broken.
    pub(super) fn includes(&self, owner: Owner) -> bool {
        self.owners.contains(&owner)
    }

    pub(super) fn remember(&mut self, owner: Owner) {
        if !self.includes(owner) {
            self.owners.push_back(owner);
        }
        if self.owners.len() > REMEMBERED_MAX {
            self.owners.pop_front();
        }
    }

    pub(super) fn keep(&mut self, record: &BreakRecord, now: BootInstant) {
        self.last = Some((record.clone(), now + BreakRecord::KEPT));
    }

    pub(super) fn last(&self, now: BootInstant) -> Option<BreakRecord> {
        let kept = self.last.as_ref().filter(|(_, end)| now < *end);
        kept.map(|(record, _)| record.clone())
    }
}
