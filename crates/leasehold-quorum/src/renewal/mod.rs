//! Renews leases: one request per member for all leases of an operation.
//!
//! The answers are tallied separately for each lease. A lease that a majority extended is repaired at the
//! members that lost it. A lease that ended is not repaired. It is released again where an earlier repair
//! may take effect late.

mod lease_outcome;
#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::time::Duration;

use leasehold_types::{
    BootInstant, Error, ErrorKind, Held, LockRequest, MemberFailure, Owner, RenewReply,
};

use crate::fanout::{Contact, Fanout};
use crate::member::index::MemberIndex;
use crate::member::{Answered, RenewalTask, Task};
use crate::membership::Membership;
use crate::messages::{Lease, LeaseState, Reply, Request};
use crate::net::{BACKGROUND_LIMIT, Net, Timer};
use crate::operation::operations::{Next, Operations};
use crate::operation::{OperationId, Outcome, ReleaseMode};
use lease_outcome::LeaseOutcome;

/// The renewals of one client that are under way, and the repairs that may still take effect.
#[derive(Debug, Default)]
pub(crate) struct Renewals {
    rounds: Operations<Round>,
    repairs: Vec<Repair>,
    /// When the first repair is released again.
    timer: Option<BootInstant>,
}

/// One renewal of several leases.
#[derive(Debug)]
struct Round {
    id: OperationId,
    leases: Vec<Lease>,
    outcomes: Vec<LeaseOutcome>,
    fanout: Fanout,
    /// Whether the outcome was returned.
    is_decided: bool,
}

/// A repair of one lease at one member that may still take effect.
#[derive(Debug)]
struct Repair {
    id: OperationId,
    member: MemberIndex,
    lock_request: Arc<LockRequest>,
    /// Set when the reply was lost: the request takes no effect after this.
    lost_until: Option<BootInstant>,
    /// Set when the lease was released: when to release it here again.
    free_at: Option<BootInstant>,
}

impl Renewals {
    /// Renews leases. A member that may not be asked counts as failed. A new client waits for the first
    /// connections.
    pub(crate) fn start(&mut self, net: &mut Net, id: OperationId, leases: Vec<Held>) {
        for held in &leases {
            // Only the latest renewal knows the mode in which the lease is held.
            self.repair_no_more(held.request.owner);
        }
        let (round, repairs) = (Round::new(net, id, leases), &mut self.repairs);
        self.rounds.start(id, round, |it| it.ask(net, repairs));
    }

    /// Continues the renewals that wait for a member.
    pub(crate) fn resume(&mut self, net: &mut Net) {
        let repairs = &mut self.repairs;
        self.rounds
            .handle_all(|it| it.fanout.is_waiting(), |it| it.ask(net, repairs));
    }

    /// Takes in the reply to a request.
    pub(crate) fn answered(
        &mut self,
        net: &mut Net,
        from: &Answered,
        task: RenewalTask,
        reply: Reply,
    ) {
        match (task, reply) {
            (RenewalTask::Renew(id), Reply::Renewed(states)) => {
                let repairs = &mut self.repairs;
                self.rounds.handle(id, |it| {
                    it.count(net, from, states);
                    it.advance(net, repairs)
                });
            }
            (RenewalTask::Renew(_), reply) => {
                let error = match reply {
                    Reply::Failed(error) => error,
                    _ => Error::new(ErrorKind::InvalidResponse, "not the answer to a renewal"),
                };
                self.lost(net, from.member, task, error);
            }
            // If the lease has ended since, its release followed the repair on the same connection.
            (RenewalTask::Repair(id), _) => {
                self.repairs
                    .retain(|repair| (repair.id, repair.member) != (id, from.member));
                self.set_timer(net);
            }
            (RenewalTask::Free, _) => {}
        }
    }

    /// A request reached its limit, or its connection broke.
    pub(crate) fn lost(
        &mut self,
        net: &mut Net,
        member: MemberIndex,
        task: RenewalTask,
        error: Error,
    ) {
        match task {
            RenewalTask::Renew(id) => {
                let repairs = &mut self.repairs;
                self.rounds.handle(id, |it| {
                    it.fanout.answered();
                    it.fail(&net.membership.named_failure(member, error));
                    it.advance(net, repairs)
                });
            }
            RenewalTask::Repair(id) => {
                let lost = |it: &&mut Repair| it.id == id && it.member == member;
                for repair in self.repairs.iter_mut().filter(lost) {
                    repair.lost_until = Some(net.now.instant + repair.lock_request.ttl);
                }
            }
            RenewalTask::Free => {}
        }
    }

    /// The lease is released or detached: from now on it is restored nowhere.
    pub(crate) fn end(&mut self, net: &mut Net, lock_request: &LockRequest, mode: ReleaseMode) {
        let now = net.now.instant;
        self.repair_no_more(lock_request.owner);
        let is_over = |repair: &Repair| match repair.lost_until {
            _ if mode == ReleaseMode::Detach => true,
            until => until.is_some_and(|until| until <= now),
        };
        self.repairs
            .retain(|repair| repair.lock_request.owner != lock_request.owner || !is_over(repair));
        for repair in &mut self.repairs {
            if repair.lock_request.owner == lock_request.owner {
                // As late as possible, but before what was restored expires.
                repair.free_at = Some(now + lock_request.ttl.mul_f64(0.9));
            }
        }
        self.set_timer(net);
    }

    /// The timer is due: releases again what late repairs may have restored.
    pub(crate) fn wake(&mut self, net: &mut Net) {
        self.timer = None;
        let now = net.now.instant;
        let due = |repair: &mut Repair| repair.free_at.is_some_and(|at| at <= now);
        for Repair {
            member,
            lock_request,
            ..
        } in self.repairs.extract_if(.., due)
        {
            let limit = net.limit_of(lock_request.usable_ttl());
            let request = Request::Release {
                lock_request,
                requeue: None,
                successor: None,
            };
            net.send(member, Task::Renewal(RenewalTask::Free), request, limit);
        }
        self.set_timer(net);
    }

    fn set_timer(&mut self, net: &mut Net) {
        let due = self.repairs.iter().filter_map(|it| it.free_at).min();
        net.set_timer(Timer::Repairs, &mut self.timer, due);
    }

    fn repair_no_more(&mut self, owner: Owner) {
        for round in self.rounds.values_mut() {
            for (lease, outcome) in round.leases.iter().zip(&mut round.outcomes) {
                outcome.repairs &= lease.lock_request.owner != owner;
            }
        }
    }
}

/// Returns why the member may not be asked. Asks it for its status if that is old.
fn obstacle(net: &mut Net, member: MemberIndex) -> Option<MemberFailure> {
    let now = net.now.instant;
    net.membership.access(now, member, now);
    net.membership.obstacle(now, member)
}

/// The shortest limit of renewals of these leases. It is longer than that of an attempt: a store that answers within it
/// is slow, and its leases do not end for that.
fn limit_of(net: &Net, leases: &[Lease]) -> Duration {
    let ttl = leases
        .iter()
        .map(|lease| lease.lock_request.usable_ttl())
        .min();
    let part = if net.members.len() == 1 { 3 } else { 6 };
    ttl.map_or(BACKGROUND_LIMIT, |ttl| ttl / part)
}

impl Round {
    fn new(net: &Net, id: OperationId, leases: Vec<Held>) -> Self {
        let lease = |held: Held| Lease {
            slot: held.request.slot,
            lock_request: held.request,
            fence: held.fence,
        };
        let leases: Vec<Lease> = leases.into_iter().map(lease).collect();
        let outcome = |lease: &Lease| LeaseOutcome::new(&lease.lock_request, net.members.len());
        Self {
            id,
            outcomes: leases.iter().map(outcome).collect(),
            leases,
            fanout: Fanout::new(net),
            is_decided: false,
        }
    }

    /// Asks the members that can be asked by now.
    fn ask(&mut self, net: &mut Net, repairs: &mut Vec<Repair>) -> Next {
        let (leases, outcomes) = (&self.leases, &mut self.outcomes);
        let (task, limit) = (RenewalTask::Renew(self.id), limit_of(net, leases));
        self.fanout.ask(|member| {
            if net.membership.is_awaited(net.now.instant, member) {
                return Contact::Later;
            }
            if let Some(failure) = obstacle(net, member) {
                outcomes.iter_mut().for_each(|it| it.fail(failure.clone()));
                return Contact::Failed;
            }
            let request = Request::Renew(leases.clone());
            net.send(member, Task::Renewal(task), request, limit);
            Contact::Sent
        });
        self.advance(net, repairs)
    }

    /// Takes in a member's answers, in the order of the leases.
    fn count(&mut self, net: &mut Net, from: &Answered, states: Vec<LeaseState>) {
        self.fanout.answered();
        let (member, membership) = (from.member, &mut net.membership);
        let reason = membership.counts(member, from.sent, Some(from.incarnation));
        let doubt = reason.err();
        let doubt = doubt.map(|it| membership.failure(net.now.instant, member, &it));
        let mut states = states.into_iter();
        for outcome in &mut self.outcomes {
            let state = states.next().unwrap_or_else(|| {
                let text = "not one answer per lease";
                LeaseState::Failed(Error::new(ErrorKind::InvalidResponse, text))
            });
            outcome.count(member, membership.id(member), state, doubt.as_ref());
        }
    }

    /// Returns the outcome when it is decided. Repairs leases after the last answer.
    fn advance(&mut self, net: &mut Net, repairs: &mut Vec<Repair>) -> Next {
        if !self.is_decided && !self.outcomes.iter().any(LeaseOutcome::is_open) {
            self.is_decided = true;
            let renewals = self.renewals(&net.membership);
            net.finish(self.id, Outcome::Renewed(renewals));
        }
        if !self.fanout.is_over() {
            return Next::Runs;
        }
        let now = net.now.instant;
        repairs.retain(|it| it.free_at.is_some() || it.lost_until.is_none_or(|until| now < until));
        for member in net.members.keys() {
            let leases = self.to_repair(member);
            if leases.is_empty() || repairs.len() >= REPAIRS_MAX || obstacle(net, member).is_some()
            {
                continue;
            }
            repairs.extend(leases.iter().map(|lease| Repair {
                id: self.id,
                member,
                lock_request: Arc::clone(&lease.lock_request),
                lost_until: None,
                free_at: None,
            }));
            let owners = leases
                .iter()
                .map(|lease| (member, lease.lock_request.owner));
            net.repaired.extend(owners);
            let (task, limit) = (RenewalTask::Repair(self.id), limit_of(net, &leases));
            net.send(member, Task::Renewal(task), Request::Repair(leases), limit);
        }
        Next::Over
    }

    fn fail(&mut self, failure: &MemberFailure) {
        for outcome in &mut self.outcomes {
            outcome.fail(failure.clone());
        }
    }

    /// Returns the answer for each lease. The members keep leases of any length, but the quorum trusts only those
    /// within its limits.
    fn renewals(&self, membership: &Membership) -> Vec<RenewReply> {
        let all = self.leases.iter().zip(&self.outcomes);
        let renewal = |(lease, outcome): (&Lease, &LeaseOutcome)| {
            let lock_request = &lease.lock_request;
            match (
                outcome.renewal(membership.term(lock_request, self.fanout.began())),
                membership.check_ttl(lock_request),
            ) {
                (RenewReply::Renewed(_), Err(error)) => {
                    RenewReply::Unknown(error.with_unknown_effect())
                }
                (renewal, _) => renewal,
            }
        };
        all.map(renewal).collect()
    }

    fn to_repair(&self, member: MemberIndex) -> Vec<Lease> {
        let all = self.leases.iter().zip(&self.outcomes);
        let lost = all.filter(|(_, outcome)| outcome.is_to_be_repaired(member));
        lost.map(|(lease, _)| lease.clone()).collect()
    }
}

/// The greatest number of remembered repairs. Beyond it leases are not repaired.
const REPAIRS_MAX: usize = 4096;
