//! Renews leases: one request per member for all leases of an operation.
//!
//! The answers are tallied separately for each lease. A lease that a majority extended is repaired at the
//! members that lost it. A lease that ended is not repaired. It is released again where an earlier repair
//! may take effect late.

mod lease_outcome;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use leasehold_types::{
    BootInstant, Claim, Error, ErrorKind, Held, Incarnation, MemberFailure, MemberId, Owner,
    Renewal,
};

use crate::member::RenewalTask;
use crate::members::Members;
use crate::membership::Membership;
use crate::operation::{OperationId, ReleaseMode};
use crate::reply::{LeaseState, Reply};
use crate::request::{Lease, Request};
use lease_outcome::LeaseOutcome;

/// The renewals of one client that are under way.
#[derive(Debug, Default)]
pub(crate) struct Renewals {
    rounds: BTreeMap<OperationId, Round>,
    repairs: Vec<Repair>,
    requests: VecDeque<(usize, RenewalTask, Request)>,
    outcomes: VecDeque<(OperationId, Vec<Renewal>)>,
}

/// One renewal of several leases.
#[derive(Debug)]
struct Round {
    began: BootInstant,
    leases: Vec<Lease>,
    fates: Vec<LeaseOutcome>,
    /// How many members have not answered.
    open: usize,
    /// The members that are not connected for the first time yet.
    pending: Members,
    /// Whether the outcome was returned.
    is_decided: bool,
}

/// A repair of one lease at one member that may still take effect.
#[derive(Debug)]
struct Repair {
    id: OperationId,
    member: usize,
    claim: Arc<Claim>,
    /// Set when the reply was lost: the request takes no effect after this.
    lost_until: Option<BootInstant>,
    /// Set when the lease was released: when to release it here again.
    free_at: Option<BootInstant>,
}

impl Renewals {
    /// Renews leases. A member that may not be asked counts as failed. A new client waits for the first
    /// connections.
    pub(crate) fn start(
        &mut self,
        now: BootInstant,
        id: OperationId,
        leases: Vec<Held>,
        membership: &mut Membership,
    ) {
        for held in &leases {
            // Only the latest renewal knows the mode in which the lease is held.
            self.repair_no_more(held.claim.owner);
        }
        self.rounds
            .insert(id, Round::new(now, leases, membership.len()));
        self.ask_pending(now, id, membership);
    }

    /// Continues the renewals that wait for a member.
    pub(crate) fn resume(&mut self, now: BootInstant, membership: &mut Membership) {
        let waiting = self.rounds.iter();
        let waiting = waiting.filter(|(_, round)| !round.pending.is_empty());
        let waiting: Vec<OperationId> = waiting.map(|(id, _)| *id).collect();
        for id in waiting {
            self.ask_pending(now, id, membership);
        }
    }

    /// Asks the members that can be asked by now.
    fn ask_pending(&mut self, now: BootInstant, id: OperationId, membership: &mut Membership) {
        let Some(round) = self.rounds.get_mut(&id) else {
            return;
        };
        for member in std::mem::take(&mut round.pending).iter() {
            if membership.is_awaited(now, member) {
                round.pending.insert(member);
                continue;
            }
            match obstacle(now, member, membership) {
                None => {
                    round.open += 1;
                    let request = Request::Renew(round.leases.clone());
                    self.requests
                        .push_back((member, RenewalTask::Renew(id), request));
                }
                Some(failure) => round.fail(&failure),
            }
        }
        self.advance(now, id, membership);
    }

    /// Takes in the reply to a request that was sent at `sent`. `data` identifies the data that answered it.
    pub(crate) fn handle_reply(
        &mut self,
        now: BootInstant,
        (member, task, sent): (usize, RenewalTask, BootInstant),
        data: &Incarnation,
        reply: Reply,
        membership: &mut Membership,
    ) {
        match (task, reply) {
            (RenewalTask::Renew(id), Reply::Renewed(states)) => {
                let reason = membership.counts(member, sent, Some(data)).err();
                let doubt = reason.map(|it| membership.failure(now, member, &it));
                if let Some(round) = self.rounds.get_mut(&id) {
                    round.count(member, membership.id(member), states, doubt.as_ref());
                }
                self.advance(now, id, membership);
            }
            (RenewalTask::Renew(_), reply) => {
                let error = match reply {
                    Reply::Failed(error) => error,
                    _ => Error::new(ErrorKind::InvalidResponse, "not the answer to a renewal"),
                };
                self.handle_loss(now, member, task, error, membership);
            }
            // If the lease has ended since, its release followed the repair on the same connection.
            (RenewalTask::Repair(id), _) => self
                .repairs
                .retain(|repair| (repair.id, repair.member) != (id, member)),
            (RenewalTask::Free, _) => {}
        }
    }

    /// A request reached its limit, or its connection broke.
    pub(crate) fn handle_loss(
        &mut self,
        now: BootInstant,
        member: usize,
        task: RenewalTask,
        error: Error,
        membership: &mut Membership,
    ) {
        match task {
            RenewalTask::Renew(id) => {
                if let Some(round) = self.rounds.get_mut(&id) {
                    let id = membership.id(member);
                    let error = error.with_store(id.as_str());
                    round.open -= 1;
                    round.fail(&MemberFailure::new(id.clone(), error));
                }
                self.advance(now, id, membership);
            }
            RenewalTask::Repair(id) => {
                let lost = |it: &&mut Repair| it.id == id && it.member == member;
                for repair in self.repairs.iter_mut().filter(lost) {
                    repair.lost_until = Some(now + repair.claim.ttl);
                }
            }
            RenewalTask::Free => {}
        }
    }

    /// The lease is released or detached: from now on it is restored nowhere.
    pub(crate) fn end(&mut self, now: BootInstant, claim: &Claim, mode: ReleaseMode) {
        self.repair_no_more(claim.owner);
        let is_over = |repair: &Repair| match repair.lost_until {
            _ if mode == ReleaseMode::Detach => true,
            until => until.is_some_and(|until| until <= now),
        };
        self.repairs
            .retain(|repair| repair.claim.owner != claim.owner || !is_over(repair));
        for repair in &mut self.repairs {
            if repair.claim.owner == claim.owner {
                // As late as possible, but before what was restored expires.
                repair.free_at = Some(now + claim.ttl.mul_f64(0.9));
            }
        }
    }

    /// Handles timers that are due. Call it at [`Renewals::next_timeout`] or later.
    pub(crate) fn handle_timeout(&mut self, now: BootInstant) {
        let due = |repair: &mut Repair| repair.free_at.is_some_and(|at| at <= now);
        for Repair { member, claim, .. } in self.repairs.extract_if(.., due) {
            let request = Request::Release {
                claim,
                requeue: None,
                successor: None,
            };
            self.requests
                .push_back((member, RenewalTask::Free, request));
        }
    }

    /// Returns when [`Renewals::handle_timeout`] is due.
    pub(crate) fn next_timeout(&self) -> Option<BootInstant> {
        self.repairs.iter().filter_map(|it| it.free_at).min()
    }

    /// Returns the next request to send.
    pub(crate) fn poll_request(&mut self) -> Option<(usize, RenewalTask, Request)> {
        self.requests.pop_front()
    }

    /// Returns the next operation whose leases all have a result, in their order.
    pub(crate) fn poll_outcome(&mut self) -> Option<(OperationId, Vec<Renewal>)> {
        self.outcomes.pop_front()
    }

    /// Returns the outcome when it is decided. Repairs leases after the last answer.
    fn advance(&mut self, now: BootInstant, id: OperationId, membership: &mut Membership) {
        let Some(round) = self.rounds.get_mut(&id) else {
            return;
        };
        if !round.is_decided && !round.fates.iter().any(LeaseOutcome::is_open) {
            round.is_decided = true;
            let renewals = round.renewals(membership);
            self.outcomes.push_back((id, renewals));
        }
        if round.open > 0 || !round.pending.is_empty() {
            return;
        }
        let Some(round) = self.rounds.remove(&id) else {
            return;
        };
        self.repairs
            .retain(|it| it.free_at.is_some() || it.lost_until.is_none_or(|until| now < until));
        for member in 0..membership.len() {
            let leases = round.to_repair(member);
            if leases.is_empty()
                || self.repairs.len() >= REPAIRS_MAX
                || obstacle(now, member, membership).is_some()
            {
                continue;
            }
            self.repairs.extend(leases.iter().map(|lease| Repair {
                id,
                member,
                claim: Arc::clone(&lease.claim),
                lost_until: None,
                free_at: None,
            }));
            let request = Request::Repair(leases);
            self.requests
                .push_back((member, RenewalTask::Repair(id), request));
        }
    }

    fn repair_no_more(&mut self, owner: Owner) {
        for round in self.rounds.values_mut() {
            for (lease, fate) in round.leases.iter().zip(&mut round.fates) {
                fate.repairs &= lease.claim.owner != owner;
            }
        }
    }
}

/// Returns why the member may not be asked. Asks it for its status if that is old.
fn obstacle(now: BootInstant, member: usize, membership: &mut Membership) -> Option<MemberFailure> {
    membership.access(now, member, now);
    membership.obstacle(now, member)
}

impl Round {
    fn new(now: BootInstant, leases: Vec<Held>, members: usize) -> Self {
        let lease = |held: Held| Lease {
            slot: held.claim.slot,
            claim: held.claim,
            fence: held.fence,
        };
        let leases: Vec<Lease> = leases.into_iter().map(lease).collect();
        Self {
            began: now,
            fates: leases
                .iter()
                .map(|it| LeaseOutcome::new(&it.claim, members))
                .collect(),
            leases,
            open: 0,
            pending: Members::first(members),
            is_decided: false,
        }
    }

    /// Takes in a member's answers, in the order of the leases.
    fn count(
        &mut self,
        member: usize,
        id: &MemberId,
        states: Vec<LeaseState>,
        doubt: Option<&MemberFailure>,
    ) {
        self.open -= 1;
        let mut states = states.into_iter();
        for fate in &mut self.fates {
            let state = states.next().unwrap_or_else(|| {
                let text = "not one answer per lease";
                LeaseState::Failed(Error::new(ErrorKind::InvalidResponse, text))
            });
            fate.count(member, id, state, doubt);
        }
    }

    fn fail(&mut self, failure: &MemberFailure) {
        for fate in &mut self.fates {
            fate.fail(failure.clone());
        }
    }

    /// Returns the answer for each lease. The members keep leases of any length, but the quorum trusts only those
    /// within its limits.
    fn renewals(&self, membership: &Membership) -> Vec<Renewal> {
        let all = self.leases.iter().zip(&self.fates);
        let renewal = |(lease, fate): (&Lease, &LeaseOutcome)| {
            let claim = &lease.claim;
            match (
                fate.renewal(membership.term(claim, self.began)),
                membership.check_ttl(claim),
            ) {
                (Renewal::Renewed(_), Err(error)) => Renewal::Unknown(error.with_unknown_effect()),
                (renewal, _) => renewal,
            }
        };
        all.map(renewal).collect()
    }

    fn to_repair(&self, member: usize) -> Vec<Lease> {
        let all = self.leases.iter().zip(&self.fates);
        let lost = all.filter(|(_, fate)| fate.is_to_be_repaired(member));
        lost.map(|(lease, _)| lease.clone()).collect()
    }
}

/// The greatest number of remembered repairs. Beyond it leases are not repaired.
const REPAIRS_MAX: usize = 4096;
