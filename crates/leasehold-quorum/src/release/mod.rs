//! Releases leases, ended waits, and what failed attempts left behind.

pub(crate) mod state;

use std::sync::Arc;
use std::time::Duration;

use leasehold_types::{Claim, Error, ErrorKind, MemberFailure, Mode};

use crate::acquire::HOT_PAUSE;
use crate::acquire::state::{Acquisition, Phase};
use crate::engine::{Engine, Now};
use crate::errors::too_few;
use crate::member::{Answered, Task};
use crate::members::Members;
use crate::membership::Access;
use crate::operation::{OperationId, Outcome, ReleaseMode};
use crate::reply::{Notification, Reply};
use crate::request::{Lease, Request, Requeue, Successor};
use crate::tally::{LeaseVote, Tally, Verdict};
use state::Release;

impl Engine {
    pub(crate) fn start_release(
        &mut self,
        now: Now,
        id: OperationId,
        claim: Arc<Claim>,
        mode: ReleaseMode,
    ) {
        let former = self.by_owner.get(&claim.owner).copied();
        let former = former.and_then(|id| self.forget(id));
        let has_waited = former.as_ref().is_none_or(|it| it.reported_busy.is_some());
        if mode == ReleaseMode::Detach {
            if let Some(former) = former {
                self.leave_other_queues(now, &former);
            }
            let freed = leasehold_types::Release::Released;
            return self.finish(id, Outcome::Released(freed));
        }
        if has_waited {
            // Others may wait still, and the release may begin a gap.
            self.waiters.note_busy(&claim.key, now.instant);
        }
        let contended = has_waited
            || claim.mode != Mode::Exclusive
            || self.waiters.was_busy(&claim.key, now.instant, HOT_PAUSE);
        let release = Release {
            claim,
            began: now.instant,
            contended,
            tally: Tally::new(self.members.len()),
            failures: Vec::new(),
            open: 0,
            pending: Members::first(self.members.len()),
            decided: false,
        };
        self.releases.insert(id, release);
        self.advance_release(now, id);
    }

    /// Ends the wait at the members that did not grant the lease. Otherwise they would keep the entry until
    /// its turn.
    fn leave_other_queues(&mut self, now: Now, former: &Acquisition) {
        for (member, member_state) in former.members.iter().enumerate() {
            if member_state.may_have() && member_state.granted().is_none() {
                self.send_dequeue(now, member, &former.claim);
            }
        }
    }

    /// Ends a wait at a member that takes requests, and leaves a lease of its owner alone.
    fn send_dequeue(&mut self, now: Now, member: usize, claim: &Arc<Claim>) {
        let is_silent = !self.membership.is_reachable(member);
        if self.members[member].takes_release(is_silent) {
            let claim = Arc::clone(claim);
            let limit = self.limit_of(claim.usable_ttl());
            self.send(
                now,
                member,
                Task::Dequeue,
                Request::Dequeue { claim },
                limit,
            );
        }
    }

    /// Sends a release to the members that can be asked by now.
    pub(crate) fn advance_release(&mut self, now: Now, id: OperationId) {
        let Some(release) = self.releases.get_mut(&id) else {
            return;
        };
        let (claim, began) = (Arc::clone(&release.claim), release.began);
        let pending = std::mem::take(&mut release.pending);
        // A member that refuses at once must not end the release before the others are asked.
        release.open += 1;
        let end = began + self.limit_of(claim.usable_ttl());
        let is_over = end <= now.instant;
        for member in pending.iter() {
            let access = self.membership.access(now.instant, member, began);
            let obstacle = || self.membership.obstacle(now.instant, member);
            let obstacle = (access != Access::Open).then(obstacle).flatten();
            let Some(release) = self.releases.get_mut(&id) else {
                return;
            };
            let operation = match access {
                Access::Pending if !is_over => {
                    release.pending.insert(member);
                    continue;
                }
                Access::Open => {
                    release.open += 1;
                    Some(id)
                }
                Access::Pending | Access::Closed => {
                    release.tally.count(LeaseVote::Unknown);
                    release.failures.extend(obstacle);
                    None
                }
            };
            // A member that is not connected gets it later.
            let lease = Self::lease_of(&claim);
            self.send_release(now, member, lease, None, operation);
        }
        let Some(release) = self.releases.get_mut(&id) else {
            return;
        };
        release.open -= 1;
        if !is_over && !release.pending.is_empty() {
            self.set_timer(id, None, Some(end));
        }
        self.decide_release(id);
    }

    /// Returns whether a majority decided each release, and the driver has all requests. What is left is the
    /// replies of members that are slow.
    pub fn is_decided(&self) -> bool {
        self.has_no_output() && self.releases.values().all(Release::is_decided)
    }

    /// Sends the releases again that members have not answered. The client may end before they do, and the first
    /// request of a release may change nothing and ask for another one.
    pub fn repeat_releases(&mut self, now: Now) {
        for member in 0..self.members.len() {
            for lease in self.members[member].releasing() {
                self.send_release(now, member, lease, None, None);
            }
        }
    }

    /// Continues the releases that wait for a member.
    pub(crate) fn resume_releases(&mut self, now: Now) {
        let waiting = self.releases.iter();
        let waiting = waiting.filter(|(_, it)| !it.pending.is_empty());
        let mut waiting: Vec<OperationId> = waiting.map(|(id, _)| *id).collect();
        waiting.sort_unstable();
        for id in waiting {
            self.advance_release(now, id);
        }
    }

    /// Sends the releases that a member could not receive before.
    pub(crate) fn send_owed(&mut self, now: Now, member: usize) {
        let is_silent = !self.membership.is_reachable(member);
        while let Some(lease) = self.members[member].pop_owed(now.instant, is_silent) {
            self.send_release(now, member, lease, None, None);
        }
    }

    /// Sends a release to one member, and names the oldest waiter of this client as the successor.
    pub(crate) fn send_release(
        &mut self,
        now: Now,
        member: usize,
        lease: Lease,
        requeue: Option<Requeue>,
        operation: Option<OperationId>,
    ) {
        let is_silent = !self.membership.is_reachable(member);
        if !self.members[member].takes_release(is_silent) {
            self.members[member].owe(lease, now.instant);
            if let Some(id) = operation {
                let error = Error::new(ErrorKind::Unreachable, "the member does not answer");
                self.count_release(now, member, id, Reply::Failed(error));
            }
            return;
        }
        let successor = match requeue {
            None => self.reserve_successor(now, member, &lease.claim),
            Some(_) => None,
        };
        let (named, successor) = successor.unzip();
        let claim = Arc::clone(&lease.claim);
        let limit = self.limit_of(claim.usable_ttl());
        let release = operation.and_then(|id| self.releases.get(&id));
        let request = match release.is_some_and(|it| !it.contended) && named.is_none() {
            true => Request::Free { claim },
            false => Request::Release {
                claim,
                requeue,
                successor,
            },
        };
        let task = Task::Release {
            lease,
            operation,
            successor: named,
        };
        self.send(now, member, task, request, limit);
    }

    /// The lease could not be freed alone.
    pub(crate) fn handle_contended(
        &mut self,
        now: Now,
        member: usize,
        lease: Lease,
        operation: Option<OperationId>,
    ) {
        if let Some(release) = operation.and_then(|id| self.releases.get_mut(&id)) {
            release.contended = true;
        }
        // Another client waits, and the release may begin a gap.
        self.waiters.note_busy(&lease.claim.key, now.instant);
        self.send_release(now, member, lease, None, operation);
    }

    /// Begins a round for this client's oldest waiter that waits at the member and has no request in flight
    /// there, and counts the release as its request. Returns `None` without a majority: the lock would stop at a
    /// client that cannot use it.
    fn reserve_successor(
        &mut self,
        now: Now,
        member: usize,
        claim: &Claim,
    ) -> Option<((OperationId, u32), Successor)> {
        let is_ready = |id: &OperationId| {
            self.acquisitions.get(id).is_some_and(|acquisition| {
                let member_state = &acquisition.members[member];
                let is_idle = member_state.asked.is_none() && member_state.is_queued();
                is_idle && acquisition.phase == Phase::Asking && acquisition.pause.is_none()
            })
        };
        let id = self.waiters.of(&claim.key).find(is_ready)?;
        if !self.has_majority(now, now.instant) {
            return None;
        }
        self.begin_round(now, id);
        let acquisition = self.acquisitions.get_mut(&id)?;
        let round = acquisition.round.as_ref()?;
        let successor = Successor {
            claim: Arc::clone(&acquisition.claim),
            proposal: round.proposal,
            ticket: acquisition.ticket?,
            preferred: acquisition.preferred,
        };
        let member_state = &mut acquisition.members[member];
        member_state.number += 1;
        member_state.asked = Some(now.instant);
        let number = member_state.number;
        self.set_wake(id);
        Some(((id, number), successor))
    }

    /// Takes in the reply to a release. It counts only from a member with a vote.
    pub(crate) fn handle_release_reply(
        &mut self,
        now: Now,
        from: &Answered,
        id: OperationId,
        reply: Reply,
    ) {
        let (member, data) = (from.member, Some(&from.incarnation));
        let reply = match self.membership.counts(member, from.sent, data) {
            Ok(()) => reply,
            Err(reason) => Reply::Failed(reason.error()),
        };
        self.count_release(now, member, id, reply);
    }

    pub(crate) fn count_release(&mut self, now: Now, member: usize, id: OperationId, reply: Reply) {
        let Some(release) = self.releases.get_mut(&id) else {
            return;
        };
        release.open -= 1;
        let vote = match reply {
            Reply::Released { freed: true, .. } => LeaseVote::Valid,
            // The lease had ended, or belonged to another owner by then.
            Reply::Released { freed: false, .. } => {
                LeaseVote::Lost(leasehold_types::LostReason::Gone)
            }
            Reply::Failed(error) => {
                let obstacle = self.membership.obstacle(now.instant, member);
                let id = self.membership.id(member).clone();
                let failure = obstacle.unwrap_or_else(|| MemberFailure::new(id, error));
                release.failures.push(failure);
                LeaseVote::Unknown
            }
            _ => LeaseVote::Unknown,
        };
        release.tally.count(vote);
        self.decide_release(id);
    }

    fn decide_release(&mut self, id: OperationId) {
        let Some(release) = self.releases.get_mut(&id) else {
            return;
        };
        let outcome = match release.tally.verdict() {
            Verdict::Open => None,
            Verdict::Valid => Some(Outcome::Released(leasehold_types::Release::Released)),
            Verdict::Lost(_) => Some(Outcome::Released(leasehold_types::Release::WasLost)),
            Verdict::Unknown => {
                let failures = std::mem::take(&mut release.failures);
                let error = too_few(self.members.len(), release.open, failures);
                Some(Outcome::Failed(error.with_unknown_effect()))
            }
        };
        let is_new =
            outcome.is_some() && !std::mem::replace(&mut release.decided, outcome.is_some());
        let is_over = release.open == 0 && release.pending.is_empty();
        if let Some(outcome) = outcome.filter(|_| is_new) {
            self.finish(id, outcome);
        }
        if is_over {
            self.releases.remove(&id);
        }
    }

    /// A member notified a waiter that this client does not have. Its entry may have been left behind, so it
    /// leaves the queue. A message is only a hint, which anyone may publish, so no lease ends.
    pub(crate) fn dequeue_unknown(&mut self, now: Now, member: usize, notification: Notification) {
        let Notification { key, waiter, mode } = notification;
        let own = self.client.as_ref().filter(|it| it.id == waiter.client());
        let Some(client) = own.cloned() else {
            return;
        };
        let claim = Claim::new(key, waiter, DEQUEUE_TERM, now.wall, client).with_mode(mode);
        self.send_dequeue(now, member, &Arc::new(claim));
    }
}

/// An entry that was left behind has no lease. This only limits the time of the request.
const DEQUEUE_TERM: Duration = Duration::from_secs(1);
