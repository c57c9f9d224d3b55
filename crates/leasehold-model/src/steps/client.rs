//! What clients do: start, decide, renew, end.

use super::{Model, Step, Steps};
use crate::bounds::Clocks;
use crate::rules::{Floor, Repairing};
use crate::state::{Acquire, Confirmation, ModelState, Phase, Renewal, Repair};

/// How far apart the proposals of two ticks are. Microseconds pass faster than a counter counts, so
/// this is more than a counter can count in one run.
pub(super) const TICK: u8 = 8;
/// What wrong clocks may say: as close together as it takes to mistake one answer for another.
const WRONG: [u8; 3] = [0, 1, 2];

impl<const N: usize> Steps<'_, N> {
    pub(super) fn client_steps(&mut self) {
        let (model, state) = (self.model, self.state);
        self.start();
        for a in 0..usize::from(model.bounds.attempts) {
            match state.attempts[a].phase {
                Phase::Unsent => break,
                Phase::Asking => self.choose(a),
                Phase::Confirming => self.win_confirmed(a),
                Phase::Valid => {
                    self.renew(a);
                    self.confirm(a);
                }
                Phase::Expired => self.confirm(a),
                Phase::Ended => continue,
            }
            let mut after = *state;
            after.end(a);
            self.emit(Step::End { attempt: a }, after);
        }
    }

    /// Sends the next attempt, if its client has no other.
    fn start(&mut self) {
        let (model, state) = (self.model, self.state);
        let attempts = &state.attempts[..usize::from(model.bounds.attempts)];
        let Some(a) = attempts.iter().position(|a| a.phase == Phase::Unsent) else {
            return;
        };
        let before = a.checked_sub(usize::from(model.bounds.clients));
        if before.is_some_and(|before| state.attempts[before].is_alive()) {
            return;
        }
        let wall = state.wall + state.since_start;
        let proposals = match model.bounds.clocks {
            Clocks::Right => [Some(wall * TICK), None, None],
            Clocks::Skewed(ahead) => [Some(wall * TICK), Some((wall + ahead) * TICK), None],
            Clocks::Wrong => WRONG.map(Some),
        };
        for proposal in proposals.into_iter().flatten() {
            let mut after = *state;
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
            self.emit(Step::Start { attempt, proposal }, after);
        }
    }

    /// A majority granted, and its greatest answer is the fence. Any majority may answer first.
    fn choose(&mut self, a: usize) {
        let (model, state) = (self.model, self.state);
        let majority = model.bounds.sets.majority(model.client(a));
        let mut answers = [0; N];
        let mut count = 0;
        for member in &state.members {
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
                self.elect(a, greatest);
            }
        }
    }

    /// Makes `greatest` the fence, which needs no confirmation if a majority answered it.
    fn elect(&mut self, a: usize, greatest: u8) {
        let (model, state) = (self.model, self.state);
        let fence = model.lifted(state, a, greatest);
        let mut after = *state;
        after.attempts[a].fence = fence;
        for member in &mut after.members {
            let talk = &mut member.talks[a];
            talk.confirmation = match talk.acquire {
                Acquire::Granted(answer) if answer == fence => Confirmation::Counted,
                Acquire::Granted(_) | Acquire::GrantedOut => Confirmation::Sent,
                _ if !model.rules.confirm_where_granted && talk.listed => {
                    talk.confirmation = Confirmation::Sent;
                    continue;
                }
                _ => continue,
            };
            talk.acquire = Acquire::Gone;
        }
        let stands = after.confirmations(a) >= model.bounds.sets.majority(model.client(a));
        if stands || !model.rules.confirmation {
            let rounds = 1;
            self.win(after, a, rounds);
        } else {
            after.attempts[a].phase = Phase::Confirming;
            self.emit(Step::Choose { attempt: a, fence }, after);
        }
    }

    fn win_confirmed(&mut self, a: usize) {
        let (model, state) = (self.model, self.state);
        if state.confirmations(a) >= model.bounds.sets.majority(model.client(a)) {
            let rounds = 2;
            self.win(*state, a, rounds);
        }
    }

    fn win(&mut self, mut after: ModelState<N>, a: usize, rounds: u8) {
        let fence = after.attempts[a].fence;
        after.attempts[a].phase = Phase::Valid;
        after.greatest = after.greatest.max(fence);
        after.deaf(a);
        let step = Step::Win {
            attempt: a,
            fence,
            rounds,
        };
        self.emit(step, after);
    }

    /// Sends a round of renewal, and ends the wait for the answers of the round before.
    fn renew(&mut self, a: usize) {
        let (model, state) = (self.model, self.state);
        let round = state.attempts[a].rounds;
        if round == model.bounds.renewals {
            return;
        }
        let mut after = *state;
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
        self.emit(Step::Renew { attempt: a }, after);
    }

    /// A majority still held the lease. Validity counts from the sending of the round, and the client
    /// puts the lease back where it was found free.
    fn confirm(&mut self, a: usize) {
        let (model, state) = (self.model, self.state);
        let Some(age) = state.attempts[a].round_age else {
            return;
        };
        let round = usize::from(state.attempts[a].rounds - 1);
        let stood = |put_back: bool| {
            let talks = state.members.iter().map(|member| &member.talks[a]);
            talks
                .filter(|talk| talk.renewals[round] == Renewal::Stood)
                .filter(|talk| put_back || talk.repair != Repair::Done)
                .count()
        };
        let majority = model.bounds.sets.majority(model.client(a));
        if stood(true) < majority {
            return;
        }
        let mut after = *state;
        for member in &mut after.members {
            let talk = &mut member.talks[a];
            if talk.renewals[round] == Renewal::Free
                && model.rules.repairing == Repairing::NextRound
            {
                talk.repair = Repair::Sent;
            }
        }
        after.close_round(a);
        let attempt = &mut after.attempts[a];
        attempt.age = match (model.rules.deadline_from_sending, attempt.phase) {
            (false, _) => 0,
            (true, Phase::Valid) => attempt.age.min(age),
            (true, _) => age,
        };
        attempt.phase = Phase::Valid;
        let repaired = stood(false) < majority;
        let step = Step::StayValid {
            attempt: a,
            repaired,
        };
        self.emit(step, after);
    }
}

impl Model {
    /// The lowest counter in which a run may begin. With right clocks, it is that of the first
    /// proposal: a lower counter is indistinguishable from none.
    pub(super) fn lowest_counter(&self) -> u8 {
        let counts = self.rules.floor == Floor::EveryStep && self.bounds.spread > 0;
        match self.bounds.clocks {
            Clocks::Right | Clocks::Skewed(_) if counts => TICK,
            _ => 0,
        }
    }

    /// If only a confirmation lifts counters to the wall clock, it lifts the fence with them.
    fn lifted<const N: usize>(&self, state: &ModelState<N>, a: usize, greatest: u8) -> u8 {
        let granted = |wanted: &dyn Fn(u8) -> bool| {
            let talks = state.members.iter().map(|member| member.talks[a].acquire);
            talks
                .filter(|acquire| matches!(acquire, Acquire::Granted(answer) if wanted(*answer)))
                .count()
        };
        let lifts = match self.rules.floor {
            Floor::EveryStep => false,
            Floor::Confirmation => {
                granted(&|answer| answer == greatest) < self.bounds.sets.majority(self.client(a))
            }
            Floor::ConfirmationOfMissing => granted(&|answer| answer == 1) > 0,
        };
        match lifts {
            true => greatest.max(state.attempts[a].proposal),
            false => greatest,
        }
    }
}

impl<const N: usize> ModelState<N> {
    /// Counts the members that have the fence of the attempt.
    fn confirmations(&self, a: usize) -> usize {
        let talks = self
            .members
            .iter()
            .map(|member| member.talks[a].confirmation);
        talks
            .filter(|confirmation| *confirmation == Confirmation::Counted)
            .count()
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
            if talk.repair == Repair::Done {
                talk.repair = Repair::Gone;
            }
        }
    }

    /// Ignores answers to acquire and confirm from now on.
    fn deaf(&mut self, a: usize) {
        for member in &mut self.members {
            let talk = &mut member.talks[a];
            talk.barred = false;
            if matches!(talk.acquire, Acquire::Granted(_) | Acquire::GrantedOut) {
                talk.acquire = Acquire::Gone;
            }
            if talk.confirmation == Confirmation::Counted {
                talk.confirmation = Confirmation::Gone;
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
