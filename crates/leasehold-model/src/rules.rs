//! The rules of the protocol that a search can leave out, and the bounds of a search.

use std::str::FromStr;

/// A rule that keeps a promise.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rule {
    /// A fence that no majority answered is confirmed by a majority before it is used.
    Confirmation,
    /// Only members that granted are asked to confirm; otherwise all are.
    ConfirmationWhereGranted,
    /// A member confirms a fence only while the owner holds the lease there.
    ConfirmationOfHolder,
    /// A draw raises the counter at least to the proposal, the client's wall clock.
    Proposal,
    /// The grant of a member without a vote does not count.
    VoteOnGrant,
    /// Nor does its confirmation.
    VoteOnConfirmation,
    /// Nor does its renewal.
    VoteOnRenewal,
    /// Nothing is repaired at it, nor does a repair there count.
    VoteOnRepair,
    /// Only requests sent after a member's wait count; otherwise all that it executes then.
    SentAfterWait,
    /// The draw of a fence fails in another incarnation than the lease was taken in. Otherwise the client trusts
    /// its answer as it trusted the lease.
    OneIncarnation,
    /// A member whose clock jumped has no vote for a time, too.
    SteppedClock,
    /// A repair is a request of its own, and counts from the next renewal on; otherwise the renewal repairs and counts.
    RepairCountsLater,
    /// A member that may have forgotten leases has no vote for longer than any guard lasts.
    WholeWait,
    /// Validity counts from before the request was sent, not from the answer.
    DeadlineFromSending,
    /// The margin covers the drift of both clocks.
    Margin,
    /// A guard whose deadline passed stays lost, even if a late renewal succeeds.
    LostIsFinal,
    /// Every attempt has an owner of its own; otherwise every second one has the same.
    OwnerPerAttempt,
    /// A member frees a lease only for its owner.
    ReleaseOfHolder,
}

/// How much may happen, written as `3 attempts, 1 mishap, wrong clocks`. Within bounds, every order of events is tried.
#[derive(Clone, Copy, Debug, Default)]
pub struct Bounds {
    /// Attempts to take the lock, at most three.
    pub attempts: usize,
    /// Rounds of renewal that a guard may send.
    pub renewals: u8,
    /// Restarts of members that lose leases and counter, and forward jumps of their clocks, which end the lease.
    pub mishaps: u8,
    /// How many ticks the clocks of clients may be ahead.
    pub ahead: u8,
    /// The clocks of clients say anything.
    pub wrong_clocks: bool,
    /// Other steps may come between the two of an acquire: the lease, and the draw of a fence.
    pub split: bool,
}

impl FromStr for Bounds {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut bounds = Self::default();
        for part in text.split(", ") {
            let (count, what) = part.split_once(' ').unwrap_or(("", part));
            match (count.parse().unwrap_or(0), what.trim_end_matches('s')) {
                (count @ 1..=3, "attempt") => bounds.attempts = usize::from(count),
                (count @ 1..=3, "renewal") => bounds.renewals = count,
                (count @ 1..=3, "mishap") => bounds.mishaps = count,
                (count @ 1..=3, "ticks ahead") => bounds.ahead = count,
                (0, "clock") => bounds.wrong_clocks = true,
                (0, "split") => bounds.split = true,
                _ => return Err(format!("{part:?} is no bound")),
            }
        }
        Ok(bounds)
    }
}
