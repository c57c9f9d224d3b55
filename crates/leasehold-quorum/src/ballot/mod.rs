//! Decides which owner won one attempt, and which fence it gets, from the members' votes alone.
//!
//! This is Redlock (Redis documentation, "Distributed Locks with Redis", the Redlock algorithm) with
//! fences. If a majority answers with the same number, one round gives the fence. Otherwise a second round,
//! `confirm`, does. Both rounds ask for a majority, so any two of them share a member. That member remembers
//! the older fence, and the newer one is greater. Leases that are held together may be granted at one
//! moment; they use a [`FenceRace`] for the fence.

mod fence_race;

use std::cmp::Ordering;

use fence_race::FenceRace;
use leasehold_types::{Fence, FenceConfirmation};
use typed_index_collections::ti_vec;

use crate::member::index::{MemberIndex, PerMember};

/// One member's vote on the attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Vote {
    /// The owner has the lease there, and the member's counter is at this fence.
    Granted(Fence),
    /// Another owner holds the key there.
    Busy,
    /// No answer, or one that does not count.
    Failed,
}

/// What follows from the votes so far.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Decision {
    /// More votes are needed.
    Wait,
    /// These members must be asked to confirm the fence.
    Confirm(Fence, Vec<MemberIndex>),
    /// The lease is granted.
    Won(Fence),
    /// A majority of members answered, but too few granted the lease.
    Busy,
    /// Too few members answered.
    NoQuorum,
}

/// The votes of one attempt.
#[derive(Debug)]
pub(crate) struct Ballot {
    members: PerMember<MemberAnswer>,
    /// Fixed once a majority has granted the lease: the greatest fence among that majority, or a new one if
    /// another owner already had that fence.
    fence: Option<Fence>,
    /// `None` for a lease that is held alone.
    fence_race: Option<FenceRace>,
}

/// The state of one member.
#[derive(Clone, Copy, Debug)]
struct MemberAnswer {
    vote: Option<Vote>,
    confirmation: Confirmation,
    /// Whether its grant counted at the last decision.
    counts: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Confirmation {
    NotAsked,
    Asked,
    /// The member's counter is at least the fence while the owner has the lease there. In a race, only this
    /// owner raised it to the fence.
    Confirmed,
    /// Another owner had already raised the counter that far.
    Conflict,
    Failed,
}

/// Returns the smallest number that is more than half of `members`.
pub(crate) fn majority(members: usize) -> usize {
    members / 2 + 1
}

impl Ballot {
    /// Returns the ballot of a lease that is held alone: no other is granted before it ends.
    pub(crate) fn new(members: usize) -> Self {
        let silent = MemberAnswer {
            vote: None,
            confirmation: Confirmation::NotAsked,
            counts: false,
        };
        Self {
            members: ti_vec![silent; members],
            fence: None,
            fence_race: None,
        }
    }

    /// Returns the ballot of a lease that is granted together with others. Each draws its own tie breaker.
    pub(crate) fn held_together(members: usize, tie_breaker: u64) -> Self {
        Self {
            fence_race: Some(FenceRace::new(tie_breaker)),
            ..Self::new(members)
        }
    }

    /// Takes in one member's vote. Later votes of the same member have no effect.
    pub(crate) fn vote(&mut self, member: MemberIndex, vote: Vote) {
        let known = &mut self.members[member].vote;
        if known.is_some() {
            return;
        }
        *known = Some(vote);
        if let (Some(race), Vote::Granted(fence)) = (&mut self.fence_race, vote) {
            race.observe(fence);
        }
    }

    /// Takes in a member's answer to the request to confirm this fence. `None` means that no answer counts. A
    /// member that failed once is not asked again.
    pub(crate) fn confirm(
        &mut self,
        member: MemberIndex,
        fence: Fence,
        answer: Option<FenceConfirmation>,
    ) {
        let state = match answer {
            Some(FenceConfirmation::Confirmed) => Confirmation::Confirmed,
            Some(FenceConfirmation::Conflict(counter)) => {
                if let Some(race) = &mut self.fence_race {
                    race.observe(counter);
                }
                Confirmation::Conflict
            }
            Some(FenceConfirmation::NotHeld) | None => Confirmation::Failed,
        };
        if state == Confirmation::Failed || self.fence == Some(fence) {
            self.members[member].confirmation = state;
        }
    }

    /// Returns whether the members that did not vote yet could still be a majority, so that the next
    /// [`Ballot::decide`] is to wait, whichever grants count.
    pub(crate) fn is_open(&self) -> bool {
        self.fence.is_none() && self.pending() >= majority(self.members.len())
    }

    /// Returns what follows from the votes. Only grants for which `counts` returns true count. That is
    /// evaluated anew each time, since one answer may cast doubt on another.
    pub(crate) fn decide(&mut self, counts: impl Fn(MemberIndex) -> bool) -> Decision {
        let needed = majority(self.members.len());
        for (member, answer) in self.members.iter_mut_enumerated() {
            answer.counts = answer.granted().is_some() && counts(member);
        }
        let grants = self.counted().count();
        if self.fence.is_none() && grants >= needed {
            self.fence = self.counted().filter_map(MemberAnswer::granted).max();
        }
        match self.fence {
            Some(fence) => self.second_round(fence, needed),
            None if grants + self.pending() >= needed => Decision::Wait,
            None => self.refusal(needed),
        }
    }

    fn second_round(&mut self, fence: Fence, needed: usize) -> Decision {
        let to_ask = self.mark_asked(fence);
        let count = |state| {
            let counted = self.counted();
            counted
                .filter(|member| member.confirmation == state)
                .count()
        };
        let (confirmed, asked) = (count(Confirmation::Confirmed), count(Confirmation::Asked));
        let conflicts = count(Confirmation::Conflict);
        if confirmed >= needed {
            return Decision::Won(fence);
        }
        // Enough members answered, so there is no need to wait for the others.
        if confirmed + conflicts >= needed
            && let Some(next) = self.fence_race.as_mut().and_then(FenceRace::next)
        {
            self.fence = Some(next);
            let answered = |member: &&mut MemberAnswer| member.confirmation != Confirmation::Failed;
            let again = self.members.iter_mut().filter(answered);
            again.for_each(|member| member.confirmation = Confirmation::NotAsked);
            return self.second_round(next, needed);
        }
        // If another round is possible, the members without an answer decide whether there is one.
        let may_repeat = self.fence_race.as_ref().is_some_and(FenceRace::may_repeat);
        let reachable = if may_repeat { conflicts } else { 0 };
        if confirmed + asked + self.pending() + reachable < needed {
            self.refusal(needed)
        } else if to_ask.is_empty() {
            Decision::Wait
        } else {
            Decision::Confirm(fence, to_ask)
        }
    }

    /// Marks the members that have to be asked to confirm the fence, and those that need not, and returns the
    /// former.
    fn mark_asked(&mut self, fence: Fence) -> Vec<MemberIndex> {
        let mut to_ask = Vec::new();
        for (number, member) in self.members.iter_mut_enumerated() {
            let Some(answer) = member.granted() else {
                continue;
            };
            if !member.counts || member.confirmation != Confirmation::NotAsked {
                continue;
            }
            // A member that answered exactly the fence has confirmed it without being asked.
            member.confirmation = match answer.cmp(&fence) {
                Ordering::Equal => Confirmation::Confirmed,
                Ordering::Greater if self.fence_race.is_some() => Confirmation::Conflict,
                _ => Confirmation::Asked,
            };
            if member.confirmation == Confirmation::Asked {
                to_ask.push(number);
            }
        }
        to_ask
    }

    fn counted(&self) -> impl Iterator<Item = &MemberAnswer> {
        self.members.iter().filter(|member| member.counts)
    }

    fn pending(&self) -> usize {
        let silent = |member: &&MemberAnswer| member.vote.is_none();
        self.members.iter().filter(silent).count()
    }

    /// The lease can no longer be granted. The reason is known only once enough members answered that it is
    /// busy, or too many failed for the others to be a majority.
    fn refusal(&self, needed: usize) -> Decision {
        let members = self.members.len();
        let failed = |member: &&MemberAnswer| match member.vote {
            Some(Vote::Failed) => true,
            Some(Vote::Granted(_)) => !member.counts || member.confirmation == Confirmation::Failed,
            Some(Vote::Busy) | None => false,
        };
        let failed = self.members.iter().filter(failed).count();
        if members - failed < needed {
            Decision::NoQuorum
        } else if members - failed - self.pending() >= needed {
            Decision::Busy
        } else {
            Decision::Wait
        }
    }
}

impl MemberAnswer {
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
mod fence_race_tests;
