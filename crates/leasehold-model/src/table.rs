//! The searches: the design, and each of its rules left out.

use crate::quorum::Quorum;
use crate::rules::Rule::{self, *};
use crate::search::{Found, search};
use crate::state::Promise::{self, *};

/// One search, and what it must find.
#[derive(Clone, Copy, Debug)]
pub struct Row {
    /// The rules that are left out of the design.
    pub left_out: &'static [Rule],
    /// How much may happen: [`Bounds`](crate::rules::Bounds).
    pub bounds: &'static str,
    /// The promise that the search is about; if none, all of them.
    pub promise: Option<Promise>,
    /// Whether it is kept.
    pub is_kept: bool,
}

/// Searches for the tests: each rule left out, and the design. In the first two rows, wrong clocks and a lost counter cost
/// the design the order of fences, and only that.
#[rustfmt::skip]
pub const SMALL: &[Row] = &[
    breaks(&[], "2 attempts, 1 mishap, wrong clocks", FenceOrder),
    Row { promise: Some(Exclusion), ..keeps(&[], "2 attempts, 1 mishap, wrong clocks") },
    breaks(&[Confirmation], "3 attempts", FenceUnique),
    breaks(&[Confirmation], "3 attempts", FenceOrder),
    breaks(&[ConfirmationWhereGranted, ConfirmationOfHolder], "3 attempts", FenceUnique),
    breaks(&[Proposal], "2 attempts, 1 mishap", FenceUnique),
    breaks(&[OneIncarnation], "2 attempts, 1 mishap, split", FenceOrder),
    breaks(&[SentAfterWait], "2 attempts, 1 mishap, 2 ticks ahead", FenceUnique),
    breaks(&[VoteOnGrant], "2 attempts, 1 mishap", Exclusion),
    breaks(&[VoteOnConfirmation], "3 attempts, 1 mishap", FenceUnique),
    breaks(&[VoteOnRenewal], "2 attempts, 1 renewal, 1 mishap", Exclusion),
    breaks(&[VoteOnRepair, RepairCountsLater], "2 attempts, 1 renewal, 1 mishap", Exclusion),
    breaks(&[WholeWait], "2 attempts, 1 mishap", Exclusion),
    breaks(&[SteppedClock], "2 attempts, 1 mishap", Exclusion),
    breaks(&[DeadlineFromSending], "2 attempts", Exclusion),
    breaks(&[Margin], "2 attempts", Exclusion),
    breaks(&[LostIsFinal], "2 attempts, 1 renewal", Finality),
    breaks(&[OwnerPerAttempt], "3 attempts", Exclusion),
    breaks(&[ReleaseOfHolder], "2 attempts", OwnRelease),
    keeps(&[], "3 attempts"),
    keeps(&[], "2 attempts, wrong clocks, split"),
    keeps(&[], "2 attempts, 2 renewals"),
    keeps(&[], "2 attempts, 1 mishap, split"),
    keeps(&[], "2 attempts, 2 mishaps"),
    keeps(&[], "2 attempts, 1 renewal, 1 mishap"),
    keeps(&[], "2 attempts, 1 mishap, 2 ticks ahead"),
];

/// The design within larger bounds, and rules that no promise needs as long as the others hold.
pub const LARGE: &[Row] = &[
    keeps(&[], "3 attempts, wrong clocks"),
    keeps(&[], "3 attempts, split"),
    keeps(&[], "3 attempts, 1 renewal"),
    keeps(&[], "3 attempts, 1 mishap"),
    keeps(&[], "2 attempts, 2 mishaps, split"),
    keeps(&[], "2 attempts, 2 renewals, 1 mishap, split"),
    keeps(&[], "2 attempts, 1 renewal, 2 mishaps"),
    keeps(&[], "2 attempts, 1 mishap, 2 ticks ahead, split"),
    keeps(&[ConfirmationOfHolder], "3 attempts, 1 mishap"),
    keeps(&[ConfirmationWhereGranted], "3 attempts"),
    keeps(&[RepairCountsLater], "2 attempts, 1 renewal, 1 mishap"),
    keeps(&[VoteOnRepair], "2 attempts, 1 renewal, 1 mishap"),
];

const fn breaks(left_out: &'static [Rule], bounds: &'static str, promise: Promise) -> Row {
    Row {
        promise: Some(promise),
        is_kept: false,
        ..keeps(left_out, bounds)
    }
}

const fn keeps(left_out: &'static [Rule], bounds: &'static str) -> Row {
    Row {
        left_out,
        bounds,
        promise: None,
        is_kept: true,
    }
}

impl Row {
    /// Searches, and tries at most this many steps.
    ///
    /// # Panics
    ///
    /// If there are no such bounds.
    #[must_use]
    pub fn search(&self, steps: usize) -> Found {
        let bounds = self.bounds.parse().expect("bounds");
        let model = Quorum::new(self.left_out, bounds, self.promise);
        search(model, steps)
    }
}
