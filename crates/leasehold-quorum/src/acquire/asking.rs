//! Sends the requests of acquisitions.

use std::sync::Arc;
use std::time::Duration;

use leasehold_types::{Error, ErrorKind, Fence, LockRequest};

use super::state::{Acquisition, Phase, Round, Standing, round_timeout};
use crate::ballot::Vote;
use crate::member::HOT_PAUSE;
use crate::member::Task;
use crate::member::index::MemberIndex;
use crate::membership::Access;
use crate::messages::{Position, Request, Successor};
use crate::net::Net;
use crate::operation::OperationId;
use crate::operation::operations::Next;

impl Acquisition {
    /// Asks a member that was not asked yet. The caller has checked that there is a majority.
    pub(super) fn ask_if_out(&mut self, net: &mut Net, member: MemberIndex) {
        let state = &self.members[member];
        if matches!(state.standing, Standing::Out) && !state.is_asked {
            self.ask_now(net, member);
        }
    }

    /// Asks the members that are due to be asked again.
    pub(crate) fn ask_due(&mut self, net: &mut Net) -> Next {
        for member in self.members.keys() {
            let (now, state) = (net.now.instant, &mut self.members[member]);
            let is_due = state.ask_at.take_if(|at| *at <= now).is_some();
            if is_due && !state.is_asked {
                self.ask(net, member);
            }
        }
        self.advance(net)
    }

    /// Asks one member, unless the acquisition pauses or has no majority.
    pub(super) fn ask(&mut self, net: &mut Net, member: MemberIndex) {
        if !self.is_paused() && (!self.is_queued() || net.has_majority(self.began)) {
            self.ask_now(net, member);
        }
    }

    /// Asks one member. If none was asked before, a round begins.
    fn ask_now(&mut self, net: &mut Net, member: MemberIndex) {
        let now = net.now.instant;
        match net.membership.access(now, member, self.began) {
            Access::Open => self.begin_round(net),
            Access::Pending => return self.begin_round(net),
            Access::Closed => {
                let obstacle = net.membership.obstacle(now, member);
                let none = || Error::new(ErrorKind::Unreachable, "the member has no vote");
                let error = obstacle.map_or_else(none, |it| it.error);
                return self.refuse_to_ask(net, member, error);
            }
        }
        let Some((request, enters)) = self.request(net, member) else {
            return;
        };
        if enters {
            net.send_presence(member);
        }
        let is_plain = matches!(request, Request::TryAcquire { .. });
        let state = &mut self.members[member];
        state.is_plain = is_plain;
        state.tried |= is_plain;
        state.ask_at = None;
        let number = state.ask();
        let limit = net.limit_of(self.lock_request.usable_ttl());
        net.send(member, Task::Attempt(self.id, number), request, limit);
    }

    /// The member cannot be asked now. A waiter asks it later; any other attempt continues without it.
    fn refuse_to_ask(&mut self, net: &mut Net, member: MemberIndex, error: Error) {
        if self.is_queued() {
            self.members[member].ask_at = None;
            return;
        }
        self.begin_round(net);
        self.vote_failed(member, error);
    }

    /// Begins a round, unless one is under way.
    pub(super) fn begin_round(&mut self, net: &mut Net) {
        if !matches!(self.phase, Phase::Waiting) {
            return;
        }
        let now = net.now;
        let limit = round_limit(net, &self.lock_request, self.failures);
        let first = first_proposal(&self.lock_request);
        // Counters may have been lost since the wait began.
        let is_new = !self.had_round && now.instant.since(self.began) < HOT_PAUSE;
        let proposal = match is_new {
            true => first,
            false => first.max(now.wall.as_micros()),
        };
        let mut round = self.new_round(proposal, now.instant + limit);
        (round.is_known, round.expire) = net.use_lock(&self.lock_request.key);
        for (member, state) in self.members.iter_mut_enumerated() {
            state.tried = false;
            // A waiter need not wait for a member that it cannot ask.
            if self.lock_request.is_queued()
                && net.membership.access(now.instant, member, self.began) == Access::Closed
            {
                round.ballot.vote(member, Vote::Failed);
            }
        }
        self.phase = Phase::Round(round);
    }

    /// Returns the request for one member, and whether it puts the waiter into the queue. Returns `None`
    /// while there is no ticket.
    fn request(&mut self, net: &mut Net, member: MemberIndex) -> Option<(Request, bool)> {
        let lock_request = Arc::clone(&self.lock_request);
        let proposal = match &self.phase {
            Phase::Round(round) => round.proposal,
            // A late grant joins a lease that is held.
            Phase::Held(fence) => fence.get(),
            Phase::Waiting | Phase::Paused(_) | Phase::Over => 0,
        };
        // The holder's fence shows in its owner.
        if let Some(round) = self.hot_round(net, member)
            && proposal == first_proposal(&lock_request)
        {
            let expire = round.expire;
            let request = Request::TryAcquire {
                lock_request,
                proposal,
                expire,
            };
            return Some((request, false));
        }
        let position = self.position(net)?;
        // The refused plain commands raised the counter to the proposal.
        let proposal = proposal + u64::from(self.members[member].tried);
        let request = Request::Acquire {
            lock_request,
            proposal,
            position,
            preferred: self.preferred,
        };
        Some((request, matches!(position, Position::Ticket(_))))
    }

    /// Returns the position in the queue. A waiter draws its ticket first; there may be none yet.
    fn position(&mut self, net: &mut Net) -> Option<Position> {
        if self.lock_request.barges {
            return Some(Position::Barging);
        }
        if !self.lock_request.waits {
            return Some(Position::None);
        }
        if self.ticket.is_none() {
            let now = net.now.instant;
            let drawn = net.membership.ticket(now, self.lock_request.owner)?;
            let ticket = drawn.since.as_micros();
            self.ticket = Some(ticket);
            net.waiters.add(&self.lock_request.key, ticket, self.id);
            net.heartbeat.keep_up(now);
        }
        self.ticket.map(Position::Ticket)
    }

    /// Returns the round if its plain commands may take the lock ahead of the queue. They may only while no waiter is
    /// known. A new client does not know the waiters, and could take the lock in a gap that is meant for
    /// foreign clients. In its first second it therefore asks for each lock with a script first.
    fn hot_round(&self, net: &Net, member: MemberIndex) -> Option<&Round> {
        let (now, key) = (net.now.instant, &self.lock_request.key);
        let round = self.round()?;
        let may_be_hot = self.is_exclusive()
            && self.ticket.is_none()
            && !self.lock_request.barges
            && !self.members[member].tried
            && net.members[member].takes_plain_commands(round.is_known, now)
            && net.has_no_known_waiters(key);
        may_be_hot.then_some(round)
    }

    pub(super) fn confirm(&mut self, net: &mut Net, member: MemberIndex, fence: Fence) {
        let lock_request = Arc::clone(&self.lock_request);
        let limit = net.limit_of(lock_request.usable_ttl());
        let request = Request::ConfirmFence {
            lock_request,
            fence,
        };
        net.send(member, Task::Confirm(self.id, fence), request, limit);
    }

    /// Whether a release at the member may name this waiter as its successor: it waits there, and has no request in
    /// flight.
    pub(crate) fn may_succeed(&self, member: MemberIndex) -> bool {
        let state = &self.members[member];
        let is_idle = !state.is_asked && state.is_queued();
        is_idle && matches!(self.phase, Phase::Waiting | Phase::Round(_))
    }

    /// Begins a round with a release that names this waiter, and counts the release as its request at the member.
    pub(crate) fn succeed(
        &mut self,
        net: &mut Net,
        member: MemberIndex,
    ) -> Option<((OperationId, u32), Successor)> {
        self.begin_round(net);
        let successor = Successor {
            lock_request: Arc::clone(&self.lock_request),
            proposal: self.round()?.proposal,
            ticket: self.ticket?,
            preferred: self.preferred,
        };
        let number = self.members[member].ask();
        let _ = self.rest(net);
        Some(((self.id, number), successor))
    }

    /// The member fails in this round.
    pub(super) fn vote_failed(&mut self, member: MemberIndex, error: Error) {
        self.members[member].fail(error);
        self.vote(member, Vote::Failed);
    }

    pub(super) fn vote(&mut self, member: MemberIndex, vote: Vote) {
        if let Some(round) = self.round_mut() {
            round.ballot.vote(member, vote);
        }
    }
}

/// How long a round may take after that many failures.
pub(super) fn round_limit(net: &Net, lock_request: &LockRequest, failures: u32) -> Duration {
    match lock_request.is_queued() && net.members.len() > 1 {
        true => round_timeout(net.round_trip(), failures),
        false => lock_request.limit(),
    }
}

/// The proposal of the first round. People see the fence in the owner.
pub(super) fn first_proposal(lock_request: &LockRequest) -> u64 {
    lock_request.owner.since().as_micros() + 1
}
