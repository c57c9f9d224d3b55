//! Decides what follows from the members' answers: hold the lease, give it back, continue, or fail.

use std::sync::Arc;
use std::time::Duration;

use leasehold_types::{Error, ErrorKind, Fence, MemberFailure, PermitSlot};

use super::state::{ClaimState, MemberState, Phase};
use crate::ballot::{Decision, majority};
use crate::engine::{Engine, Now};
use crate::errors::too_few;
use crate::member::Task;
use crate::members::Members;
use crate::membership::Access;
use crate::operation::{Acquired, OperationId, Outcome, Progress};
use crate::request::{Lease, Request};

impl Engine {
    /// Carries out what the ballot of the round decides.
    pub(crate) fn decide(&mut self, now: Now, id: OperationId) {
        let Some(acquisition) = self.acquisitions.get(&id) else {
            return;
        };
        if acquisition.phase == Phase::Held {
            return;
        }
        if let Err(error) = self.membership.check_ttl(&acquisition.claim) {
            return self.refuse(now, id, error);
        }
        if acquisition
            .round
            .as_ref()
            .is_some_and(|round| round.ballot.is_open())
        {
            return self.wait_on(id);
        }
        let counted = self.counted(id);
        let Some(acquisition) = self.acquisitions.get_mut(&id) else {
            return;
        };
        let is_queued = acquisition.is_queued();
        if acquisition.round.is_some() && acquisition.has_ended_grant(now.instant) {
            return self.hold_too_late(now, id);
        }
        let Some(round) = &mut acquisition.round else {
            return;
        };
        let decision = round.ballot.decide(|member| counted.contains(member));
        match decision {
            Decision::Wait => self.wait_on(id),
            Decision::Won(_) | Decision::NoQuorum if self.awaits_members(now, id) => {
                self.set_wake(id);
            }
            Decision::Won(fence) => self.hold(now, id, fence, counted),
            Decision::Confirm(fence, members) => {
                for member in members {
                    self.confirm(now, id, member, fence);
                }
            }
            Decision::Busy if is_queued => self.fail_round(now, id),
            Decision::Busy => self.end_busy(now, id),
            Decision::NoQuorum => self.no_quorum(now, id),
        }
    }

    /// Whether to ask members first that are not connected yet. A lease on a bare majority ends when one
    /// more server fails, and only a guard's renewal repairs it. A failure would not report what these
    /// members know. A new client therefore waits for a moment.
    fn awaits_members(&mut self, now: Now, id: OperationId) -> bool {
        let Some(acquisition) = self.acquisitions.get_mut(&id) else {
            return false;
        };
        let (began, end) = (acquisition.began, acquisition.began + CONNECT_WAIT_MAX);
        let (members, membership) = (self.members.len(), &mut self.membership);
        let is_pending = |member| membership.access(now.instant, member, began) == Access::Pending;
        let awaits = now.instant < end && (0..members).any(is_pending);
        acquisition.awaits_until = awaits.then_some(end);
        awaits
    }

    /// The members whose grants count: they have a vote, and granted the same permit.
    fn counted(&mut self, id: OperationId) -> Members {
        let mut counted = Members::default();
        let Some(acquisition) = self.acquisitions.get(&id) else {
            return counted;
        };
        let slot = acquisition.commonest_slot();
        for (member, member_state) in acquisition.members.iter().enumerate() {
            let Some(granted) = member_state.granted() else {
                continue;
            };
            let from = Some(&granted.incarnation);
            let has_vote = self.membership.counts(member, granted.sent, from).is_ok();
            if has_vote && granted.fence.is_some() && granted.slot == slot {
                counted.insert(member);
            }
        }
        counted
    }

    /// A majority granted the lease.
    fn hold(&mut self, now: Now, id: OperationId, fence: Fence, counted: Members) {
        let Some(acquisition) = self.acquisitions.get_mut(&id) else {
            return;
        };
        let Some(since) = acquisition.since(counted, majority(acquisition.members.len())) else {
            return;
        };
        acquisition.phase = Phase::Held;
        acquisition.fence = Some(fence);
        acquisition.round = None;
        acquisition.pause = None;
        let slot = acquisition.commonest_slot();
        let (claim, ticket) = (Arc::clone(&acquisition.claim), acquisition.ticket);
        let notified_at = acquisition.notified_at;
        self.waiters.remove(&claim.key, ticket, id);
        self.set_wake(id);
        let acquired = Acquired {
            owner: claim.owner,
            fence,
            slot,
            term: self.membership.term(&claim, since),
            notified_at,
        };
        self.finish(id, Outcome::Acquired(acquired));
        if let Some(slot) = slot {
            self.move_permits(now, id, slot);
        }
    }

    /// The answers took so long that the lease has already ended at a member. That member may have granted
    /// the lock to another claim since, so it no longer says which fence is the greatest.
    fn hold_too_late(&mut self, now: Now, id: OperationId) {
        let Some(acquisition) = self.acquisitions.get(&id) else {
            return;
        };
        if acquisition.is_queued() {
            return self.fail_round(now, id);
        }
        let text = "the members answered after the end of the lease";
        self.refuse(now, id, Error::new(ErrorKind::NoQuorum, text));
    }

    /// Ends the acquisition with an error, and gives back what members granted.
    fn refuse(&mut self, now: Now, id: OperationId, error: Error) {
        let Some(acquisition) = self.acquisitions.get(&id) else {
            return;
        };
        // A request may still be in flight.
        let is_unknown = acquisition.members.iter().any(MemberState::may_have);
        self.withdraw(now, id);
        let error = match is_unknown {
            true => error.with_unknown_effect(),
            false => error,
        };
        self.finish(id, Outcome::Failed(error));
    }

    /// Makes the members that granted another permit move the holder to this one. This happens only once
    /// the lease is held: a late request must not move a permit that counts.
    fn move_permits(&mut self, now: Now, id: OperationId, slot: PermitSlot) {
        let Some(acquisition) = self.acquisitions.get(&id) else {
            return;
        };
        let Some(fence) = acquisition.fence else {
            return;
        };
        let differs = |member_state: &MemberState| member_state.slot().is_some_and(|it| it != slot);
        let members = acquisition.members.iter().enumerate();
        let differing: Vec<usize> = members
            .filter(|(_, member_state)| differs(member_state))
            .map(|(member, _)| member)
            .collect();
        let lease = Lease {
            claim: Arc::clone(&acquisition.claim),
            fence,
            slot: Some(slot),
        };
        for member in differing {
            let limit = self.limit_of(lease.claim.usable_ttl());
            let request = Request::Renew(vec![lease.clone()]);
            self.send(now, member, Task::MovePermit, request, limit);
        }
    }

    /// Another owner holds the lock, and the acquisition does not wait.
    fn end_busy(&mut self, now: Now, id: OperationId) {
        let Some(acquisition) = self.acquisitions.get(&id) else {
            return;
        };
        let busy = acquisition.busy();
        self.waiters.note_busy(&acquisition.claim.key, now.instant);
        self.withdraw(now, id);
        self.finish(id, Outcome::Busy(busy));
    }

    /// Too few members can grant the lease in this round.
    fn no_quorum(&mut self, now: Now, id: OperationId) {
        let failures = self.failures(now, id);
        let Some(acquisition) = self.acquisitions.get(&id) else {
            return;
        };
        let (total, is_queued) = (acquisition.members.len(), acquisition.is_queued());
        let members = acquisition.members.iter();
        let open = members.filter(|it| it.asked.is_some()).count();
        let has_answers = total - failures.len() >= majority(total);
        // Permits that differ between members are a sign of other holders.
        let is_busy = acquisition.claim.mode.permits().is_some() && has_answers && open == 0;
        let error = too_few(total, open, failures);
        if is_queued && error.is_retryable() {
            if open > 0 {
                // The answers may end the wait. Without them, the round ends at its time limit.
            } else if has_answers {
                self.fail_round(now, id);
            } else if self.has_majority(now, now.instant) {
                self.leave_and_pause(now, id, error);
            } else {
                self.leave_queues(now, id);
            }
            return;
        }
        if is_busy && !is_queued {
            return self.end_busy(now, id);
        }
        if is_queued {
            self.withdraw(now, id);
            return self.finish(id, Outcome::Failed(error));
        }
        self.refuse(now, id, error);
    }

    /// Why members failed in this round, or have no vote.
    fn failures(&mut self, now: Now, id: OperationId) -> Vec<MemberFailure> {
        let Some(acquisition) = self.acquisitions.get(&id) else {
            return Vec::new();
        };
        let membership = &mut self.membership;
        let members = acquisition.members.iter().enumerate();
        let failure = |(member, member_state): (usize, &MemberState)| match &member_state.claim {
            ClaimState::Failed(error) => {
                let named = error.clone().with_store(membership.id(member).as_str());
                let own = || MemberFailure::new(membership.id(member).clone(), named);
                let obstacle = membership.obstacle(now.instant, member);
                Some(obstacle.unwrap_or_else(own))
            }
            ClaimState::Granted(granted) => {
                let from = Some(&granted.incarnation);
                let reason = membership.counts(member, granted.sent, from).err()?;
                Some(membership.failure(now.instant, member, &reason))
            }
            ClaimState::Out if member_state.asked.is_none() => {
                membership.obstacle(now.instant, member)
            }
            ClaimState::Out | ClaimState::Queued(_) | ClaimState::Refused(_) => None,
        };
        members.filter_map(failure).collect()
    }

    /// A round of a waiter ends once nothing is in flight or granted: it waits in the queues.
    fn wait_on(&mut self, id: OperationId) {
        let Some(acquisition) = self.acquisitions.get_mut(&id) else {
            return;
        };
        if acquisition.is_queued() && acquisition.is_round_over() {
            acquisition.round = None;
        }
        self.report_busy(id);
    }

    /// Tells the driver that a majority is busy, and the place in the queue when it changes.
    pub(crate) fn report_busy(&mut self, id: OperationId) {
        let Some(acquisition) = self.acquisitions.get_mut(&id) else {
            return;
        };
        let refused = acquisition
            .members
            .iter()
            .filter_map(MemberState::refusal)
            .count();
        if !acquisition.is_queued() || refused < majority(acquisition.members.len()) {
            return;
        }
        let busy = acquisition.busy();
        if acquisition.reported_busy != Some(busy.place) {
            acquisition.reported_busy = Some(busy.place);
            self.progress(id, Progress::Busy(busy));
        }
    }
}

/// How long an attempt waits for members that are not connected yet, though a majority granted it.
const CONNECT_WAIT_MAX: Duration = Duration::from_millis(100);
