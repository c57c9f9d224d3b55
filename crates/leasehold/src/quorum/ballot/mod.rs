//! Who won one attempt, and with which fence: decided from the members' votes alone.
//!
//! Redlock (Redis documentation, "Distributed Locks with Redis", the Redlock algorithm), with a
//! fence in one round where a majority answers the same number, and in a second round, `seal`,
//! where it does not. Both rounds ask for a majority, so any two of them share a member: it
//! remembers the older fence, and the newer one is greater.

use crate::fence::Fence;

/// One member's word on the claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Vote {
    /// The claim holds there; the member's counter stands at this fence.
    Granted(Fence),
    /// Somebody else holds the key there.
    Busy,
    /// No answer, or one that does not count.
    Failed,
}

/// What follows from the votes so far.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// More votes must come in.
    Wait,
    /// These members must be asked to seal the fence.
    Seal(Fence, Vec<usize>),
    /// The claim is granted.
    Won(Fence),
    /// A majority of members answered, but too few granted the claim.
    Busy,
    /// Too few members answered.
    NoQuorum,
}

/// The votes of one attempt.
#[derive(Debug)]
pub(crate) struct Ballot {
    votes: Vec<Option<Vote>>,
    seals: Vec<SealState>,
    /// Whose grants count, at the last step.
    counting: Vec<bool>,
    /// Fixed once a majority has granted the claim: the greatest fence among that majority.
    fence: Option<Fence>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SealState {
    NotAsked,
    Asked,
    /// The member's counter is at least the fence while the claim holds there.
    Stands,
    Failed,
}

/// More than half of `members`.
pub(crate) fn majority(members: usize) -> usize {
    members / 2 + 1
}

impl Ballot {
    pub(crate) fn new(members: usize) -> Self {
        Self {
            votes: vec![None; members],
            seals: vec![SealState::NotAsked; members],
            counting: vec![false; members],
            fence: None,
        }
    }

    /// Takes in one member's vote. The first one stays.
    pub(crate) fn vote(&mut self, member: usize, vote: Vote) {
        let place = &mut self.votes[member];
        if place.is_none() {
            *place = Some(vote);
        }
    }

    /// Takes in whether a member, asked to, sealed the fence, and counts with that answer.
    pub(crate) fn seal(&mut self, member: usize, sealed: bool) {
        self.seals[member] = if sealed {
            SealState::Stands
        } else {
            SealState::Failed
        };
    }

    /// What follows, where only the grants of members count that `counts` says yes to: as of now,
    /// since one answer may throw doubt on another.
    pub(crate) fn step(&mut self, counts: impl Fn(usize) -> bool) -> Step {
        let needed = majority(self.votes.len());
        self.counting = (0..self.votes.len())
            .map(|member| granted(&self.votes[member]).is_some() && counts(member))
            .collect();
        let grants: Vec<Fence> = self
            .counted()
            .filter_map(|member| granted(&self.votes[member]))
            .collect();
        if self.fence.is_none() && grants.len() >= needed {
            self.fence = grants.iter().max().copied();
        }
        match self.fence {
            Some(fence) => self.second_round(fence, needed),
            None if grants.len() + self.pending() >= needed => Step::Wait,
            None => self.refusal(needed),
        }
    }

    fn second_round(&mut self, fence: Fence, needed: usize) -> Step {
        let mut to_ask = Vec::new();
        for member in 0..self.votes.len() {
            let Some(answer) = granted(&self.votes[member]) else {
                continue;
            };
            if !self.counting[member] || self.seals[member] != SealState::NotAsked {
                continue;
            }
            // A member that answered exactly the fence has sealed it without being asked.
            self.seals[member] = match answer.cmp(&fence) {
                std::cmp::Ordering::Equal => SealState::Stands,
                _ => SealState::Asked,
            };
            if self.seals[member] == SealState::Asked {
                to_ask.push(member);
            }
        }
        let count = |state| {
            let seals = self.counted().map(|member| self.seals[member]);
            seals.filter(|seal| *seal == state).count()
        };
        let standing = count(SealState::Stands);
        if standing >= needed {
            Step::Won(fence)
        } else if standing + count(SealState::Asked) + self.pending() < needed {
            self.refusal(needed)
        } else if to_ask.is_empty() {
            Step::Wait
        } else {
            Step::Seal(fence, to_ask)
        }
    }

    fn counted(&self) -> impl Iterator<Item = usize> {
        (0..self.votes.len()).filter(|member| self.counting[*member])
    }

    fn pending(&self) -> usize {
        self.votes.iter().filter(|vote| vote.is_none()).count()
    }

    /// The claim cannot be granted any more; why is not known before either so many members have
    /// answered that it is busy, or so many have failed that nobody knows.
    fn refusal(&self, needed: usize) -> Step {
        let members = self.votes.len();
        let failed = (0..members)
            .filter(|member| match self.votes[*member] {
                Some(Vote::Failed) => true,
                Some(Vote::Granted(_)) => {
                    !self.counting[*member] || self.seals[*member] == SealState::Failed
                }
                Some(Vote::Busy) | None => false,
            })
            .count();
        if members - failed < needed {
            Step::NoQuorum
        } else if members - failed - self.pending() >= needed {
            Step::Busy
        } else {
            Step::Wait
        }
    }
}

fn granted(vote: &Option<Vote>) -> Option<Fence> {
    match vote {
        Some(Vote::Granted(fence)) => Some(*fence),
        _ => None,
    }
}

#[cfg(test)]
mod tests;
