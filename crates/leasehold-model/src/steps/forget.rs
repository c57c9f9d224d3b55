//! Drops from a state what makes no difference to any property, so that fewer states differ.
//!
//! Each of these functions either leaves exactly the same steps possible, or takes a step that is
//! allowed anyway and after which at least as much may happen.

use super::Model;
use super::client::TICK;
use crate::bounds::Clocks;
use crate::rules::{Floor, Repairing};
use crate::state::{
    Acquire, Attempt, Confirmation, Member, MemberTrust, ModelState, Phase, Renewal, Repair, Talk,
};

impl Model {
    /// Drops from the state after a step what no longer makes a difference.
    pub(super) fn forget<const N: usize>(&self, state: &mut ModelState<N>) {
        let used = usize::from(self.bounds.attempts);
        for a in 0..used {
            if state.attempts[a].is_pending() && self.is_doomed(state, a) {
                state.end(a);
            }
            self.forget_messages(state, a);
            self.forget_ages(state, a);
            self.forget_values(state, a);
        }
        if state.attempts[used - 1].phase != Phase::Unsent {
            (state.wall, state.since_start) = (0, 0);
            self.forget_trust(state);
        }
        if self.rules.floor == Floor::EveryStep {
            self.forget_counters(state);
        }
    }

    /// Whether no further step can break a property, because no attempt can be granted.
    pub(super) fn is_over<const N: usize>(&self, state: &ModelState<N>) -> bool {
        let used = &state.attempts[..usize::from(self.bounds.attempts)];
        let nobody = used
            .iter()
            .all(|attempt| matches!(attempt.phase, Phase::Valid | Phase::Expired | Phase::Ended));
        nobody && self.rules.lost_is_final && self.rules.release_checks_owner
    }

    /// Whether too few members are left that may grant and confirm, so that the attempt may as well have
    /// ended.
    fn is_doomed<const N: usize>(&self, state: &ModelState<N>, a: usize) -> bool {
        let confirming = state.attempts[a].phase == Phase::Confirming;
        let may_count = |member: &&Member| {
            let talk = &member.talks[a];
            let trust = self.rules.trust;
            let granted = match talk.acquire {
                Acquire::Sent | Acquire::Taken => {
                    !talk.barred || !trust.grant || !trust.confirmation || !trust.sent_after_wait
                }
                Acquire::Granted(_) => true,
                _ => false,
            };
            granted || confirming && talk.confirmation != Confirmation::Gone
        };
        let possible = state.members.iter().filter(may_count).count();
        possible < self.bounds.sets.majority(self.client(a))
    }

    /// Drops messages that will do nothing when they arrive, or that only lengthen a lease: members
    /// may keep leases for any time anyway.
    fn forget_messages<const N: usize>(&self, state: &mut ModelState<N>, a: usize) {
        let attempt = state.attempts[a];
        let current = attempt.round_age.map(|_| usize::from(attempt.rounds) - 1);
        let fills = self.rules.repairing == Repairing::SameRound;
        for member in &mut state.members {
            let holds = member
                .lease
                .is_some_and(|lease| usize::from(lease.attempt) == a);
            let talk = &mut member.talks[a];
            for (round, renewal) in talk.renewals.iter_mut().enumerate() {
                let unheard = current != Some(round)
                    || *renewal == Renewal::SentBarred
                        && self.rules.trust.renewal
                        && self.rules.trust.repair
                        && self.rules.trust.sent_after_wait;
                if unheard && !fills {
                    *renewal = Renewal::Gone;
                }
            }
            let may_hold = holds
                || matches!(talk.acquire, Acquire::Sent)
                || talk.repair == Repair::Sent
                || fills
                || state.left.repeats > 0
                || !self.rules.owner_per_attempt;
            let refused = attempt.phase == Phase::Ended
                && talk.confirmation == Confirmation::Sent
                && !may_hold;
            if refused && self.rules.confirmation_checks_owner {
                talk.confirmation = Confirmation::Gone;
            }
        }
    }

    /// Drops ages of leases that may be freed at any time, because their attempt ended, or that
    /// outlive it.
    fn forget_ages<const N: usize>(&self, state: &mut ModelState<N>, a: usize) {
        let attempt = state.attempts[a];
        let times = self.rules.times;
        let outlives = if attempt.phase == Phase::Ended {
            times.lease_may_end()
        } else if self.rules.deadline_from_sending && self.renews_no_more(&attempt) {
            (times.lease_may_end() + attempt.age).saturating_sub(times.guard_ends())
        } else {
            return;
        };
        for member in &mut state.members {
            if let Some(lease) = &mut member.lease
                && usize::from(lease.attempt) == a
                && lease.age <= outlives
            {
                lease.age = outlives;
            }
        }
    }

    fn renews_no_more(&self, attempt: &Attempt) -> bool {
        attempt.rounds == self.bounds.renewals && attempt.round_age.is_none()
            || attempt.phase == Phase::Ended
    }

    /// Drops proposals and fences that no message will carry.
    fn forget_values<const N: usize>(&self, state: &mut ModelState<N>, a: usize) {
        let attempt = state.attempts[a];
        if !matches!(attempt.phase, Phase::Valid | Phase::Ended) || state.left.repeats > 0 {
            return;
        }
        let talks = || state.members.iter().map(|member| &member.talks[a]);
        let carries = |talk: &Talk| {
            let renews = talk
                .renewals
                .iter()
                .any(|renewal| *renewal != Renewal::Gone);
            talk.confirmation != Confirmation::Gone || talk.repair != Repair::Gone || renews
        };
        if self.renews_no_more(&attempt) && !talks().any(carries) {
            state.attempts[a].fence = 0;
        }
        let talks = || state.members.iter().map(|member| &member.talks[a]);
        if talks().all(|talk| talk.acquire == Acquire::Gone) {
            state.attempts[a].proposal = 0;
        }
    }

    /// Forgets that a member is out, once all requests for which that matters are sent.
    fn forget_trust<const N: usize>(&self, state: &mut ModelState<N>) {
        let used = &state.attempts[..usize::from(self.bounds.attempts)];
        if self.rules.trust.sent_after_wait && used.iter().all(|a| self.renews_no_more(a)) {
            for member in &mut state.members {
                if member.is_out() {
                    member.trust = MemberTrust::Sound;
                }
            }
        }
    }

    /// Drops counters that are no greater than anything they may still be compared with.
    fn forget_counters<const N: usize>(&self, state: &mut ModelState<N>) {
        let coming = match self.bounds.clocks {
            Clocks::Wrong => 0,
            _ => (state.wall + state.since_start) * TICK,
        };
        let used = usize::from(self.bounds.attempts);
        for member in &mut state.members {
            let operands = state.attempts[..used].iter().zip(&member.talks);
            let least = operands.filter_map(|(attempt, talk)| match attempt.phase {
                _ if state.left.repeats > 0 => Some(0),
                Phase::Unsent => Some(coming),
                Phase::Asking | Phase::Confirming => Some(attempt.proposal),
                _ if matches!(talk.acquire, Acquire::Sent | Acquire::Taken | Acquire::Busy) => {
                    Some(attempt.proposal)
                }
                _ if talk.confirmation != Confirmation::Gone || talk.repair != Repair::Gone => {
                    Some(attempt.fence)
                }
                _ if !self.renews_no_more(attempt) => Some(attempt.fence),
                _ if talk
                    .renewals
                    .iter()
                    .any(|renewal| *renewal != Renewal::Gone) =>
                {
                    Some(attempt.fence)
                }
                _ => None,
            });
            if least.min().is_none_or(|least| member.counter <= least) {
                member.counter = 0;
            }
        }
    }
}
