use leasehold_types::Fence;

/// How a lease that is granted together with others gets a fence of its own.
///
/// Only one owner raises a member's counter to a given number: either it draws that number, or it confirms it.
/// An owner that did so at a majority has the fence for itself. Members that saw two owners in different
/// orders may have given the number of one to the other. The owner then tries a greater number.
#[derive(Debug)]
pub(super) struct FenceRace {
    tie_breaker: u64,
    round: u32,
    /// The greatest number that any member's counter is known to have reached.
    greatest: Option<Fence>,
}

/// How many more fences it tries.
pub(super) const ROUNDS: u32 = 5;

impl FenceRace {
    pub(super) fn new(tie_breaker: u64) -> Self {
        Self {
            tie_breaker,
            round: 0,
            greatest: None,
        }
    }

    /// Notes how far a member's counter has advanced.
    pub(super) fn observe(&mut self, counter: Fence) {
        self.greatest = self.greatest.max(Some(counter));
    }

    /// Whether it may try another fence.
    pub(super) fn may_repeat(&self) -> bool {
        self.round < ROUNDS
    }

    /// Returns a fence beyond all known ones, or `None` after too many rounds. Each round leaps further,
    /// because counters advance with the clocks of new owners. The leap is random, so that two owners that
    /// collided once do not collide again.
    pub(super) fn next(&mut self) -> Option<Fence> {
        if !self.may_repeat() {
            return None;
        }
        self.round += 1;
        let width = 256 << (2 * self.round);
        let next = self.greatest?.get() + 1 + self.tie_breaker % width;
        Fence::new(next).filter(|fence| *fence <= Fence::MAX)
    }
}
