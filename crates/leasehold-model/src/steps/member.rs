//! What members do with requests.

use super::{Found, Model, Step, Word};
use crate::rules::{Floor, Healing};
use crate::state::{Acquire, Heal, Lease, Member, Phase, Renewal, Seal, Standing, World};

impl Model {
    pub(super) fn member_steps<const N: usize>(
        &self,
        world: &World<N>,
        emit: &mut impl FnMut(Step, World<N>),
    ) {
        for m in 0..N {
            for a in 0..usize::from(self.bounds.attempts) {
                if world.attempts[a].phase == Phase::Unsent {
                    break;
                }
                self.requests(world, a, m, emit);
                self.free(world, a, m, emit);
                self.repeat(world, a, m, emit);
            }
            self.mishaps(world, m, emit);
        }
    }

    /// Emits a step for every request of the attempt that may reach the member now.
    fn requests<const N: usize>(
        &self,
        world: &World<N>,
        a: usize,
        m: usize,
        emit: &mut impl FnMut(Step, World<N>),
    ) {
        let talk = world.members[m].talks[a];
        match talk.acquire {
            Acquire::Sent => self.take(world, a, m, emit),
            Acquire::Taken | Acquire::Busy => self.count(world, a, m, emit),
            _ => {}
        }
        if talk.seal == Seal::Sent {
            let mut after = *world;
            let fence = world.attempts[a].fence;
            let member = &mut after.members[m];
            let sealed = self.seal(member, a, fence);
            let counts = self.trusted(member, talk.barred) || !self.rules.trust.seal;
            let heard = world.attempts[a].phase == Phase::Sealing;
            member.talks[a].seal = match sealed && counts && heard {
                true => Seal::Stands,
                false => Seal::Gone,
            };
            let (attempt, member) = (a, m);
            emit(
                Step::Seal {
                    attempt,
                    member,
                    sealed,
                },
                after,
            );
        }
        for (round, renewal) in talk.renewals.iter().enumerate() {
            if matches!(renewal, Renewal::Sent | Renewal::SentBarred) {
                self.extend(world, a, m, round, emit);
            }
        }
        if talk.heal == Heal::Sent {
            let mut after = *world;
            let attempt = world.attempts[a];
            let member = &mut after.members[m];
            let done = member.lease.is_none();
            member.put_back(a, attempt.fence);
            member.talks[a].heal = match attempt.is_alive() && done {
                true => Heal::Done,
                false => Heal::Gone,
            };
            let (attempt, member) = (a, m);
            emit(
                Step::PutBack {
                    attempt,
                    member,
                    done,
                },
                after,
            );
        }
    }

    /// `SET … NX`: takes the lease if the key is free. The owner's own lease is a grant, too.
    fn take<const N: usize>(
        &self,
        world: &World<N>,
        a: usize,
        m: usize,
        emit: &mut impl FnMut(Step, World<N>),
    ) {
        let mut after = *world;
        let member = &mut after.members[m];
        let granted = self.set(member, a);
        member.talks[a].acquire = match granted {
            true => Acquire::Taken,
            false => Acquire::Busy,
        };
        if !self.bounds.split {
            return self.count(&after, a, m, emit);
        }
        let (attempt, member) = (a, m);
        emit(
            Step::Take {
                attempt,
                member,
                granted,
            },
            after,
        );
    }

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
            Floor::Seal | Floor::SealOfMissing => member.counter,
        };
        member.counter = from + 1;
        member.counter
    }

    /// The counter step, granted or busy, and the answer.
    fn count<const N: usize>(
        &self,
        world: &World<N>,
        a: usize,
        m: usize,
        emit: &mut impl FnMut(Step, World<N>),
    ) {
        let mut after = *world;
        let attempt = world.attempts[a];
        let member = &mut after.members[m];
        let answer = self.counted(member, attempt.proposal);
        let trusted = self.trusted(member, member.talks[a].barred);
        let back = member.standing == Standing::Back;
        let talk = &mut member.talks[a];
        let word = match talk.acquire {
            Acquire::Busy => Word::Busy,
            _ if !attempt.is_pending() => Word::Late,
            _ if trusted && back => Word::GrantOfBack,
            _ if trusted => Word::Grant,
            _ => Word::Untrusted,
        };
        talk.acquire = match word {
            Word::Grant | Word::GrantOfBack => Acquire::Granted(answer),
            Word::Untrusted if !self.rules.trust.grant => Acquire::Granted(answer),
            Word::Untrusted if !self.rules.trust.seal => Acquire::GrantedOut,
            _ => Acquire::Gone,
        };
        if attempt.phase == Phase::Sealing && talk.acquire != Acquire::Gone {
            talk.seal = match talk.acquire {
                Acquire::Granted(answer) if answer == attempt.fence => Seal::Stands,
                _ => Seal::Sent,
            };
            talk.acquire = Acquire::Gone;
        }
        let (attempt, member) = (a, m);
        emit(
            Step::Count {
                attempt,
                member,
                answer,
                word,
            },
            after,
        );
    }

    /// "If the claim still holds here, counter = max(counter, fence)."
    fn seal(&self, member: &mut Member, a: usize, fence: u8) -> bool {
        let holds = self.holds(member, a);
        let sealed = holds || !self.rules.seal_checks_owner;
        if sealed {
            member.counter = member.counter.max(fence);
        }
        sealed
    }

    fn holds(&self, member: &Member, a: usize) -> bool {
        let lease = member.lease;
        lease.is_some_and(|lease| self.same_owner(usize::from(lease.attempt), a))
    }

    fn extend<const N: usize>(
        &self,
        world: &World<N>,
        a: usize,
        m: usize,
        round: usize,
        emit: &mut impl FnMut(Step, World<N>),
    ) {
        let mut after = *world;
        let attempt = world.attempts[a];
        let member = &mut after.members[m];
        let barred = member.talks[a].renewals[round] == Renewal::SentBarred;
        let trusted = self.trusted(member, barred);
        let found = self.renewed(member, a, attempt.fence);
        let counts = match found {
            Found::Own => trusted || !self.rules.trust.renewal,
            Found::Free => {
                self.rules.healing == Healing::NextRound && (trusted || !self.rules.trust.heal)
            }
            Found::FreeFilled => trusted || !self.rules.trust.heal,
            Found::Other => false,
        };
        let heard = attempt.round_age.is_some() && usize::from(attempt.rounds) == round + 1;
        member.talks[a].renewals[round] = match found {
            _ if !heard || !counts => Renewal::Gone,
            Found::Free => Renewal::Free,
            _ => Renewal::Stood,
        };
        let (attempt, member) = (a, m);
        emit(
            Step::Extend {
                attempt,
                member,
                found,
                counts,
            },
            after,
        );
    }

    fn renewed(&self, member: &mut Member, a: usize, fence: u8) -> Found {
        if self.holds(member, a) {
            if let Some(lease) = &mut member.lease {
                lease.age = 0;
            }
            Found::Own
        } else if member.lease.is_some() {
            Found::Other
        } else if self.rules.healing == Healing::SameRound {
            member.put_back(a, fence);
            Found::FreeFilled
        } else {
            Found::Free
        }
    }

    /// Frees the lease of an attempt that ended, whenever the message arrives.
    fn free<const N: usize>(
        &self,
        world: &World<N>,
        a: usize,
        m: usize,
        emit: &mut impl FnMut(Step, World<N>),
    ) {
        let member = &world.members[m];
        let frees = self.holds(member, a) || !self.rules.release_checks_owner;
        if world.attempts[a].phase == Phase::Ended && member.lease.is_some() && frees {
            let mut after = *world;
            after.members[m].lease = None;
            let (attempt, member) = (a, m);
            emit(Step::Free { attempt, member }, after);
        }
    }

    /// Executes a request again that was already executed; the first answer stays.
    fn repeat<const N: usize>(
        &self,
        world: &World<N>,
        a: usize,
        m: usize,
        emit: &mut impl FnMut(Step, World<N>),
    ) {
        let talk = world.members[m].talks[a];
        if world.left.repeats == 0 || !talk.listed {
            return;
        }
        let mut again = |execute: &dyn Fn(&mut Member)| {
            let mut after = *world;
            after.left.repeats -= 1;
            execute(&mut after.members[m]);
            let (attempt, member) = (a, m);
            emit(Step::Repeat { attempt, member }, after);
        };
        let attempt = world.attempts[a];
        if talk.acquire != Acquire::Sent {
            again(&|member| {
                self.set(member, a);
                self.counted(member, attempt.proposal);
            });
        }
        if talk.seal == Seal::Stands {
            again(&|member| {
                self.seal(member, a, attempt.fence);
            });
        }
        if talk.renewals.contains(&Renewal::Stood) || talk.renewals.contains(&Renewal::Free) {
            again(&|member| {
                self.renewed(member, a, attempt.fence);
            });
        }
        if talk.heal == Heal::Done {
            again(&|member| member.put_back(a, attempt.fence));
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
