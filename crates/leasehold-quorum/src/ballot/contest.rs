use leasehold::Fence;

/// How a claim beside which others are granted comes to a fence that is its own.
///
/// Of all claims one alone brings a member's counter to a number from below: one draws it, or one seals
/// it. Whoever did so at a majority has that fence for itself. Members that heard of two claims in
/// different orders may have given one's number to the other: then it tries a greater one.
#[derive(Debug)]
pub(super) struct Contest {
    luck: u64,
    round: u32,
    /// The greatest number that a member is known to have come to.
    greatest: Option<Fence>,
}

/// How often it tries another fence.
pub(super) const ROUNDS: u32 = 5;

impl Contest {
    pub(super) fn new(luck: u64) -> Self {
        Self {
            luck,
            round: 0,
            greatest: None,
        }
    }

    /// Takes note of how far a member's counter has come.
    pub(super) fn hear(&mut self, counter: Fence) {
        self.greatest = self.greatest.max(Some(counter));
    }

    /// Whether it may try another fence.
    pub(super) fn goes_on(&self) -> bool {
        self.round < ROUNDS
    }

    /// A fence beyond all that was heard of; `None` once that was tried too often. Each leaps further,
    /// since counters go with the clocks of those who come meanwhile, and by chance, so that two that
    /// met once do not meet again.
    pub(super) fn next(&mut self) -> Option<Fence> {
        if !self.goes_on() {
            return None;
        }
        self.round += 1;
        let width = 256 << (2 * self.round);
        let next = self.greatest?.get() + 1 + self.luck % width;
        Fence::new(next).filter(|fence| *fence <= Fence::MAX)
    }
}
