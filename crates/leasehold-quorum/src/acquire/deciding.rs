//! Decides what follows from the members' answers: hold the lease, give it back, continue, or fail.

use std::sync::Arc;
use std::time::Duration;

use leasehold_types::{Error, ErrorKind, Fence, MemberFailure, PermitSlot};

use super::state::{Acquisition, MemberState, Phase, Standing};
use crate::ballot::{Decision, majority};
use crate::errors::too_few;
use crate::member::Task;
use crate::member::index::{MemberIndex, Members};
use crate::membership::Access;
use crate::messages::{Lease, Request};
use crate::net::Net;
use crate::operation::{Acquired, Outcome, Progress};
use crate::trust::UntrustedReason;

impl Acquisition {
    /// Carries out what the ballot of the round decides.
    pub(super) fn decide(&mut self, net: &mut Net) {
        if !self.is_asking() {
            return;
        }
        if let Err(error) = net.membership.check_ttl(&self.lock_request) {
            return self.refuse(net, error);
        }
        if let Some(round) = self.round()
            && round.ballot.is_open()
        {
            return self.wait_on(net);
        }
        let counted = self.counted(net);
        if self.round().is_some() && self.has_ended_grant(net.now.instant) {
            return self.hold_too_late(net);
        }
        let Some(round) = self.round_mut() else {
            return;
        };
        match round.ballot.decide(|member| counted.contains(member)) {
            Decision::Wait => self.wait_on(net),
            Decision::Won(_) if self.awaits(net, false) => {}
            Decision::NoQuorum if self.awaits(net, true) => {}
            Decision::Won(fence) => self.hold(net, fence, counted),
            Decision::Confirm(fence, members) => {
                for member in members {
                    self.confirm(net, member, fence);
                }
            }
            Decision::Busy if self.is_queued() => self.fail_round(net, false),
            Decision::Busy => self.end_busy(net),
            Decision::NoQuorum => self.no_quorum(net),
        }
    }

    /// Whether to wait for a moment for members that are not connected yet. A lease on a bare majority ends when
    /// one more server fails, and only a guard's renewal repairs it. A failure would not report what these members
    /// know.
    ///
    /// With `statuses`, also for members that granted with data that this client does not know yet: all members
    /// change together when they note that another one was admitted.
    fn awaits(&mut self, net: &mut Net, statuses: bool) -> bool {
        let (now, began) = (net.now.instant, self.began);
        let end = began + WAIT_MAX;
        let mut is_pending = |(member, state): (MemberIndex, &MemberState)| {
            let membership = &mut net.membership;
            if membership.access(now, member, began) == Access::Pending {
                return true;
            }
            let granted = state.granted().filter(|_| statuses);
            granted.is_some_and(|granted| {
                let from = Some(&granted.incarnation);
                membership.counts(member, granted.sent, from) == Err(UntrustedReason::Changed)
            })
        };
        let awaits = now < end && self.members.iter_enumerated().any(&mut is_pending);
        if let Some(round) = self.round_mut() {
            round.awaits_until = awaits.then_some(end);
        }
        awaits
    }

    /// The members whose grants count: they have a vote, and granted the same permit.
    fn counted(&self, net: &mut Net) -> Members {
        let mut counted = Members::default();
        let slot = self.commonest_slot();
        for (member, state) in self.members.iter_enumerated() {
            let Some(granted) = state.granted() else {
                continue;
            };
            let from = Some(&granted.incarnation);
            let has_vote = net.membership.counts(member, granted.sent, from).is_ok();
            if has_vote && granted.fence.is_some() && granted.slot == slot {
                counted.insert(member);
            }
        }
        counted
    }

    /// A majority granted the lease.
    fn hold(&mut self, net: &mut Net, fence: Fence, counted: Members) {
        let Some(since) = self.since(counted, majority(self.members.len())) else {
            return;
        };
        self.phase = Phase::Held(fence);
        net.known_locks.granted(&self.lock_request.key);
        net.waiters
            .remove(&self.lock_request.key, self.ticket, self.id);
        let slot = self.commonest_slot();
        let acquired = Acquired {
            owner: self.lock_request.owner,
            fence,
            slot,
            term: net.membership.term(&self.lock_request, since),
            notified_at: self.notified_at,
        };
        net.finish(self.id, Outcome::Acquired(acquired));
        if let Some(slot) = slot {
            self.move_permits(net, fence, slot);
        }
    }

    /// The answers took so long that the lease has already ended at a member. That member may have granted
    /// the lock to another owner since, so it no longer says which fence is the greatest.
    fn hold_too_late(&mut self, net: &mut Net) {
        if self.is_queued() {
            return self.fail_round(net, false);
        }
        let text = "the members answered after the end of the lease";
        self.refuse(net, Error::new(ErrorKind::NoQuorum, text));
    }

    /// Ends the acquisition with an error, and gives back what members granted.
    fn refuse(&mut self, net: &mut Net, error: Error) {
        // A request may still be in flight.
        let is_unknown = self.members.iter().any(MemberState::may_have);
        self.withdraw(net);
        let error = match is_unknown {
            true => error.with_unknown_effect(),
            false => error,
        };
        net.finish(self.id, Outcome::Failed(error));
    }

    /// Makes the members that granted another permit move the holder to this one. This happens only once
    /// the lease is held: a late request must not move a permit that counts.
    fn move_permits(&self, net: &mut Net, fence: Fence, slot: PermitSlot) {
        let lease = Lease {
            lock_request: Arc::clone(&self.lock_request),
            fence,
            slot: Some(slot),
        };
        let limit = net.limit_of(lease.lock_request.usable_ttl());
        for (member, state) in self.members.iter_enumerated() {
            if state.slot().is_some_and(|it| it != slot) {
                let request = Request::Renew(vec![lease.clone()]);
                net.send(member, Task::MovePermit, request, limit);
            }
        }
    }

    /// Another owner holds the lock, and the acquisition does not wait.
    fn end_busy(&mut self, net: &mut Net) {
        let busy = self.busy();
        net.waiters
            .note_busy(&self.lock_request.key, net.now.instant);
        self.withdraw(net);
        net.finish(self.id, Outcome::Busy(busy));
    }

    /// Too few members can grant the lease in this round.
    fn no_quorum(&mut self, net: &mut Net) {
        let failures = self.failures(net);
        let total = self.members.len();
        let open = self.members.iter().filter(|it| it.is_asked).count();
        let has_answers = total - failures.len() >= majority(total);
        // Permits that differ between members are a sign of other holders.
        let is_busy = self.lock_request.mode.permits().is_some() && has_answers && open == 0;
        let error = too_few(total, open, failures);
        match self.is_queued() {
            true if error.is_retryable() => {
                if open > 0 {
                    // The answers may end the wait. Without them, the round ends at its time limit.
                } else if has_answers {
                    // A majority granted it, but the grants did not count.
                    self.fail_round(net, true);
                } else if net.has_majority(net.now.instant) {
                    self.leave_and_pause(net, error);
                } else {
                    self.leave_queues(net);
                }
            }
            true => {
                self.withdraw(net);
                net.finish(self.id, Outcome::Failed(error));
            }
            false if is_busy => self.end_busy(net),
            false => self.refuse(net, error),
        }
    }

    /// Why members failed in this round, or have no vote.
    pub(super) fn failures(&self, net: &mut Net) -> Vec<MemberFailure> {
        let (now, membership) = (net.now.instant, &mut net.membership);
        let members = self.members.iter_enumerated();
        let failure = |(member, state): (MemberIndex, &MemberState)| match &state.standing {
            Standing::Failed(error) => {
                let own = || membership.named_failure(member, error.clone());
                Some(membership.obstacle(now, member).unwrap_or_else(own))
            }
            Standing::Granted(granted) => {
                let from = Some(&granted.incarnation);
                let reason = membership.counts(member, granted.sent, from).err()?;
                Some(membership.failure(now, member, &reason))
            }
            // What a member said about the queue before it fell silent is no answer of this round.
            Standing::Out | Standing::Queued(_) if !state.is_asked => {
                membership.obstacle(now, member)
            }
            Standing::Out | Standing::Queued(_) | Standing::Refused(_) => None,
        };
        members.filter_map(failure).collect()
    }

    /// A round of a waiter ends once nothing is in flight or granted: it waits in the queues.
    fn wait_on(&mut self, net: &mut Net) {
        if self.is_queued() && self.is_round_over() {
            self.phase = Phase::Waiting;
        }
        self.report_busy(net);
    }

    /// Tells the driver that a majority is busy, and the position in the queue when it changes.
    pub(super) fn report_busy(&mut self, net: &mut Net) {
        let refused = self.members.iter().filter_map(MemberState::refusal);
        if !self.is_queued() || refused.count() < majority(self.members.len()) {
            return;
        }
        let busy = self.busy();
        if self.reported_busy != Some(busy.position) {
            self.reported_busy = Some(busy.position);
            net.progress(self.id, Progress::Busy(busy));
        }
    }
}

/// How long an attempt waits for members that it knows nothing of yet.
const WAIT_MAX: Duration = Duration::from_millis(100);
