//! Who won one attempt, and with which fence: decided from the members' votes alone.
//!
//! Redlock (Redis documentation, "Distributed Locks with Redis", the Redlock algorithm), with a
//! fence in one round where a majority answers the same number, and in a second round, `seal`,
//! where it does not. Both rounds ask for a majority, so any two of them share a member: it
//! remembers the older fence, and the newer one is greater. Claims that are held together may be
//! granted at one moment: these have a [`Contest`] for the fence.

mod contest;

use std::cmp::Ordering;

use contest::Contest;
use leasehold::Fence;
use leasehold::Seal;

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
    members: Vec<Standing>,
    /// Fixed once a majority has granted the claim: the greatest fence among that majority, or one
    /// that nobody has if others had that one first.
    fence: Option<Fence>,
    /// `None` for a claim that holds alone.
    contest: Option<Contest>,
}

/// How it stands with one member.
#[derive(Clone, Copy, Debug)]
struct Standing {
    vote: Option<Vote>,
    seal: SealState,
    /// Whether its grant counts, at the last step.
    counts: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SealState {
    NotAsked,
    Asked,
    /// The member's counter is at least the fence while the claim holds there; in a contest, this
    /// claim and no other brought it to the fence.
    Stands,
    /// Its counter had come so far for others.
    Taken,
    Failed,
}

/// More than half of `members`.
pub(crate) fn majority(members: usize) -> usize {
    members / 2 + 1
}

impl Ballot {
    /// For a claim that holds alone, so that no other is granted before it is over.
    pub(crate) fn new(members: usize) -> Self {
        let unheard = Standing {
            vote: None,
            seal: SealState::NotAsked,
            counts: false,
        };
        Self {
            members: vec![unheard; members],
            fence: None,
            contest: None,
        }
    }

    /// For a claim beside which others are granted. Each draws its own `luck`.
    pub(crate) fn held_together(members: usize, luck: u64) -> Self {
        Self {
            contest: Some(Contest::new(luck)),
            ..Self::new(members)
        }
    }

    /// Takes in one member's vote. The first one stays.
    pub(crate) fn vote(&mut self, member: usize, vote: Vote) {
        let place = &mut self.members[member].vote;
        if place.is_some() {
            return;
        }
        *place = Some(vote);
        if let (Some(contest), Vote::Granted(fence)) = (&mut self.contest, vote) {
            contest.hear(fence);
        }
    }

    /// Takes in what a member said that was asked to seal this fence; `None` if it said nothing that
    /// counts. A member that failed once is not asked again.
    pub(crate) fn seal(&mut self, member: usize, fence: Fence, answer: Option<Seal>) {
        let state = match answer {
            Some(Seal::Sealed) => SealState::Stands,
            Some(Seal::Taken(counter)) => {
                if let Some(contest) = &mut self.contest {
                    contest.hear(counter);
                }
                SealState::Taken
            }
            Some(Seal::NotHeld) | None => SealState::Failed,
        };
        if state == SealState::Failed || self.fence == Some(fence) {
            self.members[member].seal = state;
        }
    }

    /// What follows, where only the grants of members count that `counts` says yes to: as of now,
    /// since one answer may throw doubt on another.
    pub(crate) fn step(&mut self, counts: impl Fn(usize) -> bool) -> Step {
        let needed = majority(self.members.len());
        for (member, standing) in self.members.iter_mut().enumerate() {
            standing.counts = standing.granted().is_some() && counts(member);
        }
        let grants = self.counted().count();
        if self.fence.is_none() && grants >= needed {
            self.fence = self.counted().filter_map(Standing::granted).max();
        }
        match self.fence {
            Some(fence) => self.second_round(fence, needed),
            None if grants + self.pending() >= needed => Step::Wait,
            None => self.refusal(needed),
        }
    }

    fn second_round(&mut self, fence: Fence, needed: usize) -> Step {
        let to_ask = self.not_sealed_yet(fence);
        let count = |state| {
            let counted = self.counted();
            counted.filter(|member| member.seal == state).count()
        };
        let (standing, asked) = (count(SealState::Stands), count(SealState::Asked));
        let taken = count(SealState::Taken);
        if standing >= needed {
            return Step::Won(fence);
        }
        // As many answer as are needed: whoever did not answer yet need not be waited for.
        if standing + taken >= needed
            && let Some(next) = self.contest.as_mut().and_then(Contest::next)
        {
            self.fence = Some(next);
            let answered = |member: &&mut Standing| member.seal != SealState::Failed;
            let again = self.members.iter_mut().filter(answered);
            again.for_each(|member| member.seal = SealState::NotAsked);
            return self.second_round(next, needed);
        }
        // Whoever has not answered yet decides whether there is a next round, where there may be one.
        let goes_on = self.contest.as_ref().is_some_and(Contest::goes_on);
        let to_be_had = if goes_on { taken } else { 0 };
        if standing + asked + self.pending() + to_be_had < needed {
            self.refusal(needed)
        } else if to_ask.is_empty() {
            Step::Wait
        } else {
            Step::Seal(fence, to_ask)
        }
    }

    /// The members that are to be asked to seal the fence, and were not yet.
    fn not_sealed_yet(&mut self, fence: Fence) -> Vec<usize> {
        let mut to_ask = Vec::new();
        for (place, member) in self.members.iter_mut().enumerate() {
            let Some(answer) = member.granted() else {
                continue;
            };
            if !member.counts || member.seal != SealState::NotAsked {
                continue;
            }
            // A member that answered exactly the fence has sealed it without being asked.
            member.seal = match answer.cmp(&fence) {
                Ordering::Equal => SealState::Stands,
                Ordering::Greater if self.contest.is_some() => SealState::Taken,
                _ => SealState::Asked,
            };
            if member.seal == SealState::Asked {
                to_ask.push(place);
            }
        }
        to_ask
    }

    fn counted(&self) -> impl Iterator<Item = &Standing> {
        self.members.iter().filter(|member| member.counts)
    }

    fn pending(&self) -> usize {
        let unheard = |member: &&Standing| member.vote.is_none();
        self.members.iter().filter(unheard).count()
    }

    /// The claim cannot be granted any more; why is not known before either so many members have
    /// answered that it is busy, or so many have failed that nobody knows.
    fn refusal(&self, needed: usize) -> Step {
        let members = self.members.len();
        let failed = |member: &&Standing| match member.vote {
            Some(Vote::Failed) => true,
            Some(Vote::Granted(_)) => !member.counts || member.seal == SealState::Failed,
            Some(Vote::Busy) | None => false,
        };
        let failed = self.members.iter().filter(failed).count();
        if members - failed < needed {
            Step::NoQuorum
        } else if members - failed - self.pending() >= needed {
            Step::Busy
        } else {
            Step::Wait
        }
    }
}

impl Standing {
    fn granted(&self) -> Option<Fence> {
        match self.vote {
            Some(Vote::Granted(fence)) => Some(fence),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests;

#[cfg(test)]
mod contest_tests;
