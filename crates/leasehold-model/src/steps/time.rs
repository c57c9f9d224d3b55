//! What time does.

use super::{Model, Step, Steps};
use crate::bounds::Clocks;
use crate::state::{MemberTrust, ModelState, Phase};

impl<const N: usize> Steps<'_, N> {
    /// A tick passes for all clients and members, and waits for none. Those that have not acted by
    /// then are late.
    pub(super) fn time_steps(&mut self) {
        let (model, state) = (self.model, self.state);
        let mut after = *state;
        let times = model.rules.times;
        for member in &mut after.members {
            if let Some(lease) = &mut member.lease {
                lease.age = times.lease_may_end().min(lease.age + 1);
            }
            if let MemberTrust::Out(ticks) = member.trust {
                member.trust = match ticks + 1 == times.wait_may_end() {
                    true => MemberTrust::Back,
                    false => MemberTrust::Out(ticks + 1),
                };
            }
        }
        for a in 0..usize::from(model.bounds.attempts) {
            model.age(&mut after, a);
        }
        after.since_start = model.told_apart().min(state.since_start + 1);
        self.emit(Step::Tick, after);
    }
}

impl Model {
    fn age<const N: usize>(&self, state: &mut ModelState<N>, a: usize) {
        let attempt = &mut state.attempts[a];
        let ends = self.rules.times.guard_ends();
        attempt.round_age = attempt.round_age.map(|age| age + 1);
        let late_round = attempt.round_age.is_some_and(|age| age == ends);
        match attempt.phase {
            Phase::Unsent | Phase::Ended => return,
            Phase::Asking | Phase::Confirming if !self.rules.deadline_from_sending => {}
            Phase::Asking | Phase::Confirming | Phase::Valid => attempt.age += 1,
            Phase::Expired => {}
        }
        if attempt.age == ends {
            attempt.age = 0;
            attempt.phase = match attempt.phase {
                Phase::Valid if !self.rules.lost_is_final => Phase::Expired,
                _ => Phase::Ended,
            };
        }
        let (phase, open) = (attempt.phase, attempt.round_age.is_some() && !late_round);
        if phase == Phase::Ended || phase == Phase::Expired && !open {
            state.end(a);
        } else if late_round {
            state.close_round(a);
        }
    }

    /// Ticks between two starts that make a difference to the proposals.
    fn told_apart(&self) -> u8 {
        match self.bounds.clocks {
            Clocks::Right => 1,
            Clocks::Skewed(ahead) => ahead + 1,
            Clocks::Wrong => 0,
        }
    }
}
