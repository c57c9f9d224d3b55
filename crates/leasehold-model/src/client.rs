//! What clients do: start, decide, renew, end. And what time does.

use std::cmp::Ordering;

use crate::quorum::Quorum;
use crate::rules::Rule;
use crate::state::{Acquire, LEASE, MAJORITY, MEMBERS, Phase, Promise, Renewal, State};
use crate::step::Step;

impl Quorum {
    /// The ways to start the next attempt, if its client has no other.
    pub(crate) fn starts(&self, state: &State, steps: &mut Vec<Step>) {
        let is = |a: usize, phase| state.attempts[a].phase == phase;
        let Some(a) = (0..self.bounds.attempts).find(|a| is(*a, Phase::Unsent)) else {
            return;
        };
        if (0..a).any(|it| self.same_owner(it, a) && !is(it, Phase::Ended)) {
            return;
        }
        let ahead = if self.bounds.wrong_clocks {
            2
        } else {
            self.bounds.ahead
        };
        let wall = state.wall + state.since_start;
        steps.extend((0..=ahead).map(|it| Step::Start(a, (wall + it) * self.tick_length())));
    }

    /// What the client may do for an attempt.
    pub(crate) fn client_steps(&self, state: &State, a: usize, steps: &mut Vec<Step>) {
        let attempt = &state.attempts[a];
        match attempt.phase {
            Phase::Asking => choices(state, a, steps),
            Phase::Confirming if confirmations(state, a) >= MAJORITY => steps.push(Step::Win(a)),
            Phase::Valid if attempt.rounds < self.bounds.renewals => steps.push(Step::Renew(a)),
            _ => {}
        }
        if state.count(a, |talk| talk.renewal == Renewal::Renewed) >= MAJORITY {
            steps.push(Step::StayValid(a));
        }
        if !matches!(attempt.phase, Phase::Unsent | Phase::Ended) {
            steps.push(Step::End(a));
        }
    }

    /// Makes the greatest answer of a majority the fence, which needs no confirmation if a majority answered it.
    pub(crate) fn choose(&self, state: &mut State, a: usize, fence: u8) {
        state.attempts[a].fence = fence;
        state.attempts[a].phase = Phase::Confirming;
        for member in &mut state.members {
            let acquire = &mut member.talks[a].acquire;
            *acquire = match *acquire {
                Acquire::Granted(answer) if answer == fence => Acquire::Confirmed,
                Acquire::Granted(_) => Acquire::Confirming(fence),
                _ if !self.has(Rule::ConfirmationWhereGranted) => Acquire::Confirming(fence),
                other => other,
            };
        }
        if !self.has(Rule::Confirmation) || confirmations(state, a) >= MAJORITY {
            self.win(state, a);
        }
    }

    pub(crate) fn win(&self, state: &mut State, a: usize) {
        let attempt = &mut state.attempts[a];
        state.broken = match attempt.fence.cmp(&state.greatest) {
            Ordering::Less => Some(Promise::FenceOrder),
            Ordering::Equal => Some(Promise::FenceUnique),
            Ordering::Greater => None,
        };
        state.greatest = state.greatest.max(attempt.fence);
        attempt.phase = Phase::Valid;
        if self.bounds.renewals == 0 {
            attempt.fence = 0;
        }
        state.ignore_grants(a);
    }

    /// A majority extended the lease. Validity counts from the sending of the round, and the client puts the lease back
    /// where it was found free.
    pub(crate) fn stay_valid(&self, state: &mut State, a: usize) {
        let attempt = &mut state.attempts[a];
        for member in &mut state.members {
            if member.talks[a].renewal == Renewal::Free {
                member.talks[a].repair = attempt.fence;
            }
        }
        let is_strict = self.has(Rule::DeadlineFromSending);
        attempt.age = attempt.round.filter(|_| is_strict).unwrap_or_default();
        if attempt.phase == Phase::Ended {
            state.broken = Some(Promise::Finality);
        }
        attempt.phase = Phase::Valid;
        state.close_round(a);
    }

    /// Ends the attempt: no answer counts from now on, its leases may end at any time, and its requests may still arrive.
    pub(crate) fn end(&self, state: &mut State, a: usize) {
        state.ignore_grants(a);
        if self.has(Rule::LostIsFinal) {
            state.close_round(a);
        }
        let attempt = &mut state.attempts[a];
        (attempt.phase, attempt.age) = (Phase::Ended, 0);
        (attempt.fence, attempt.rounds) = (0, 0);
        state.leases(a).for_each(|lease| lease.age = LEASE);
    }

    pub(crate) fn tick(&self, state: &mut State) {
        for member in &mut state.members {
            if let Some(lease) = &mut member.lease {
                lease.age = LEASE.min(lease.age + 1);
            }
            // A client with a fast clock gives the vote again after this many true ticks.
            let wait = if self.has(Rule::WholeWait) { 3 } else { 1 };
            member.out = member.out.map(|ticks| ticks + 1).filter(|it| *it < wait);
        }
        for a in 0..self.bounds.attempts {
            self.age(state, a);
        }
        let told_apart = if self.bounds.wrong_clocks {
            0
        } else {
            self.bounds.ahead + 1
        };
        state.since_start = told_apart.min(state.since_start + 1);
    }

    fn age(&self, state: &mut State, a: usize) {
        let attempt = &mut state.attempts[a];
        if matches!(attempt.phase, Phase::Unsent | Phase::Ended) {
            return;
        }
        if !attempt.is_pending() || self.has(Rule::DeadlineFromSending) {
            attempt.age += 1;
        }
        attempt.round = attempt.round.map(|age| age + 1);
        if attempt.age == self.guard() {
            self.end(state, a);
        } else if attempt.round == Some(self.guard()) {
            state.close_round(a);
        }
    }
}

/// Any majority of the answers may come first, and its greatest one is the fence.
fn choices(state: &State, a: usize, steps: &mut Vec<Step>) {
    let mut answers: Vec<u8> = Vec::with_capacity(MEMBERS);
    for member in &state.members {
        if let Acquire::Granted(answer @ 1..) = member.talks[a].acquire {
            answers.push(answer);
        }
    }
    answers.sort_unstable();
    let greatest = answers.iter().skip(MAJORITY - 1);
    steps.extend(greatest.map(|fence| Step::Choose(a, *fence)));
}

/// Counts the members that have the fence of the attempt.
fn confirmations(state: &State, a: usize) -> usize {
    state.count(a, |talk| talk.acquire == Acquire::Confirmed)
}

impl State {
    pub(crate) fn start(&mut self, a: usize, proposal: u8) {
        self.wall += self.since_start;
        self.since_start = 0;
        self.attempts[a].phase = Phase::Asking;
        for member in &mut self.members {
            member.talks[a].acquire = Acquire::Sent(proposal);
            member.talks[a].barred = member.out.is_some();
        }
    }

    /// Sends a round of renewal, and ends the wait for the answers of the round before.
    pub(crate) fn renew(&mut self, a: usize) {
        self.attempts[a].rounds += 1;
        self.attempts[a].round = Some(0);
        for member in &mut self.members {
            member.talks[a].renewal = Renewal::Sent;
            member.talks[a].barred = member.out.is_some();
        }
    }

    /// Ignores answers to acquire and confirm from now on.
    fn ignore_grants(&mut self, a: usize) {
        for member in &mut self.members {
            let talk = &mut member.talks[a];
            talk.barred = false;
            if matches!(talk.acquire, Acquire::Granted(_) | Acquire::Confirmed) {
                talk.acquire = Acquire::Gone;
            }
        }
    }

    /// Ignores answers to the round of renewal from now on. A late request only lengthens a lease, which members may keep
    /// for any time anyway.
    fn close_round(&mut self, a: usize) {
        self.attempts[a].round = None;
        for member in &mut self.members {
            (member.talks[a].renewal, member.talks[a].barred) = (Renewal::Gone, false);
        }
    }
}
