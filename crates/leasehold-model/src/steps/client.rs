//! What clients do: start, decide, renew, end.

use super::{Model, Step};
use crate::bounds::Clocks;
use crate::rules::{Floor, Healing};
use crate::state::{Acquire, Heal, Phase, Renewal, Seal, World};

/// How far apart the proposals of two ticks are. Microseconds pass faster than a counter counts, so
/// this is more than a counter can count in one run.
pub(super) const TICK: u8 = 8;
/// What wrong clocks may say: as close together as it takes to mistake one answer for another.
const WRONG: [u8; 3] = [0, 1, 2];

impl Model {
    pub(super) fn client_steps<const N: usize>(
        &self,
        world: &World<N>,
        emit: &mut impl FnMut(Step, World<N>),
    ) {
        self.start(world, emit);
        for a in 0..usize::from(self.bounds.attempts) {
            match world.attempts[a].phase {
                Phase::Unsent => break,
                Phase::Asking => self.choose(world, a, emit),
                Phase::Sealing => self.win_sealed(world, a, emit),
                Phase::Valid => {
                    self.renew(world, a, emit);
                    self.confirm(world, a, emit);
                }
                Phase::Expired => self.confirm(world, a, emit),
                Phase::Ended => continue,
            }
            let mut after = *world;
            after.end(a);
            emit(Step::End { attempt: a }, after);
        }
    }

    /// Sends the next attempt, if its client has no other.
    fn start<const N: usize>(&self, world: &World<N>, emit: &mut impl FnMut(Step, World<N>)) {
        let attempts = &world.attempts[..usize::from(self.bounds.attempts)];
        let Some(a) = attempts.iter().position(|a| a.phase == Phase::Unsent) else {
            return;
        };
        let before = a.checked_sub(usize::from(self.bounds.clients));
        if before.is_some_and(|before| world.attempts[before].is_alive()) {
            return;
        }
        let wall = world.wall + world.since_start;
        let proposals = match self.bounds.clocks {
            Clocks::Right => [Some(wall * TICK), None, None],
            Clocks::Skewed(ahead) => [Some(wall * TICK), Some((wall + ahead) * TICK), None],
            Clocks::Wrong => WRONG.map(Some),
        };
        for proposal in proposals.into_iter().flatten() {
            let mut after = *world;
            (after.wall, after.since_start) = (wall, 0);
            after.attempts[a].phase = Phase::Asking;
            after.attempts[a].proposal = proposal;
            for member in &mut after.members {
                let out = member.is_out();
                let talk = &mut member.talks[a];
                if talk.listed {
                    talk.acquire = Acquire::Sent;
                    talk.barred = out;
                }
            }
            let attempt = a;
            emit(Step::Start { attempt, proposal }, after);
        }
    }

    /// The lowest counter in which a run may begin. With right clocks, it is that of the first
    /// proposal: a lower counter is indistinguishable from none.
    pub(super) fn lowest_counter(&self) -> u8 {
        let counts = self.rules.floor == Floor::EveryStep && self.bounds.spread > 0;
        match self.bounds.clocks {
            Clocks::Right | Clocks::Skewed(_) if counts => TICK,
            _ => 0,
        }
    }

    /// A majority granted, and its greatest answer is the fence. Any majority may answer first.
    fn choose<const N: usize>(
        &self,
        world: &World<N>,
        a: usize,
        emit: &mut impl FnMut(Step, World<N>),
    ) {
        let majority = self.bounds.sets.majority(self.client(a));
        let mut answers = [0; N];
        let mut count = 0;
        for member in &world.members {
            if let Acquire::Granted(answer) = member.talks[a].acquire {
                answers[count] = answer;
                count += 1;
            }
        }
        let answers = &mut answers[..count];
        answers.sort_unstable();
        for heard in majority..=count {
            let greatest = answers[heard - 1];
            if answers.get(heard) != Some(&greatest) {
                self.elect(world, a, greatest, emit);
            }
        }
    }

    /// Makes `greatest` the fence, which needs no seal if a majority answered it.
    fn elect<const N: usize>(
        &self,
        world: &World<N>,
        a: usize,
        greatest: u8,
        emit: &mut impl FnMut(Step, World<N>),
    ) {
        let fence = self.lifted(world, a, greatest);
        let mut after = *world;
        after.attempts[a].fence = fence;
        for member in &mut after.members {
            let talk = &mut member.talks[a];
            talk.seal = match talk.acquire {
                Acquire::Granted(answer) if answer == fence => Seal::Stands,
                Acquire::Granted(_) | Acquire::GrantedOut => Seal::Sent,
                _ if !self.rules.seal_where_granted && talk.listed => {
                    talk.seal = Seal::Sent;
                    continue;
                }
                _ => continue,
            };
            talk.acquire = Acquire::Gone;
        }
        let stands = after.seals(a) >= self.bounds.sets.majority(self.client(a));
        if stands || !self.rules.seal {
            let rounds = 1;
            self.win(after, a, rounds, emit);
        } else {
            after.attempts[a].phase = Phase::Sealing;
            emit(Step::Choose { attempt: a, fence }, after);
        }
    }

    /// If only a seal lifts counters to the wall clock, it lifts the fence with them.
    fn lifted<const N: usize>(&self, world: &World<N>, a: usize, greatest: u8) -> u8 {
        let granted = |wanted: &dyn Fn(u8) -> bool| {
            let talks = world.members.iter().map(|member| member.talks[a].acquire);
            talks
                .filter(|acquire| matches!(acquire, Acquire::Granted(answer) if wanted(*answer)))
                .count()
        };
        let lifts = match self.rules.floor {
            Floor::EveryStep => false,
            Floor::Seal => {
                granted(&|answer| answer == greatest) < self.bounds.sets.majority(self.client(a))
            }
            Floor::SealOfMissing => granted(&|answer| answer == 1) > 0,
        };
        match lifts {
            true => greatest.max(world.attempts[a].proposal),
            false => greatest,
        }
    }

    fn win_sealed<const N: usize>(
        &self,
        world: &World<N>,
        a: usize,
        emit: &mut impl FnMut(Step, World<N>),
    ) {
        if world.seals(a) >= self.bounds.sets.majority(self.client(a)) {
            let rounds = 2;
            self.win(*world, a, rounds, emit);
        }
    }

    fn win<const N: usize>(
        &self,
        mut after: World<N>,
        a: usize,
        rounds: u8,
        emit: &mut impl FnMut(Step, World<N>),
    ) {
        let fence = after.attempts[a].fence;
        after.attempts[a].phase = Phase::Valid;
        after.greatest = after.greatest.max(fence);
        after.deaf(a);
        let attempt = a;
        emit(
            Step::Win {
                attempt,
                fence,
                rounds,
            },
            after,
        );
    }

    /// Sends a round of renewal, and ends the wait for the answers of the round before.
    fn renew<const N: usize>(
        &self,
        world: &World<N>,
        a: usize,
        emit: &mut impl FnMut(Step, World<N>),
    ) {
        let round = world.attempts[a].rounds;
        if round == self.bounds.renewals {
            return;
        }
        let mut after = *world;
        after.close_round(a);
        after.attempts[a].rounds = round + 1;
        after.attempts[a].round_age = Some(0);
        for member in &mut after.members {
            let out = member.is_out();
            let talk = &mut member.talks[a];
            if talk.listed {
                talk.renewals[usize::from(round)] = match out {
                    true => Renewal::SentBarred,
                    false => Renewal::Sent,
                };
            }
        }
        emit(Step::Renew { attempt: a }, after);
    }

    /// A majority still held the lease. Validity counts from the sending of the round, and the client
    /// puts the lease back where it was found free.
    fn confirm<const N: usize>(
        &self,
        world: &World<N>,
        a: usize,
        emit: &mut impl FnMut(Step, World<N>),
    ) {
        let Some(age) = world.attempts[a].round_age else {
            return;
        };
        let round = usize::from(world.attempts[a].rounds - 1);
        let stood = |put_back: bool| {
            let talks = world.members.iter().map(|member| &member.talks[a]);
            talks
                .filter(|talk| talk.renewals[round] == Renewal::Stood)
                .filter(|talk| put_back || talk.heal != Heal::Done)
                .count()
        };
        let majority = self.bounds.sets.majority(self.client(a));
        if stood(true) < majority {
            return;
        }
        let mut after = *world;
        for member in &mut after.members {
            let talk = &mut member.talks[a];
            if talk.renewals[round] == Renewal::Free && self.rules.healing == Healing::NextRound {
                talk.heal = Heal::Sent;
            }
        }
        after.close_round(a);
        let attempt = &mut after.attempts[a];
        attempt.age = match (self.rules.deadline_from_sending, attempt.phase) {
            (false, _) => 0,
            (true, Phase::Valid) => attempt.age.min(age),
            (true, _) => age,
        };
        attempt.phase = Phase::Valid;
        let healed = stood(false) < majority;
        emit(Step::Confirm { attempt: a, healed }, after);
    }
}

impl<const N: usize> World<N> {
    /// Counts the members that have the fence of the attempt.
    fn seals(&self, a: usize) -> usize {
        let talks = self.members.iter().map(|member| member.talks[a].seal);
        talks.filter(|seal| *seal == Seal::Stands).count()
    }

    /// Ends the attempt: no answer counts from now on, but its messages may still arrive.
    pub(super) fn end(&mut self, a: usize) {
        self.deaf(a);
        self.close_round(a);
        self.attempts[a].phase = Phase::Ended;
        self.attempts[a].age = 0;
        self.attempts[a].rounds = 0;
        for member in &mut self.members {
            let talk = &mut member.talks[a];
            if talk.heal == Heal::Done {
                talk.heal = Heal::Gone;
            }
        }
    }

    /// Ignores answers to acquire and seal from now on.
    fn deaf(&mut self, a: usize) {
        for member in &mut self.members {
            let talk = &mut member.talks[a];
            talk.barred = false;
            if matches!(talk.acquire, Acquire::Granted(_) | Acquire::GrantedOut) {
                talk.acquire = Acquire::Gone;
            }
            if talk.seal == Seal::Stands {
                talk.seal = Seal::Gone;
            }
        }
    }

    /// Ignores answers to the round of renewal from now on.
    pub(super) fn close_round(&mut self, a: usize) {
        self.attempts[a].round_age = None;
        for member in &mut self.members {
            for renewal in &mut member.talks[a].renewals {
                *renewal = match *renewal {
                    Renewal::Sent | Renewal::SentBarred => Renewal::Sent,
                    _ => Renewal::Gone,
                };
            }
        }
    }
}
