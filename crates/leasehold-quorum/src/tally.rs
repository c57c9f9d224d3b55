//! Whether a lease was renewed or freed. Decides from the members' votes alone.

use crate::ballot::majority;
use leasehold::LostReason;

/// One member's vote on one lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Word {
    /// The lease was still valid there, and is renewed or freed.
    Stood,
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
    Stood,
    /// Too many members lost the lease for it to be valid on a majority.
    Lost(LostReason),
    /// Too few members answered to decide either.
    Unknown,
}

/// The members' votes on one lease.
#[derive(Clone, Debug)]
pub(crate) struct Tally {
    members: usize,
    stood: usize,
    lost: usize,
    unknown: usize,
    reason: LostReason,
}

impl Tally {
    pub(crate) fn new(members: usize) -> Self {
        Self {
            members,
            stood: 0,
            lost: 0,
            unknown: 0,
            reason: LostReason::Gone,
        }
    }

    pub(crate) fn count(&mut self, word: Word) {
        match word {
            Word::Stood => self.stood += 1,
            Word::Unknown => self.unknown += 1,
            Word::Lost(reason) => {
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
        if self.stood >= needed {
            Verdict::Stood
        } else if self.members - self.lost < needed {
            Verdict::Lost(self.reason)
        } else if self.stood + self.lost + self.unknown < self.members {
            Verdict::Open
        } else {
            Verdict::Unknown
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tally(words: &[Word]) -> Verdict {
        let mut tally = Tally::new(5);
        words.iter().for_each(|word| tally.count(*word));
        tally.verdict()
    }

    const GONE: Word = Word::Lost(LostReason::Gone);
    const TAKEN: Word = Word::Lost(LostReason::Taken);

    #[test]
    fn a_majority_decides_without_the_rest() {
        assert_eq!(tally(&[Word::Stood, Word::Stood]), Verdict::Open);
        assert_eq!(
            tally(&[Word::Stood, GONE, Word::Stood, Word::Stood]),
            Verdict::Stood
        );
        assert_eq!(
            tally(&[GONE, TAKEN, GONE]),
            Verdict::Lost(LostReason::Taken)
        );
        let broken = Word::Lost(LostReason::Broken);
        assert_eq!(
            tally(&[GONE, broken, TAKEN]),
            Verdict::Lost(LostReason::Broken)
        );
        assert_eq!(tally(&[GONE, GONE, GONE]), Verdict::Lost(LostReason::Gone));
    }

    #[test]
    fn silence_is_neither_success_nor_loss() {
        let silent = [Word::Unknown; 3];
        assert_eq!(tally(&silent), Verdict::Open, "two may still come in");
        assert_eq!(
            tally(&[&silent[..], &[Word::Stood, Word::Stood]].concat()),
            Verdict::Unknown
        );
        assert_eq!(
            tally(&[&silent[..], &[GONE, GONE]].concat()),
            Verdict::Unknown
        );
    }
}
