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
mod tests {
    use super::*;

    fn fence(value: u64) -> Fence {
        Fence::new(value).unwrap()
    }

    fn granted(value: u64) -> Vote {
        Vote::Granted(fence(value))
    }

    /// A ballot of members that all count, but for one.
    struct Booth(Ballot, Option<usize>);

    impl Booth {
        fn new(members: usize) -> Self {
            Self(Ballot::new(members), None)
        }

        fn without(members: usize, distrusted: usize) -> Self {
            Self(Ballot::new(members), Some(distrusted))
        }

        fn vote(&mut self, member: usize, vote: Vote) -> Step {
            self.0.vote(member, vote);
            self.step()
        }

        fn seal(&mut self, member: usize, sealed: bool) -> Step {
            self.0.seal(member, sealed);
            self.step()
        }

        fn step(&mut self) -> Step {
            let out = self.1;
            self.0.step(|member| Some(member) != out)
        }
    }

    #[test]
    fn a_grant_that_does_not_count_neither_wins_nor_seals_nor_makes_the_lock_busy() {
        let mut ballot = Booth::without(3, 1);
        assert_eq!(ballot.vote(0, granted(9)), Step::Wait);
        assert_eq!(ballot.vote(1, granted(9)), Step::Wait);
        assert_eq!(ballot.vote(2, Vote::Failed), Step::NoQuorum);

        let mut ballot = Booth::without(3, 1);
        ballot.vote(1, granted(12));
        ballot.vote(0, granted(7));
        assert_eq!(ballot.vote(2, granted(9)), Step::Seal(fence(9), vec![0]));
        assert_eq!(ballot.seal(0, true), Step::Won(fence(9)));
    }

    #[test]
    fn a_member_that_falls_into_doubt_takes_its_grant_back() {
        let mut ballot = Booth::new(3);
        ballot.vote(0, granted(7));
        assert_eq!(ballot.vote(1, granted(9)), Step::Seal(fence(9), vec![0]));
        ballot.1 = Some(1);
        assert_eq!(ballot.seal(0, true), Step::Wait);
        assert_eq!(ballot.vote(2, granted(9)), Step::Won(fence(9)));
    }

    #[test]
    fn a_majority_with_one_fence_wins_in_one_round_without_stragglers() {
        let mut ballot = Booth::new(5);
        assert_eq!(ballot.vote(0, granted(9)), Step::Wait);
        assert_eq!(ballot.vote(3, granted(9)), Step::Wait);
        assert_eq!(ballot.vote(1, granted(9)), Step::Won(fence(9)));
    }

    #[test]
    fn different_fences_are_sealed_where_they_are_lower() {
        let mut ballot = Booth::new(3);
        assert_eq!(ballot.vote(0, granted(7)), Step::Wait);
        assert_eq!(ballot.vote(1, granted(9)), Step::Seal(fence(9), vec![0]));
        assert_eq!(ballot.seal(0, true), Step::Won(fence(9)));
    }

    #[test]
    fn a_straggler_that_answers_exactly_the_fence_seals_it_too() {
        let mut ballot = Booth::new(3);
        ballot.vote(0, granted(7));
        assert_eq!(ballot.vote(1, granted(9)), Step::Seal(fence(9), vec![0]));
        assert_eq!(ballot.vote(2, granted(9)), Step::Won(fence(9)));
    }

    #[test]
    fn a_greater_straggler_does_not_move_a_fence_that_stands_but_can_seal_it() {
        let mut ballot = Booth::new(3);
        ballot.vote(0, granted(7));
        ballot.vote(1, granted(9));
        assert_eq!(ballot.vote(2, granted(12)), Step::Seal(fence(9), vec![2]));
        assert_eq!(ballot.seal(0, false), Step::Wait);
        assert_eq!(ballot.seal(2, true), Step::Won(fence(9)));
    }

    #[test]
    fn without_a_majority_that_sealed_nothing_is_granted() {
        let mut ballot = Booth::new(3);
        ballot.vote(0, granted(7));
        ballot.vote(1, granted(9));
        assert_eq!(
            ballot.seal(0, false),
            Step::Wait,
            "the third may still come in"
        );
        assert_eq!(ballot.vote(2, Vote::Failed), Step::NoQuorum);
    }

    #[test]
    fn busy_is_decided_as_soon_as_a_majority_cannot_be_had() {
        let mut ballot = Booth::new(5);
        ballot.vote(0, Vote::Busy);
        ballot.vote(1, granted(3));
        assert_eq!(ballot.vote(2, Vote::Busy), Step::Wait);
        assert_eq!(ballot.vote(3, Vote::Busy), Step::Busy);
    }

    #[test]
    fn a_split_vote_is_busy_and_dead_members_are_not() {
        let mut split = Booth::new(3);
        split.vote(0, granted(3));
        split.vote(1, Vote::Busy);
        assert_eq!(
            split.vote(2, Vote::Failed),
            Step::Busy,
            "two of three answered"
        );

        let mut dead = Booth::new(5);
        dead.vote(0, granted(3));
        dead.vote(1, Vote::Failed);
        dead.vote(2, Vote::Failed);
        assert_eq!(dead.vote(3, Vote::Failed), Step::NoQuorum);
    }

    #[test]
    fn busy_members_beside_silent_ones_are_not_busy_before_the_silent_ones_are_known() {
        let mut ballot = Booth::new(5);
        ballot.vote(0, Vote::Busy);
        ballot.vote(1, Vote::Busy);
        assert_eq!(
            ballot.vote(2, Vote::Failed),
            Step::Wait,
            "no majority has answered"
        );
        assert_eq!(ballot.vote(3, Vote::Failed), Step::Wait);
        assert_eq!(ballot.vote(4, Vote::Failed), Step::NoQuorum);

        let mut ballot = Booth::new(5);
        ballot.vote(0, Vote::Busy);
        ballot.vote(1, Vote::Busy);
        ballot.vote(2, Vote::Failed);
        assert_eq!(
            ballot.vote(3, granted(1)),
            Step::Busy,
            "three of five have answered"
        );
    }

    #[test]
    fn a_second_vote_of_the_same_member_counts_for_nothing() {
        let mut ballot = Booth::new(3);
        assert_eq!(ballot.vote(0, granted(3)), Step::Wait);
        assert_eq!(ballot.vote(0, granted(3)), Step::Wait);
        assert_eq!(ballot.vote(0, Vote::Busy), Step::Wait);
        assert_eq!(ballot.vote(1, granted(3)), Step::Won(fence(3)));
    }

    #[test]
    fn a_quorum_of_one_decides_alone() {
        assert_eq!(Booth::new(1).vote(0, granted(3)), Step::Won(fence(3)));
        assert_eq!(Booth::new(1).vote(0, Vote::Busy), Step::Busy);
        assert_eq!(Booth::new(1).vote(0, Vote::Failed), Step::NoQuorum);
    }
}
