//! What members do with requests.

use super::{AcquireReply, FoundKey, Model, Step, Steps};
use crate::rules::{Floor, Repairing};
use crate::state::{
    Acquire, Confirmation, Lease, Member, MemberTrust, ModelState, Phase, Renewal, Repair,
};

impl<const N: usize> Steps<'_, N> {
    pub(super) fn member_steps(&mut self) {
        let (model, state) = (self.model, self.state);
        for m in 0..N {
            for a in 0..usize::from(model.bounds.attempts) {
                if state.attempts[a].phase == Phase::Unsent {
                    break;
                }
                self.requests(a, m);
                self.free(a, m);
                self.repeat(a, m);
            }
            self.mishaps(m);
        }
    }

    /// Emits a step for every request of the attempt that may reach the member now.
    fn requests(&mut self, a: usize, m: usize) {
        let (model, state) = (self.model, self.state);
        let talk = state.members[m].talks[a];
        match talk.acquire {
            Acquire::Sent => self.take(a, m),
            Acquire::Taken | Acquire::Busy => self.count(state, a, m),
            _ => {}
        }
        if talk.confirmation == Confirmation::Sent {
            let mut after = *state;
            let fence = state.attempts[a].fence;
            let member = &mut after.members[m];
            let confirmed = model.confirm_fence(member, a, fence);
            let counts = model.trusted(member, talk.barred) || !model.rules.trust.confirmation;
            let heard = state.attempts[a].phase == Phase::Confirming;
            member.talks[a].confirmation = match confirmed && counts && heard {
                true => Confirmation::Counted,
                false => Confirmation::Gone,
            };
            let step = Step::ConfirmFence {
                attempt: a,
                member: m,
                confirmed,
            };
            self.emit(step, after);
        }
        for (round, renewal) in talk.renewals.iter().enumerate() {
            if matches!(renewal, Renewal::Sent | Renewal::SentBarred) {
                self.extend(a, m, round);
            }
        }
        if talk.repair == Repair::Sent {
            let mut after = *state;
            let attempt = state.attempts[a];
            let member = &mut after.members[m];
            let done = member.lease.is_none();
            member.put_back(a, attempt.fence);
            member.talks[a].repair = match attempt.is_alive() && done {
                true => Repair::Done,
                false => Repair::Gone,
            };
            let step = Step::PutBack {
                attempt: a,
                member: m,
                done,
            };
            self.emit(step, after);
        }
    }

    /// `SET … NX`: takes the lease if the key is free. The owner's own lease is a grant, too.
    fn take(&mut self, a: usize, m: usize) {
        let (model, state) = (self.model, self.state);
        let mut after = *state;
        let member = &mut after.members[m];
        let granted = model.set(member, a);
        member.talks[a].acquire = match granted {
            true => Acquire::Taken,
            false => Acquire::Busy,
        };
        if !model.bounds.split {
            return self.count(&after, a, m);
        }
        let step = Step::Take {
            attempt: a,
            member: m,
            granted,
        };
        self.emit(step, after);
    }

    /// The counter step, granted or busy, and the answer.
    fn count(&mut self, state: &ModelState<N>, a: usize, m: usize) {
        let model = self.model;
        let mut after = *state;
        let attempt = state.attempts[a];
        let member = &mut after.members[m];
        let answer = model.counted(member, attempt.proposal);
        let trusted = model.trusted(member, member.talks[a].barred);
        let back = member.trust == MemberTrust::Back;
        let talk = &mut member.talks[a];
        let reply = match talk.acquire {
            Acquire::Busy => AcquireReply::Busy,
            _ if !attempt.is_pending() => AcquireReply::Late,
            _ if trusted && back => AcquireReply::GrantOfBack,
            _ if trusted => AcquireReply::Grant,
            _ => AcquireReply::Untrusted,
        };
        talk.acquire = match reply {
            AcquireReply::Grant | AcquireReply::GrantOfBack => Acquire::Granted(answer),
            AcquireReply::Untrusted if !model.rules.trust.grant => Acquire::Granted(answer),
            AcquireReply::Untrusted if !model.rules.trust.confirmation => Acquire::GrantedOut,
            _ => Acquire::Gone,
        };
        if attempt.phase == Phase::Confirming && talk.acquire != Acquire::Gone {
            talk.confirmation = match talk.acquire {
                Acquire::Granted(answer) if answer == attempt.fence => Confirmation::Counted,
                _ => Confirmation::Sent,
            };
            talk.acquire = Acquire::Gone;
        }
        let step = Step::Count {
            attempt: a,
            member: m,
            answer,
            reply,
        };
        self.emit(step, after);
    }

    fn extend(&mut self, a: usize, m: usize, round: usize) {
        let (model, state) = (self.model, self.state);
        let mut after = *state;
        let attempt = state.attempts[a];
        let member = &mut after.members[m];
        let barred = member.talks[a].renewals[round] == Renewal::SentBarred;
        let trusted = model.trusted(member, barred);
        let found = model.renewed(member, a, attempt.fence);
        let counts = match found {
            FoundKey::Own => trusted || !model.rules.trust.renewal,
            FoundKey::Free => {
                model.rules.repairing == Repairing::NextRound
                    && (trusted || !model.rules.trust.repair)
            }
            FoundKey::FreeFilled => trusted || !model.rules.trust.repair,
            FoundKey::Other => false,
        };
        let heard = attempt.round_age.is_some() && usize::from(attempt.rounds) == round + 1;
        member.talks[a].renewals[round] = match found {
            _ if !heard || !counts => Renewal::Gone,
            FoundKey::Free => Renewal::Free,
            _ => Renewal::Stood,
        };
        let step = Step::Extend {
            attempt: a,
            member: m,
            found,
            counts,
        };
        self.emit(step, after);
    }

    /// Frees the lease of an attempt that ended, whenever the message arrives.
    fn free(&mut self, a: usize, m: usize) {
        let (model, state) = (self.model, self.state);
        let member = &state.members[m];
        let frees = model.holds(member, a) || !model.rules.release_checks_owner;
        if state.attempts[a].phase == Phase::Ended && member.lease.is_some() && frees {
            let mut after = *state;
            after.members[m].lease = None;
            let (attempt, member) = (a, m);
            self.emit(Step::Free { attempt, member }, after);
        }
    }

    /// Executes a request again that was already executed; the first answer stays.
    fn repeat(&mut self, a: usize, m: usize) {
        let (model, state) = (self.model, self.state);
        let talk = state.members[m].talks[a];
        if state.left.repeats == 0 || !talk.listed {
            return;
        }
        let mut again = |execute: &dyn Fn(&mut Member)| {
            let mut after = *state;
            after.left.repeats -= 1;
            execute(&mut after.members[m]);
            let (attempt, member) = (a, m);
            self.emit(Step::Repeat { attempt, member }, after);
        };
        let attempt = state.attempts[a];
        if talk.acquire != Acquire::Sent {
            again(&|member| {
                model.set(member, a);
                model.counted(member, attempt.proposal);
            });
        }
        if talk.confirmation == Confirmation::Counted {
            again(&|member| {
                model.confirm_fence(member, a, attempt.fence);
            });
        }
        if talk.renewals.contains(&Renewal::Stood) || talk.renewals.contains(&Renewal::Free) {
            again(&|member| {
                model.renewed(member, a, attempt.fence);
            });
        }
        if talk.repair == Repair::Done {
            again(&|member| member.put_back(a, attempt.fence));
        }
    }
}

impl Model {
    fn set(&self, member: &mut Member, a: usize) -> bool {
        let lease = *member.lease.get_or_insert(Lease {
            attempt: a as u8,
            age: 0,
        });
        self.same_owner(usize::from(lease.attempt), a)
    }

    fn counted(&self, member: &mut Member, proposal: u8) -> u8 {
        let from = match self.rules.floor {
            Floor::EveryStep => member.counter.max(proposal),
            Floor::Confirmation | Floor::ConfirmationOfMissing => member.counter,
        };
        member.counter = from + 1;
        member.counter
    }

    /// "If the claim still holds here, counter = max(counter, fence)."
    fn confirm_fence(&self, member: &mut Member, a: usize, fence: u8) -> bool {
        let holds = self.holds(member, a);
        let confirmed = holds || !self.rules.confirmation_checks_owner;
        if confirmed {
            member.counter = member.counter.max(fence);
        }
        confirmed
    }

    fn holds(&self, member: &Member, a: usize) -> bool {
        let lease = member.lease;
        lease.is_some_and(|lease| self.same_owner(usize::from(lease.attempt), a))
    }

    fn renewed(&self, member: &mut Member, a: usize, fence: u8) -> FoundKey {
        if self.holds(member, a) {
            if let Some(lease) = &mut member.lease {
                lease.age = 0;
            }
            FoundKey::Own
        } else if member.lease.is_some() {
            FoundKey::Other
        } else if self.rules.repairing == Repairing::SameRound {
            member.put_back(a, fence);
            FoundKey::FreeFilled
        } else {
            FoundKey::Free
        }
    }
}

impl Member {
    /// Puts the lease back if the key is free, and raises the counter to the fence.
    fn put_back(&mut self, a: usize, fence: u8) {
        if self.lease.is_none() {
            self.lease = Some(Lease {
                attempt: a as u8,
                age: 0,
            });
            self.counter = self.counter.max(fence);
        }
    }
}
