//! Drops from a world what makes no difference to any property, so that fewer worlds differ.
//!
//! Each of these functions either leaves exactly the same steps possible, or takes a step that is
//! allowed anyway and after which at least as much may happen.

use super::Model;
use super::client::TICK;
use crate::bounds::Clocks;
use crate::rules::{Floor, Healing};
use crate::state::{Acquire, Attempt, Heal, Member, Phase, Renewal, Seal, Standing, Talk, World};

impl Model {
    /// Drops from the world after a step what no longer makes a difference.
    pub(super) fn forget<const N: usize>(&self, world: &mut World<N>) {
        let used = usize::from(self.bounds.attempts);
        for a in 0..used {
            if world.attempts[a].is_pending() && self.is_doomed(world, a) {
                world.end(a);
            }
            self.forget_messages(world, a);
            self.forget_ages(world, a);
            self.forget_values(world, a);
        }
        if world.attempts[used - 1].phase != Phase::Unsent {
            (world.wall, world.since_start) = (0, 0);
            self.forget_standing(world);
        }
        if self.rules.floor == Floor::EveryStep {
            self.forget_counters(world);
        }
    }

    /// Whether no further step can break a property, because no attempt can be granted.
    pub(super) fn is_over<const N: usize>(&self, world: &World<N>) -> bool {
        let used = &world.attempts[..usize::from(self.bounds.attempts)];
        let nobody = used
            .iter()
            .all(|attempt| matches!(attempt.phase, Phase::Valid | Phase::Expired | Phase::Ended));
        nobody && self.rules.lost_is_final && self.rules.release_checks_owner
    }

    /// Whether too few members are left that may grant and seal, so that the attempt may as well have
    /// ended.
    fn is_doomed<const N: usize>(&self, world: &World<N>, a: usize) -> bool {
        let sealing = world.attempts[a].phase == Phase::Sealing;
        let may_count = |member: &&Member| {
            let talk = &member.talks[a];
            let trust = self.rules.trust;
            let granted = match talk.acquire {
                Acquire::Sent | Acquire::Taken => {
                    !talk.barred || !trust.grant || !trust.seal || !trust.sent_after_wait
                }
                Acquire::Granted(_) => true,
                _ => false,
            };
            granted || sealing && talk.seal != Seal::Gone
        };
        let possible = world.members.iter().filter(may_count).count();
        possible < self.bounds.sets.majority(self.client(a))
    }

    /// Drops messages that will do nothing when they arrive, or that only lengthen a lease: members
    /// may keep leases for any time anyway.
    fn forget_messages<const N: usize>(&self, world: &mut World<N>, a: usize) {
        let attempt = world.attempts[a];
        let current = attempt.round_age.map(|_| usize::from(attempt.rounds) - 1);
        let fills = self.rules.healing == Healing::SameRound;
        for member in &mut world.members {
            let holds = member
                .lease
                .is_some_and(|lease| usize::from(lease.attempt) == a);
            let talk = &mut member.talks[a];
            for (round, renewal) in talk.renewals.iter_mut().enumerate() {
                let unheard = current != Some(round)
                    || *renewal == Renewal::SentBarred
                        && self.rules.trust.renewal
                        && self.rules.trust.heal
                        && self.rules.trust.sent_after_wait;
                if unheard && !fills {
                    *renewal = Renewal::Gone;
                }
            }
            let may_hold = holds
                || matches!(talk.acquire, Acquire::Sent)
                || talk.heal == Heal::Sent
                || fills
                || world.left.repeats > 0
                || !self.rules.owner_per_attempt;
            let refused = attempt.phase == Phase::Ended && talk.seal == Seal::Sent && !may_hold;
            if refused && self.rules.seal_checks_owner {
                talk.seal = Seal::Gone;
            }
        }
    }

    /// Drops ages of leases that may be freed at any time, because their attempt ended, or that
    /// outlive it.
    fn forget_ages<const N: usize>(&self, world: &mut World<N>, a: usize) {
        let attempt = world.attempts[a];
        let times = self.rules.times;
        let outlives = if attempt.phase == Phase::Ended {
            times.lease_may_end()
        } else if self.rules.deadline_from_sending && self.renews_no_more(&attempt) {
            (times.lease_may_end() + attempt.age).saturating_sub(times.guard_ends())
        } else {
            return;
        };
        for member in &mut world.members {
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
    fn forget_values<const N: usize>(&self, world: &mut World<N>, a: usize) {
        let attempt = world.attempts[a];
        if !matches!(attempt.phase, Phase::Valid | Phase::Ended) || world.left.repeats > 0 {
            return;
        }
        let talks = || world.members.iter().map(|member| &member.talks[a]);
        let carries = |talk: &Talk| {
            let renews = talk
                .renewals
                .iter()
                .any(|renewal| *renewal != Renewal::Gone);
            talk.seal != Seal::Gone || talk.heal != Heal::Gone || renews
        };
        if self.renews_no_more(&attempt) && !talks().any(carries) {
            world.attempts[a].fence = 0;
        }
        let talks = || world.members.iter().map(|member| &member.talks[a]);
        if talks().all(|talk| talk.acquire == Acquire::Gone) {
            world.attempts[a].proposal = 0;
        }
    }

    /// Forgets that a member is out, once all requests for which that matters are sent.
    fn forget_standing<const N: usize>(&self, world: &mut World<N>) {
        let used = &world.attempts[..usize::from(self.bounds.attempts)];
        if self.rules.trust.sent_after_wait && used.iter().all(|a| self.renews_no_more(a)) {
            for member in &mut world.members {
                if member.is_out() {
                    member.standing = Standing::Sound;
                }
            }
        }
    }

    /// Drops counters that are no greater than anything they may still be compared with.
    fn forget_counters<const N: usize>(&self, world: &mut World<N>) {
        let coming = match self.bounds.clocks {
            Clocks::Wrong => 0,
            _ => (world.wall + world.since_start) * TICK,
        };
        let used = usize::from(self.bounds.attempts);
        for member in &mut world.members {
            let operands = world.attempts[..used].iter().zip(&member.talks);
            let least = operands.filter_map(|(attempt, talk)| match attempt.phase {
                _ if world.left.repeats > 0 => Some(0),
                Phase::Unsent => Some(coming),
                Phase::Asking | Phase::Sealing => Some(attempt.proposal),
                _ if matches!(talk.acquire, Acquire::Sent | Acquire::Taken | Acquire::Busy) => {
                    Some(attempt.proposal)
                }
                _ if talk.seal != Seal::Gone || talk.heal != Heal::Gone => Some(attempt.fence),
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
