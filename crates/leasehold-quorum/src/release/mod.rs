//! Releases leases, ended waits, and what failed attempts left behind.

use std::sync::Arc;

use leasehold_types::{Error, ErrorKind, LockRequest, LostReason, MemberFailure, Mode};

use crate::acquire::Acquiring;
use crate::errors::too_few;
use crate::fanout::{Contact, Fanout};
use crate::member::index::MemberIndex;
use crate::member::{Answered, ReleaseTask, Task};
use crate::membership::Access;
use crate::messages::{Lease, Reply, Request, Requeue, Successor};
use crate::net::{Net, Reach, Timer};
use crate::operation::operations::{Next, Operations};
use crate::operation::{OperationId, Outcome};
use crate::tally::{LeaseVote, Tally, Verdict};
use crate::trust::UntrustedReason;

/// One release. It lasts until each member answered.
#[derive(Debug)]
pub(crate) struct Release {
    id: OperationId,
    lock_request: Arc<LockRequest>,
    /// Other clients may wait for the lock.
    contended: bool,
    fanout: Fanout,
    tally: Tally,
    failures: Vec<MemberFailure>,
    /// Whether the outcome was returned.
    is_decided: bool,
    /// When members that are not connected yet are waited for no longer.
    timer: Option<leasehold_types::BootInstant>,
}

impl Release {
    /// Begins to release a lease. `has_waited` says whether it had a holder before, or may have had one.
    pub(crate) fn new(
        net: &mut Net,
        id: OperationId,
        lock_request: Arc<LockRequest>,
        has_waited: bool,
    ) -> Self {
        let now = net.now.instant;
        // The script releases these, and may begin a gap for foreign clients.
        let begins_gap = has_waited
            || lock_request.mode != Mode::Exclusive
            || net.waiters.of(&lock_request.key).next().is_some();
        let contended = begins_gap || !net.has_no_known_waiters(&lock_request.key);
        if begins_gap {
            net.waiters.note_busy(&lock_request.key, now);
        }
        Self {
            id,
            lock_request,
            contended,
            fanout: Fanout::new(net),
            tally: Tally::new(net.members.len()),
            failures: Vec::new(),
            is_decided: false,
            timer: None,
        }
    }

    /// The timer is due.
    pub(crate) fn wake(&mut self, net: &mut Net, others: &mut Operations<Acquiring>) -> Next {
        self.timer = None;
        self.advance(net, others)
    }

    /// Sends the release to all members at once, if they can be asked, and otherwise to each that can be.
    pub(crate) fn begin(&mut self, net: &mut Net, others: &mut Operations<Acquiring>) -> Next {
        let now = net.now.instant;
        let is_usual = !self.contended
            && net
                .members
                .keys()
                .all(|it| net.membership.access(now, it, now) == Access::Open);
        #[cfg(test)]
        let is_usual = is_usual && !net.never_plain;
        if !is_usual {
            return self.advance(net, others);
        }
        let lock_request = Arc::clone(&self.lock_request);
        let limit = net.limit_of(lock_request.usable_ttl());
        let request = Request::Free { lock_request };
        net.send_to_all(|| Task::Free(self.id), request, limit);
        self.fanout.asked_all();
        Next::Runs
    }

    /// Sends a release to the members that can be asked by now.
    pub(crate) fn advance(&mut self, net: &mut Net, others: &mut Operations<Acquiring>) -> Next {
        let (began, now) = (self.fanout.began(), net.now.instant);
        let end = began + net.limit_of(self.lock_request.usable_ttl());
        let (tally, failures) = (&mut self.tally, &mut self.failures);
        let sending = Sending {
            lease: Lease::of(&self.lock_request),
            requeue: None,
            operation: Some(self.id),
            is_contended: self.contended,
        };
        self.fanout.ask(|member| {
            let mut sending = sending.clone();
            match net.reach(member, began, end) {
                Reach::Later => return Contact::Later,
                Reach::Open => match sending.send(net, others, member) {
                    Ok(()) => return Contact::Sent,
                    Err(error) => failures.push(failure(net, member, error)),
                },
                Reach::Closed(obstacle) => {
                    failures.extend(obstacle);
                    // A member that is not connected gets it later.
                    sending.operation = None;
                    sending.is_contended = true;
                    let _ = sending.send(net, others, member);
                }
            }
            tally.count(LeaseVote::Unknown);
            Contact::Failed
        });
        let end = (now < end && self.fanout.is_waiting()).then_some(end);
        net.set_timer(Timer::Release(self.id), &mut self.timer, end);
        self.decide(net)
    }

    /// Returns the lease that it frees.
    pub(crate) fn lease(&self) -> Lease {
        Lease::of(&self.lock_request)
    }

    /// Whether its outcome is known, and each member that can be asked was asked.
    pub(crate) fn is_decided(&self) -> bool {
        self.is_decided && !self.is_waiting()
    }

    /// Whether it waits for members that are not connected yet.
    pub(crate) fn is_waiting(&self) -> bool {
        self.fanout.is_waiting()
    }

    /// The member could not free the lease with plain commands: other clients wait.
    pub(crate) fn contended(
        &mut self,
        net: &mut Net,
        others: &mut Operations<Acquiring>,
        member: MemberIndex,
    ) -> Next {
        self.contended = true;
        net.waiters
            .note_busy(&self.lock_request.key, net.now.instant);
        let sending = Sending {
            lease: Lease::of(&self.lock_request),
            requeue: None,
            operation: Some(self.id),
            is_contended: true,
        };
        match sending.send(net, others, member) {
            Ok(()) => Next::Runs,
            Err(error) => self.lost(net, member, error),
        }
    }

    /// A member answered. It counts only if the member has a vote.
    pub(crate) fn answered(&mut self, net: &mut Net, from: &Answered, reply: Reply) -> Next {
        let (member, data) = (from.member, Some(from.incarnation));
        let is_freed = matches!(reply, Reply::Released { freed: true, .. });
        match net.membership.counts(member, from.sent, data) {
            // A lease that was there had not been forgotten.
            Err(UntrustedReason::Changed) if is_freed => {}
            Err(reason) => return self.lost(net, member, reason.error()),
            Ok(()) => {}
        }
        let vote = match reply {
            Reply::Released { freed: true, .. } => LeaseVote::Valid,
            // The lease had ended, or belonged to another owner by then.
            Reply::Released { freed: false, .. } => LeaseVote::Lost(LostReason::Gone),
            Reply::Failed(error) => return self.lost(net, member, error),
            _ => LeaseVote::Unknown,
        };
        self.count(net, vote)
    }

    /// A request has no reply, or not in time.
    pub(crate) fn lost(&mut self, net: &mut Net, member: MemberIndex, error: Error) -> Next {
        self.failures.push(failure(net, member, error));
        self.count(net, LeaseVote::Unknown)
    }

    fn count(&mut self, net: &mut Net, vote: LeaseVote) -> Next {
        self.fanout.answered();
        self.tally.count(vote);
        self.decide(net)
    }

    fn decide(&mut self, net: &mut Net) -> Next {
        if !self.is_decided
            && let Some(outcome) = self.outcome()
        {
            self.is_decided = true;
            net.finish(self.id, outcome);
        }
        match self.fanout.is_over() {
            true => Next::Over,
            false => Next::Runs,
        }
    }

    fn outcome(&mut self) -> Option<Outcome> {
        use leasehold_types::ReleaseReply::{Released, WasLost};
        match self.tally.verdict() {
            Verdict::Open => None,
            Verdict::Valid => Some(Outcome::Released(Released)),
            Verdict::Lost(_) => Some(Outcome::Released(WasLost)),
            Verdict::Unknown => {
                let failures = std::mem::take(&mut self.failures);
                let error = too_few(self.tally.members(), self.fanout.open(), failures);
                Some(Outcome::Failed(error.with_unknown_effect()))
            }
        }
    }
}

fn failure(net: &Net, member: MemberIndex, error: Error) -> MemberFailure {
    let obstacle = net.membership.obstacle(net.now.instant, member);
    let id = net.membership.id(member);
    obstacle.unwrap_or_else(|| MemberFailure::new(id.clone(), error))
}

/// A release of one lease at one member.
#[derive(Clone, Debug)]
pub(crate) struct Sending {
    pub(crate) lease: Lease,
    pub(crate) requeue: Option<Requeue>,
    /// The operation that counts the answer.
    pub(crate) operation: Option<OperationId>,
    /// Other clients may wait for the lock, so plain commands may not free it.
    pub(crate) is_contended: bool,
}

impl Sending {
    /// Releases what an earlier operation left behind.
    pub(crate) fn rest(lease: Lease) -> Self {
        Self {
            lease,
            requeue: None,
            operation: None,
            is_contended: true,
        }
    }

    /// Sends the release, and names the oldest waiter of this client as the successor. A member that takes no requests
    /// gets it later.
    ///
    /// # Errors
    ///
    /// If the member takes no requests.
    pub(crate) fn send(
        self,
        net: &mut Net,
        others: &mut Operations<Acquiring>,
        member: MemberIndex,
    ) -> Result<(), Error> {
        let Self {
            lease,
            requeue,
            operation,
            is_contended,
        } = self;
        if !net.takes_release(member) {
            net.members[member].owe(lease, net.now.instant);
            let text = "the member does not answer";
            return Err(Error::new(ErrorKind::Unreachable, text));
        }
        let successor = match requeue {
            None => reserve_successor(net, others, member, &lease.lock_request),
            Some(_) => None,
        };
        let (named, successor) = successor.unzip();
        let lock_request = Arc::clone(&lease.lock_request);
        let limit = net.limit_of(lock_request.usable_ttl());
        if let Some(id) = operation.filter(|_| !is_contended && named.is_none()) {
            net.send(
                member,
                Task::Free(id),
                Request::Free { lock_request },
                limit,
            );
            return Ok(());
        }
        let request = Request::Release {
            lock_request,
            requeue,
            successor,
        };
        let task = Task::Release(Box::new(ReleaseTask {
            lease,
            operation,
            successor: named,
        }));
        net.send(member, task, request, limit);
        Ok(())
    }
}

/// Begins a round for this client's oldest waiter that waits at the member and has no request in flight
/// there, and counts the release as its request. Returns `None` without a majority: the lock would stop at a
/// client that cannot use it.
fn reserve_successor(
    net: &mut Net,
    others: &mut Operations<Acquiring>,
    member: MemberIndex,
    lock_request: &LockRequest,
) -> Option<((OperationId, u32), Successor)> {
    let may_succeed = |id: &OperationId| {
        let waiter = others.get(*id).and_then(Acquiring::as_ordinary);
        waiter.is_some_and(|it| it.may_succeed(member))
    };
    let id = net.waiters.of(&lock_request.key).find(may_succeed)?;
    if !net.has_majority(net.now.instant) {
        return None;
    }
    others.get_mut(id)?.ordinary(net).succeed(net, member)
}

/// Ends a wait at a member that takes requests, and leaves a lease of its owner alone.
pub(crate) fn send_dequeue(net: &mut Net, member: MemberIndex, lock_request: Arc<LockRequest>) {
    if net.takes_release(member) {
        let limit = net.limit_of(lock_request.usable_ttl());
        let request = Request::Dequeue { lock_request };
        net.send(member, Task::Dequeue, request, limit);
    }
}
