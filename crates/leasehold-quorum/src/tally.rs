//! Whether a lease was renewed or freed. Decides from the members' votes alone.

use crate::ballot::majority;
use leasehold_types::LostReason;

/// One member's vote on one lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LeaseVote {
    /// The lease was still valid there, and is renewed or freed.
    Valid,
    /// The lease was no longer valid there.
    Lost(LostReason),
    /// No answer.
    Unknown,
}

/// What follows from the votes so far.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// More votes are needed.
    Open,
    /// The lease was valid on a majority.
    Valid,
    /// Too many members lost the lease for it to be valid on a majority.
    Lost(LostReason),
    /// Too few members answered to decide either.
    Unknown,
}

/// The members' votes on one lease.
#[derive(Clone, Debug)]
pub(crate) struct Tally {
    members: usize,
    valid: usize,
    lost: usize,
    unknown: usize,
    reason: LostReason,
}

impl Tally {
    pub(crate) fn new(members: usize) -> Self {
        Self {
            members,
            valid: 0,
            lost: 0,
            unknown: 0,
            reason: LostReason::Gone,
        }
    }

    pub(crate) fn members(&self) -> usize {
        self.members
    }

    pub(crate) fn count(&mut self, vote: LeaseVote) {
        match vote {
            LeaseVote::Valid => self.valid += 1,
            LeaseVote::Unknown => self.unknown += 1,
            LeaseVote::Lost(reason) => {
                self.lost += 1;
                // Another holder at one member explains the loss better than a lease that vanished there.
                // An operator's break explains it better than either.
                let explains = |reason| match reason {
                    LostReason::Broken => 2,
                    LostReason::Taken => 1,
                    _ => 0,
                };
                if explains(reason) > explains(self.reason) {
                    self.reason = reason;
                }
            }
        }
    }

    pub(crate) fn verdict(&self) -> Verdict {
        let needed = majority(self.members);
        if self.valid >= needed {
            Verdict::Valid
        } else if self.members - self.lost < needed {
            Verdict::Lost(self.reason)
        } else if self.valid + self.lost + self.unknown < self.members {
            Verdict::Open
        } else {
            Verdict::Unknown
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tally(votes: &[LeaseVote]) -> Verdict {
        let mut tally = Tally::new(5);
        votes.iter().for_each(|vote| tally.count(*vote));
        tally.verdict()
    }

    const GONE: LeaseVote = LeaseVote::Lost(LostReason::Gone);
    const TAKEN: LeaseVote = LeaseVote::Lost(LostReason::Taken);

    #[test]
    fn a_majority_decides_without_the_rest() {
        assert_eq!(tally(&[LeaseVote::Valid, LeaseVote::Valid]), Verdict::Open);
        assert_eq!(
            tally(&[LeaseVote::Valid, GONE, LeaseVote::Valid, LeaseVote::Valid]),
            Verdict::Valid
        );
        assert_eq!(
            tally(&[GONE, TAKEN, GONE]),
            Verdict::Lost(LostReason::Taken)
        );
        let broken = LeaseVote::Lost(LostReason::Broken);
        assert_eq!(
            tally(&[GONE, broken, TAKEN]),
            Verdict::Lost(LostReason::Broken)
        );
        assert_eq!(tally(&[GONE, GONE, GONE]), Verdict::Lost(LostReason::Gone));
    }

    #[test]
    fn silence_is_neither_success_nor_loss() {
        let silent = [LeaseVote::Unknown; 3];
        assert_eq!(tally(&silent), Verdict::Open, "two may still come in");
        assert_eq!(
            tally(&[&silent[..], &[LeaseVote::Valid, LeaseVote::Valid]].concat()),
            Verdict::Unknown
        );
        assert_eq!(
            tally(&[&silent[..], &[GONE, GONE]].concat()),
            Verdict::Unknown
        );
    }
}
