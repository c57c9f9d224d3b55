//! Gives back grants that did not become a majority.

use std::sync::Arc;
use std::time::Duration;

use leasehold_types::{Busy, Claim, Error, Owner};

use super::state::{ClaimState, round_timeout};
use crate::ballot::majority;
use crate::engine::{Engine, Now};
use crate::errors::too_few;
use crate::membership::Access;
use crate::operation::{OperationId, Outcome, Progress};
use crate::request::Requeue;

impl Engine {
    /// The client may not ask a majority at present, or a majority has no vote. A waiter without a majority
    /// keeps no place, because it would block the lock for others. It asks again when a majority has a
    /// vote.
    pub(crate) fn leave_queues(&mut self, now: Now, id: OperationId) {
        self.give_back(now, id, Then::AskAgain);
        let Some(acquisition) = self.acquisitions.get_mut(&id) else {
            return;
        };
        acquisition.round = None;
        acquisition.pause = None;
        acquisition.reported_busy = None;
        let began = acquisition.began;
        for member_state in &mut acquisition.members {
            member_state.claim = ClaimState::Out;
            member_state.ask_at = None;
        }
        let (members, membership) = (self.members.len(), &mut self.membership);
        let obstacle = |member: usize| match membership.access(now.instant, member, began) {
            Access::Open => membership.lacks_vote(now.instant, member),
            Access::Closed => membership.obstacle(now.instant, member),
            Access::Pending => None,
        };
        let failures: Vec<_> = (0..members).filter_map(obstacle).collect();
        let pending =
            |member: &usize| self.membership.access(now.instant, *member, began) == Access::Pending;
        let pending = (0..members).filter(pending).count();
        if members - failures.len() < majority(members) {
            let error = too_few(members, pending, failures);
            if !error.is_retryable() {
                self.withdraw(now, id);
                return self.finish(id, Outcome::Failed(error));
            }
            // Votes may return with time alone.
            let again = error.eligible_after().unwrap_or(PAUSE_MAX);
            let again = again.clamp(PAUSE_MIN, PAUSE_MAX);
            if let Some(acquisition) = self.acquisitions.get_mut(&id) {
                acquisition.members[0].ask_at = Some(now.instant + again);
            }
            self.unavailable(id, error);
        }
        self.set_wake(id);
    }

    /// A majority can be asked, but grants nothing at present, for a reason other than a holder.
    pub(super) fn leave_and_pause(&mut self, now: Now, id: OperationId, error: Error) {
        self.give_back(now, id, Then::AskAgain);
        let Some(acquisition) = self.acquisitions.get(&id) else {
            return;
        };
        let longest = round_timeout(self.round_trip(), acquisition.failures);
        // The votes may return with time alone.
        let pause = match error.eligible_after() {
            Some(after) => after.clamp(PAUSE_MIN, PAUSE_MAX),
            None => self.random_part(longest),
        };
        if let Some(acquisition) = self.acquisitions.get_mut(&id) {
            acquisition.round = None;
            acquisition.failures += 1;
            acquisition.reported_busy = None;
            acquisition.pause = Some(now.instant + pause);
        }
        self.unavailable(id, error);
        self.set_wake(id);
    }

    /// Tells the caller why the wait continues. What a request may have done is the concern of the engine.
    fn unavailable(&mut self, id: OperationId, error: Error) {
        self.progress(id, Progress::Unavailable(error.without_effect()));
    }

    /// The round found no majority in time: it gives everything back, and the waiter keeps its ticket.
    pub(crate) fn fail_round(&mut self, now: Now, id: OperationId) {
        let round_trip = self.round_trip();
        let Some(acquisition) = self.acquisitions.get_mut(&id) else {
            return;
        };
        acquisition.round = None;
        if acquisition.is_round_over() {
            return self.set_wake(id);
        }
        let longest = round_timeout(round_trip, acquisition.failures);
        acquisition.failures += 1;
        acquisition.notified_at = None;
        let is_permit = acquisition.claim.mode.permits().is_some();
        let differ = is_permit && acquisition.is_granted_by(majority(acquisition.members.len()));
        self.give_back(now, id, Then::KeepPlace);
        // Waiters that hold each other's permits must not meet again at once.
        let pause = differ.then(|| now.instant + self.random_part(longest));
        let Some(acquisition) = self.acquisitions.get_mut(&id) else {
            return;
        };
        acquisition.pause = pause;
        for member_state in &mut acquisition.members {
            if !member_state.is_queued() {
                member_state.ask_at = Some(now.instant);
            }
        }
        // The answers of this round are void from now on, and those of the release say nothing about the queue.
        self.report_busy(id);
        self.set_wake(id);
    }

    /// Gives back what members granted or may have granted. From then on, replies to requests that were
    /// sent before are void, and the owner of the round never asks again: its release may arrive at any
    /// time, even after the wait got the lock.
    pub(crate) fn give_back(&mut self, now: Now, id: OperationId, then: Then) {
        let Some(acquisition) = self.acquisitions.get_mut(&id) else {
            return;
        };
        acquisition.preferred = acquisition.commonest_slot().or(acquisition.preferred);
        let ticket = acquisition.ticket.filter(|_| then == Then::KeepPlace);
        let lease = Self::lease_of(&acquisition.claim);
        let mut back = Vec::new();
        for (member, member_state) in acquisition.members.iter_mut().enumerate() {
            if !member_state.may_have() {
                continue;
            }
            member_state.number += 1;
            member_state.asked = None;
            member_state.ask_at = None;
            member_state.uncertain = false;
            let is_connected = self.members[member].connected.is_some();
            let former = std::mem::take(&mut member_state.claim);
            if ticket.is_some() && is_connected {
                member_state.claim = match former {
                    ClaimState::Queued(busy) => ClaimState::Queued(busy),
                    _ => ClaimState::Queued(Busy::default()),
                };
            }
            back.push(member);
        }
        if back.is_empty() {
            return;
        }
        let next = match then {
            Then::End => None,
            Then::AskAgain | Then::KeepPlace => self.next_owner(id),
        };
        let requeue = next.zip(ticket);
        let requeue = requeue.map(|(owner, ticket)| Requeue { owner, ticket });
        for member in back {
            if requeue.is_some() {
                // The server drops a waiter whose client is not present.
                self.send_presence(now, member);
            }
            self.send_release(now, member, lease.clone(), requeue, None);
        }
    }

    /// Draws the owner of the next round. It keeps the instant at which the wait began.
    fn next_owner(&mut self, id: OperationId) -> Option<Owner> {
        let acquisition = self.acquisitions.get_mut(&id)?;
        let former = acquisition.claim.owner;
        let next = Owner::at(former.client(), former.since(), &*self.entropy);
        let claim = Claim::clone(&acquisition.claim).with_owner(next);
        acquisition.claim = Arc::new(claim);
        self.by_owner.remove(&former);
        self.by_owner.insert(next, id);
        Some(next)
    }
}

/// What an acquisition does after it gave its round back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Then {
    End,
    /// It leaves the queues, and asks again later with the same ticket.
    AskAgain,
    /// It stays in the queues with its ticket.
    KeepPlace,
}

/// The shortest pause before a waiter without votes asks again.
const PAUSE_MIN: Duration = Duration::from_millis(10);

/// The longest pause before a waiter without votes asks again.
const PAUSE_MAX: Duration = Duration::from_secs(1);
