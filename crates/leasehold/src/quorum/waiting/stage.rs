use std::sync::Arc;

use crate::claim::Claim;
use crate::fence::Fence;
use crate::inheritance::{Inheritance, Wanted};
use crate::permits::Slot;
use crate::quorum::waiting::board::Board;
use crate::quorum::waiting::vigils::Passed;

/// What became of a wait so far.
#[derive(Debug, Default)]
pub(super) struct Stage {
    /// The attempt that was granted, while it holds.
    pub(super) held: Option<Held>,
    /// Nobody waits for another grant.
    pub(super) left: bool,
    /// How many of its client had been granted the lock when its place was told to it.
    pub(super) grants_before: u64,
    /// What lease it wants, if it may be one that another leaves.
    pub(super) wanted: Option<Wanted>,
    /// It has nothing under way, and waits for its time.
    pub(super) is_idle: bool,
    /// What it was left, and has not taken yet.
    pub(super) left_to_it: Option<(Inheritance, Fence)>,
}

impl Stage {
    /// Whether nobody is before it. Its place was told to it before some of its client had the lock: each
    /// that had it since was before it.
    pub(super) fn is_next(&self, board: &Board, passed: Passed) -> bool {
        let since = passed.grants.saturating_sub(self.grants_before);
        let place = board.place_after(passed.heirs);
        place.is_some_and(|place| place.saturating_sub(since) <= 1)
    }
}

/// What a waiter holds, and may take wherever it is handed over late.
#[derive(Clone, Debug)]
pub(crate) struct Held {
    pub(crate) claim: Arc<Claim>,
    pub(crate) fence: Fence,
}

impl Held {
    /// Whether `slot` is another permit than the one that is held.
    pub(super) fn is_another(&self, slot: Option<Slot>) -> bool {
        let (Some(held), Some(slot)) = (self.claim.slot, slot) else {
            return false;
        };
        held != slot
    }
}
