//! What members do with requests, and what happens to members.

use crate::quorum::Quorum;
use crate::rules::Rule;
use crate::state::{Acquire, LEASE, Lease, Member, Phase, Promise, Renewal, State};
use crate::step::Step;

impl Quorum {
    /// The requests of an attempt that may reach a member now.
    pub(crate) fn request_steps(&self, state: &State, a: usize, steps: &mut Vec<Step>) {
        for (m, member) in state.members.iter().enumerate() {
            let talk = &member.talks[a];
            if !matches!(
                talk.acquire,
                Acquire::Gone | Acquire::Granted(_) | Acquire::Confirmed
            ) {
                steps.push(Step::Acquire(a, m));
            }
            if talk.renewal == Renewal::Sent {
                steps.push(Step::Extend(a, m));
            }
            if talk.repair > 0 {
                steps.push(Step::Repair(a, m));
            }
        }
    }

    /// What may happen to members.
    pub(crate) fn member_steps(&self, state: &State, steps: &mut Vec<Step>) {
        let has_ended = state.attempts.iter().any(|it| it.phase == Phase::Ended);
        let is_unchecked = has_ended && !self.has(Rule::ReleaseOfHolder);
        for (m, member) in state.members.iter().enumerate() {
            if member
                .lease
                .is_some_and(|it| is_unchecked || self.may_end(state, it))
            {
                steps.push(Step::Free(m));
            }
            if state.mishaps > 0 {
                steps.extend([Step::Restart(m), Step::Jump(m)]);
            }
        }
    }

    /// A member takes what an attempt sent: the acquire, the draw of a fence, or the confirmation.
    pub(crate) fn acquire(&self, state: &mut State, a: usize, m: usize) {
        match state.members[m].talks[a].acquire {
            Acquire::Sent(proposal) => {
                // `SET … NX`. The owner's own lease is a grant, too.
                let lease = lease_of(state, a);
                let member = &mut state.members[m];
                member.lease.get_or_insert(lease);
                let is_granted = self.holds(member, a);
                let step = if is_granted {
                    Acquire::Taken
                } else {
                    Acquire::Busy
                };
                member.talks[a].acquire = step(proposal);
                if !self.bounds.split {
                    self.acquire(state, a, m);
                }
            }
            Acquire::Taken(proposal) => self.draw(state, a, m, proposal, true),
            Acquire::Busy(proposal) => self.draw(state, a, m, proposal, false),
            Acquire::Confirming(fence) => self.confirm(state, a, m, fence),
            _ => {}
        }
    }

    fn draw(&self, state: &mut State, a: usize, m: usize, proposal: u8, is_granted: bool) {
        let (attempt, member) = (state.attempts[a], &mut state.members[m]);
        let least = if self.has(Rule::Proposal) {
            proposal
        } else {
            0
        };
        member.counter = least.max(member.counter + 1);
        let mut answer = member.counter;
        if !self.has_vote(member, a, Rule::VoteOnGrant) {
            answer = 0;
        }
        let counts = answer > 0 || !self.has(Rule::VoteOnConfirmation);
        member.talks[a].acquire = match attempt.phase {
            _ if !is_granted || !counts => Acquire::Gone,
            Phase::Asking => Acquire::Granted(answer),
            Phase::Confirming if answer == attempt.fence => Acquire::Confirmed,
            Phase::Confirming => Acquire::Confirming(attempt.fence),
            _ => Acquire::Gone,
        };
    }

    /// If the lease holds here, the counter is at least the fence from now on.
    fn confirm(&self, state: &mut State, a: usize, m: usize, fence: u8) {
        let member = &mut state.members[m];
        let is_confirmed = self.holds(member, a) || !self.has(Rule::ConfirmationOfHolder);
        if is_confirmed {
            member.counter = member.counter.max(fence);
        }
        let counts = is_confirmed && self.has_vote(member, a, Rule::VoteOnConfirmation);
        let is_heard = state.attempts[a].phase == Phase::Confirming;
        let next = if counts && is_heard {
            Acquire::Confirmed
        } else {
            Acquire::Gone
        };
        member.talks[a].acquire = next;
    }

    pub(crate) fn extend(&self, state: &mut State, a: usize, m: usize) {
        let fence = state.attempts[a].fence;
        let member = &mut state.members[m];
        let (counts, renewal) = if member.lease.is_none() {
            let counts = self.has_vote(member, a, Rule::VoteOnRepair);
            let counts_later = self.has(Rule::RepairCountsLater);
            if !counts_later {
                state.put_back(a, m, fence);
            }
            (
                counts,
                if counts_later {
                    Renewal::Free
                } else {
                    Renewal::Renewed
                },
            )
        } else if self.holds(member, a) {
            member.lease = member.lease.map(|lease| Lease { age: 0, ..lease });
            (
                self.has_vote(member, a, Rule::VoteOnRenewal),
                Renewal::Renewed,
            )
        } else {
            (false, Renewal::Gone)
        };
        state.members[m].talks[a].renewal = if counts { renewal } else { Renewal::Gone };
    }

    /// Whether the answer of a member counts, or the rule that asks for its vote is left out.
    fn has_vote(&self, member: &Member, a: usize, rule: Rule) -> bool {
        let is_trusted = match self.has(Rule::SentAfterWait) {
            true => !member.talks[a].barred,
            false => member.out.is_none(),
        };
        is_trusted || !self.has(rule)
    }

    pub(crate) fn free(&self, state: &mut State, m: usize) {
        let lease = state.members[m].lease.take();
        if lease.is_some_and(|lease| !self.may_end(state, lease)) {
            state.broken = Some(Promise::OwnRelease);
        }
    }

    /// A lease may end once it expired, or at any time after its owner's attempt ended: a release is on its way.
    fn may_end(&self, state: &State, lease: Lease) -> bool {
        let is_ended = |a: usize| state.attempts[a].phase == Phase::Ended;
        let mut attempts = 0..self.bounds.attempts;
        lease.age >= LEASE || attempts.any(|a| self.same_owner(a, lease.attempt) && is_ended(a))
    }

    pub(crate) fn restart(&self, state: &mut State, m: usize) {
        state.members[m].counter = 0;
        for talk in &mut state.members[m].talks {
            let is_between = matches!(talk.acquire, Acquire::Taken(_) | Acquire::Busy(_));
            if is_between && self.has(Rule::OneIncarnation) {
                talk.acquire = Acquire::Gone;
            }
        }
        self.lose(state, m, true);
    }

    pub(crate) fn jump(&self, state: &mut State, m: usize) {
        self.lose(state, m, self.has(Rule::SteppedClock));
    }

    /// A member loses its lease. If clients notice, it has no vote on anything sent until its wait is over.
    fn lose(&self, state: &mut State, m: usize, is_noticed: bool) {
        state.mishaps -= 1;
        let member = &mut state.members[m];
        member.lease = None;
        if !is_noticed {
            return;
        }
        member.out = Some(0);
        for (talk, attempt) in member.talks.iter_mut().zip(&state.attempts) {
            let is_between = matches!(talk.acquire, Acquire::Taken(_));
            let keeps = is_between && !self.has(Rule::OneIncarnation);
            talk.barred |= attempt.is_pending() && !keeps || attempt.round.is_some();
        }
    }
}

/// A new lease, which may end at once if the attempt has.
fn lease_of(state: &State, attempt: usize) -> Lease {
    let is_ended = state.attempts[attempt].phase == Phase::Ended;
    let age = if is_ended { LEASE } else { 0 };
    Lease { attempt, age }
}

impl State {
    pub(crate) fn repair(&mut self, a: usize, m: usize) {
        let fence = std::mem::take(&mut self.members[m].talks[a].repair);
        self.put_back(a, m, fence);
    }

    /// Puts the lease back if the key is free, and raises the counter to the fence.
    fn put_back(&mut self, a: usize, m: usize, fence: u8) {
        let lease = lease_of(self, a);
        let member = &mut self.members[m];
        if member.lease.is_none() {
            member.lease = Some(lease);
            member.counter = member.counter.max(fence);
        }
    }
}
