//! Sends the requests of acquisitions.

use std::sync::Arc;
use std::time::Duration;

use leasehold_types::{Error, ErrorKind, Fence};

use super::state::{ClaimState, Phase, round_timeout};
use crate::ballot::Vote;
use crate::engine::{Engine, Now};
use crate::member::Task;
use crate::membership::Access;
use crate::operation::OperationId;
use crate::request::{self, Request};

impl Engine {
    /// Asks a member that was not asked yet. The caller has checked that there is a majority.
    pub(crate) fn ask_if_out(&mut self, now: Now, id: OperationId, member: usize) {
        let Some(acquisition) = self.acquisitions.get(&id) else {
            return;
        };
        let member_state = &acquisition.members[member];
        if matches!(member_state.claim, ClaimState::Out) && member_state.asked.is_none() {
            self.ask_now(now, id, member);
        }
    }

    /// Asks the members that are due to be asked again.
    pub(crate) fn ask_due(&mut self, now: Now, id: OperationId) {
        for member in 0..self.members.len() {
            let Some(acquisition) = self.acquisitions.get_mut(&id) else {
                return;
            };
            let member_state = &mut acquisition.members[member];
            let is_due = member_state
                .ask_at
                .take_if(|at| *at <= now.instant)
                .is_some();
            if is_due && member_state.asked.is_none() {
                self.ask(now, id, member);
            }
        }
    }

    /// Asks one member, unless the acquisition pauses or has no majority.
    pub(crate) fn ask(&mut self, now: Now, id: OperationId, member: usize) {
        let Some(acquisition) = self.acquisitions.get(&id) else {
            return;
        };
        let (began, is_queued) = (acquisition.began, acquisition.is_queued());
        let is_paused = acquisition.pause.is_some_and(|pause| pause > now.instant);
        if !is_paused && (!is_queued || self.has_majority(now, began)) {
            self.ask_now(now, id, member);
        }
    }

    /// Asks one member. If none was asked before, a round begins.
    fn ask_now(&mut self, now: Now, id: OperationId, member: usize) {
        let Some(acquisition) = self.acquisitions.get(&id) else {
            return;
        };
        let began = acquisition.began;
        match self.membership.access(now.instant, member, began) {
            Access::Open => self.begin_round(now, id),
            Access::Pending => return self.begin_round(now, id),
            Access::Closed => {
                let obstacle = self.membership.obstacle(now.instant, member);
                let none = || not_sent("the member has no vote");
                let error = obstacle.map_or_else(none, |it| it.error);
                return self.refuse_to_ask(now, id, member, error);
            }
        }
        let Some((request, enters)) = self.request(now, id, member) else {
            return;
        };
        if enters {
            self.send_presence(now, member);
        }
        let Some(acquisition) = self.acquisitions.get_mut(&id) else {
            return;
        };
        let term = acquisition.claim.usable_ttl();
        let member_state = &mut acquisition.members[member];
        member_state.number += 1;
        member_state.asked = Some(now.instant);
        member_state.ask_at = None;
        member_state.is_plain = matches!(request, Request::TryAcquire { .. });
        member_state.tried |= member_state.is_plain;
        let task = Task::Attempt(id, member_state.number);
        let limit = self.limit_of(term);
        self.send(now, member, task, request, limit);
    }

    /// The member cannot be asked now. A waiter asks it later; any other attempt continues without it.
    fn refuse_to_ask(&mut self, now: Now, id: OperationId, member: usize, error: Error) {
        let Some(acquisition) = self.acquisitions.get_mut(&id) else {
            return;
        };
        if acquisition.is_queued() {
            acquisition.members[member].ask_at = None;
            return;
        }
        self.begin_round(now, id);
        self.vote_failed(id, member, error);
    }

    pub(crate) fn begin_round(&mut self, now: Now, id: OperationId) {
        let Some(acquisition) = self.acquisitions.get(&id) else {
            return;
        };
        if acquisition.phase == Phase::Held || acquisition.round.is_some() {
            return;
        }
        let term = acquisition.claim.usable_ttl();
        let limit = match acquisition.is_queued() && self.members.len() > 1 {
            true => round_timeout(self.round_trip(), acquisition.failures),
            false => (term / 3).min(leasehold_types::Claim::LIMIT_MAX),
        };
        let Some(acquisition) = self.acquisitions.get_mut(&id) else {
            return;
        };
        let first = acquisition.claim.owner.since().as_micros() + 1;
        // Counters may have been lost since the wait began.
        let is_new = !acquisition.had_round && now.instant.since(acquisition.began) < HOT_PAUSE;
        let proposal = match is_new {
            true => first,
            false => first.max(now.wall.as_micros()),
        };
        acquisition.begin_round(proposal, now.instant + limit);
        let (is_queued, began) = (acquisition.is_queued(), acquisition.began);
        for (member, member_state) in acquisition.members.iter_mut().enumerate() {
            member_state.tried = false;
            // A waiter need not wait for a member that it cannot ask.
            if is_queued
                && let Some(round) = &mut acquisition.round
                && self.membership.access(now.instant, member, began) == Access::Closed
            {
                round.ballot.vote(member, Vote::Failed);
            }
        }
    }

    /// Returns the request for one member, and whether it puts the waiter into the queue. Returns `None`
    /// while there is no ticket.
    fn request(&mut self, now: Now, id: OperationId, member: usize) -> Option<(Request, bool)> {
        let is_hot = self.may_be_hot(now, id, member);
        let acquisition = self.acquisitions.get_mut(&id)?;
        let claim = Arc::clone(&acquisition.claim);
        let member_state = &acquisition.members[member];
        // A late grant joins a lease that is held.
        let held = || acquisition.fence.map_or(0, Fence::get);
        let round = acquisition.round.as_ref();
        let proposal = round.map_or_else(held, |round| round.proposal);
        // The holder's fence shows in its owner.
        if is_hot && proposal == claim.owner.since().as_micros() + 1 {
            let expire = self.members[member].expiry_is_due(&claim.key, now.instant);
            let request = Request::TryAcquire {
                claim,
                proposal,
                expire,
            };
            return Some((request, false));
        }
        let queue = if claim.barges {
            request::Place::Barging
        } else if !claim.waits {
            request::Place::None
        } else {
            if acquisition.ticket.is_none() {
                let drawn = self.membership.ticket(now.instant, claim.owner)?;
                acquisition.ticket = Some(drawn.since.as_micros());
                self.waiters.add(&claim.key, drawn.since.as_micros(), id);
                self.heartbeat.keep_up(now.instant);
            }
            request::Place::Ticket(acquisition.ticket?)
        };
        // The refused plain commands raised the counter to the proposal.
        let proposal = proposal + u64::from(member_state.tried);
        let request = Request::Acquire {
            claim,
            proposal,
            place: queue,
            preferred: acquisition.preferred,
        };
        Some((request, matches!(queue, request::Place::Ticket(_))))
    }

    /// Whether the plain commands may take the lock ahead of the queue. They may only while no waiter is
    /// known. A new client does not know the waiters, and could take the lock in a gap that is meant for
    /// foreign clients. In its first second it therefore asks for each lock with a script first.
    fn may_be_hot(&self, now: Now, id: OperationId, member: usize) -> bool {
        let Some(acquisition) = self.acquisitions.get(&id) else {
            return false;
        };
        let (member_state, state) = (&acquisition.members[member], &self.members[member]);
        let key = &acquisition.claim.key;
        let is_settled = state
            .connected
            .is_some_and(|since| now.instant.since(since) >= HOT_PAUSE);
        acquisition.phase == Phase::Asking
            && acquisition.is_exclusive()
            && acquisition.ticket.is_none()
            && !acquisition.claim.barges
            && !member_state.tried
            && (is_settled || state.knows(key))
            && !state.scripts_only
            && !self.waiters.was_busy(key, now.instant, HOT_PAUSE)
    }

    pub(crate) fn confirm(&mut self, now: Now, id: OperationId, member: usize, fence: Fence) {
        let Some(acquisition) = self.acquisitions.get(&id) else {
            return;
        };
        let claim = Arc::clone(&acquisition.claim);
        let limit = self.limit_of(claim.usable_ttl());
        let request = Request::ConfirmFence { claim, fence };
        self.send(now, member, Task::Confirm(id, fence), request, limit);
    }

    /// The member fails in this round.
    pub(crate) fn vote_failed(&mut self, id: OperationId, member: usize, error: Error) {
        let Some(acquisition) = self.acquisitions.get_mut(&id) else {
            return;
        };
        acquisition.members[member].fail(error);
        if let Some(round) = &mut acquisition.round {
            round.ballot.vote(member, Vote::Failed);
        }
    }
}

fn not_sent(text: &str) -> Error {
    Error::new(ErrorKind::Unreachable, text)
}

/// After a busy answer, and in its first second, a client uses no plain commands.
pub(crate) const HOT_PAUSE: Duration = Duration::from_secs(1);
