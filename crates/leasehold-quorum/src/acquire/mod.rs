//! Takes locks: asks members, waits in their queues, and gives back grants that did not become a majority.
//!
//! `state` holds what is known, `asking` sends requests, `answers` takes in replies, and `deciding` draws
//! the conclusions. This file begins and ends acquisitions and wakes them up.

mod answers;
mod asking;
mod deciding;
mod giving_back;
pub(crate) mod state;

use std::sync::Arc;
use std::time::Duration;

use leasehold_types::{BootInstant, Claim, Error, ErrorKind, Held};

use crate::ballot::majority;
use crate::engine::{Engine, Now};
use crate::member::Member;
use crate::membership::Access;
use crate::operation::{OperationId, Outcome};
use crate::request::Lease;

pub(crate) use asking::HOT_PAUSE;
use state::{Acquisition, ClaimState, Phase};

impl Engine {
    pub(crate) fn start_acquire(&mut self, now: Now, id: OperationId, claim: Arc<Claim>) {
        // Without the members' limits, the TTL is checked once they are known.
        if let Err(error) = self.membership.check_ttl(&claim) {
            return self.finish(id, Outcome::Failed(error));
        }
        let mut acquisition = Acquisition::new(Arc::clone(&claim), self.members.len(), now.instant);
        acquisition.preferred = match (claim.slot, claim.mode.permits()) {
            (None, Some(permits)) => {
                let random = self.entropy.next_u64() % u64::from(permits.get());
                permits.slots().nth(random as usize)
            }
            (slot, _) => slot,
        };
        // The same owner asks again: its earlier attempt becomes part of this one.
        if let Some(former) = self.by_owner.insert(claim.owner, id) {
            self.forget(former);
        }
        self.acquisitions.insert(id, acquisition);
        self.advance(now, id);
    }

    /// Asks the members that have no answer yet, and decides what follows.
    pub(crate) fn advance(&mut self, now: Now, id: OperationId) {
        let Some(acquisition) = self.acquisitions.get(&id) else {
            return;
        };
        if acquisition.phase != Phase::Asking {
            return self.set_wake(id);
        }
        let is_paused = acquisition.pause.is_some_and(|pause| pause > now.instant);
        if acquisition.is_queued() && !self.has_majority(now, acquisition.began) {
            return self.leave_queues(now, id);
        }
        if !is_paused {
            for member in 0..self.members.len() {
                self.ask_if_out(now, id, member);
            }
            self.decide(now, id);
        }
        self.set_wake(id);
    }

    /// Whether a majority of members may be asked for locks and would have a vote.
    pub(crate) fn has_majority(&mut self, now: Now, began: BootInstant) -> bool {
        let (members, membership) = (self.members.len(), &mut self.membership);
        let mut has_vote = |member: &usize| {
            membership.access(now.instant, *member, began) == Access::Open
                && membership.lacks_vote(now.instant, *member).is_none()
        };
        (0..members).filter(|it| has_vote(it)).count() >= majority(members)
    }

    /// The member may have these leases from now on.
    pub(crate) fn doubt(&mut self, member: usize, leases: &[Lease]) {
        for lease in leases {
            let id = self.by_owner.get(&lease.claim.owner);
            if let Some(acquisition) = id.and_then(|id| self.acquisitions.get_mut(id)) {
                acquisition.members[member].uncertain = true;
            }
        }
    }

    /// Ends the acquisition, and releases what it may have left behind.
    pub(crate) fn withdraw(&mut self, now: Now, id: OperationId) {
        self.give_back(now, id, giving_back::Then::End);
        self.forget(id);
    }

    pub(crate) fn cancel_acquire(&mut self, now: Now, id: OperationId) {
        if self.acquisitions.contains_key(&id) {
            self.drop_events(id);
            self.withdraw(now, id);
        }
    }

    /// Removes the acquisition.
    pub(crate) fn forget(&mut self, id: OperationId) -> Option<Acquisition> {
        let acquisition = self.acquisitions.remove(&id)?;
        self.set_timer(id, acquisition.timer, None);
        self.waiters
            .remove(&acquisition.claim.key, acquisition.ticket, id);
        let owner = acquisition.claim.owner;
        if self.by_owner.get(&owner) == Some(&id) {
            self.by_owner.remove(&owner);
        }
        Some(acquisition)
    }

    /// The timer of an acquisition is due.
    pub(crate) fn wake(&mut self, now: Now, id: OperationId) {
        let Some(acquisition) = self.acquisitions.get_mut(&id) else {
            return;
        };
        acquisition.timer = None;
        acquisition.awaits_until.take_if(|it| *it <= now.instant);
        if acquisition.pause.take_if(|it| *it <= now.instant).is_some() {
            for member_state in &mut acquisition.members {
                if member_state.granted().is_none() {
                    member_state.ask_at = Some(now.instant);
                }
            }
        }
        let end = acquisition.round.as_ref().and_then(|round| round.end);
        if end.is_some_and(|end| end <= now.instant) {
            self.end_round(now, id);
        }
        self.ask_due(now, id);
        self.advance(now, id);
    }

    /// The round's time is up, and there is no majority.
    fn end_round(&mut self, now: Now, id: OperationId) {
        let Some(acquisition) = self.acquisitions.get_mut(&id) else {
            return;
        };
        if acquisition.is_queued() {
            return self.fail_round(now, id);
        }
        // An attempt without a place waits for each member it asked, up to that member's limit.
        if let Some(round) = &mut acquisition.round {
            round.end = None;
        }
        for member in 0..self.members.len() {
            let member_state = self.acquisitions.get(&id).map(|it| &it.members[member]);
            let is_out = |member_state: &state::MemberState| {
                member_state.asked.is_none() && matches!(member_state.claim, ClaimState::Out)
            };
            if member_state.is_some_and(is_out) {
                let obstacle = self.membership.obstacle(now.instant, member);
                let none = || Error::new(ErrorKind::Unreachable, "the member was not asked");
                let error = obstacle.map_or_else(none, |it| it.error);
                self.vote_failed(id, member, error);
            }
        }
    }

    /// Names the permit of each lease, as members granted it.
    pub(crate) fn with_permits(&self, mut leases: Vec<Held>) -> Vec<Held> {
        let unnamed =
            |held: &&mut Held| held.claim.mode.permits().is_some() && held.claim.slot.is_none();
        for held in leases.iter_mut().filter(unnamed) {
            let id = self.by_owner.get(&held.claim.owner);
            let acquisition = id.and_then(|id| self.acquisitions.get(id));
            if let Some(slot) = acquisition.and_then(Acquisition::commonest_slot) {
                let claim = Claim::clone(&held.claim);
                held.claim = Arc::new(claim.with_slot(slot));
            }
        }
        leases
    }

    /// Sets the timer to the earliest due time.
    pub(crate) fn set_wake(&mut self, id: OperationId) {
        let Some(acquisition) = self.acquisitions.get_mut(&id) else {
            return;
        };
        let idle = acquisition.members.iter().filter(|it| it.asked.is_none());
        let next = idle.filter_map(|member_state| member_state.ask_at).min();
        // No member is asked before the end of a pause.
        let next = next.max(next.and(acquisition.pause));
        let end = acquisition.round.as_ref().and_then(|round| round.end);
        let due = [next, end, acquisition.pause, acquisition.awaits_until];
        let next = due.into_iter().flatten().min();
        let old = acquisition.timer;
        if old != next {
            acquisition.timer = next;
            self.set_timer(id, old, next);
        }
    }

    /// Continues all acquisitions after something changed at a member.
    pub(crate) fn resume_all(&mut self, now: Now) {
        let all = self.acquisitions.iter();
        let open = all.filter(|(_, it)| it.phase == Phase::Asking);
        let mut open: Vec<OperationId> = open.map(|(id, _)| *id).collect();
        open.sort_unstable();
        for id in open {
            self.retry_failed(id);
            self.advance(now, id);
        }
    }

    /// Members that failed are asked again once the round is over.
    fn retry_failed(&mut self, id: OperationId) {
        let Some(acquisition) = self.acquisitions.get_mut(&id) else {
            return;
        };
        if acquisition.is_queued() && acquisition.round.is_none() && acquisition.pause.is_none() {
            for member_state in &mut acquisition.members {
                if matches!(member_state.claim, ClaimState::Failed(_)) {
                    member_state.claim = ClaimState::Out;
                }
            }
        }
    }

    /// The round trip to the slowest member of the fastest majority.
    pub(crate) fn round_trip(&self) -> Duration {
        let known = self.members.iter().filter_map(Member::round_trip);
        let mut known: Vec<Duration> = known.collect();
        known.sort_unstable();
        let slowest = known.get(majority(self.members.len()) - 1).copied();
        slowest.unwrap_or(Duration::from_millis(50))
    }

    /// Returns a random part of a span, from a tenth of it on.
    pub(crate) fn random_part(&self, span: Duration) -> Duration {
        let random = self.entropy.next_u64() as f64 / u64::MAX as f64;
        span.mul_f64(0.1 + 0.9 * random)
    }
}
