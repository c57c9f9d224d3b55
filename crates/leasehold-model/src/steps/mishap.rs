//! What happens to members: leases expire, processes restart, clocks jump.

use super::{Model, Step, Steps};
use crate::state::{Acquire, Member, MemberTrust, ModelState, Renewal, Talk};

impl<const N: usize> Steps<'_, N> {
    pub(super) fn mishaps(&mut self, m: usize) {
        let (model, state) = (self.model, self.state);
        let member = &state.members[m];
        let may_end = model.rules.times.lease_may_end();
        if member.lease.is_some_and(|lease| lease.age >= may_end) {
            let mut after = *state;
            after.members[m].lease = None;
            self.emit(Step::Expire { member: m }, after);
        }
        if state.left.restarts > 0 {
            let mut after = *state;
            after.left.restarts -= 1;
            after.members[m].counter = 0;
            model.lose_connections(&mut after.members[m]);
            model.go_out(&mut after, m);
            self.emit(Step::Restart { member: m }, after);
        }
        if state.left.jumps > 0 && member.lease.is_some() {
            let mut after = *state;
            after.left.jumps -= 1;
            match model.rules.trust.stepped_clock {
                true => model.go_out(&mut after, m),
                false => after.members[m].lease = None,
            }
            self.emit(Step::Jump { member: m }, after);
        }
    }
}

impl Model {
    /// Drops the requests that were between their two steps: they end with the connection.
    fn lose_connections(&self, member: &mut Member) {
        for talk in &mut member.talks {
            let between = matches!(talk.acquire, Acquire::Taken | Acquire::Busy);
            if between && self.rules.trust.one_incarnation {
                talk.acquire = Acquire::Gone;
            }
        }
    }

    /// The member forgets its leases and does not count in anything sent until its wait is over.
    fn go_out<const N: usize>(&self, state: &mut ModelState<N>, m: usize) {
        let member = &mut state.members[m];
        member.lease = None;
        member.trust = match self.rules.times.wait_may_end() {
            0 => MemberTrust::Back,
            _ => MemberTrust::Out(0),
        };
        if !member.is_out() {
            return;
        }
        for (talk, attempt) in member.talks.iter_mut().zip(&state.attempts) {
            if attempt.is_pending() && talk.listed && !self.keeps_trust(talk) {
                talk.barred = true;
            }
            if attempt.round_age.is_some() {
                for renewal in &mut talk.renewals {
                    if *renewal == Renewal::Sent {
                        *renewal = Renewal::SentBarred;
                    }
                }
            }
        }
    }

    /// Without the rule of one incarnation, the client trusts an answer as it trusted the lease when
    /// taken.
    fn keeps_trust(&self, talk: &Talk) -> bool {
        talk.acquire == Acquire::Taken && !self.rules.trust.one_incarnation
    }
}
