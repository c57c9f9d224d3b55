//! Takes locks: asks members, waits in their queues, and gives back grants that did not become a majority.
//!
//! `state` holds what is known, `asking` sends requests, `answers` takes in replies, `deciding` draws the
//! conclusions, and `giving_back` undoes rounds. `plain` is the small form of an acquisition for a free lock. `heartbeat`
//! tells members that the waiters are alive. This file begins and ends acquisitions and wakes them up.

mod answers;
mod asking;
mod deciding;
mod giving_back;
pub(crate) mod heartbeat;
mod plain;
pub(crate) mod state;

use std::sync::Arc;

use leasehold_types::{Error, ErrorKind, LockRequest};

use crate::member::index::MemberIndex;
use crate::net::{Net, Timer};
use crate::operation::OperationId;
use crate::operation::operations::Next;

use giving_back::Then;
pub(crate) use plain::{Acquiring, Plain};
pub(crate) use state::Acquisition;
use state::{MemberState, Phase, Standing};

impl Acquisition {
    /// Begins to take a lock.
    pub(crate) fn begin(net: &mut Net, id: OperationId, lock_request: Arc<LockRequest>) -> Self {
        let preferred = match (lock_request.slot, lock_request.mode.permits()) {
            (None, Some(permits)) => {
                let random = net.entropy.next_u64() % u64::from(permits.get());
                permits.slots().nth(random as usize)
            }
            (slot, _) => slot,
        };
        Self::new(
            id,
            lock_request,
            net.members.len(),
            net.now.instant,
            preferred,
        )
    }

    /// Asks the members that have no answer yet, and decides what follows.
    pub(crate) fn advance(&mut self, net: &mut Net) -> Next {
        if self.is_asking() {
            if self.is_queued() && !net.has_majority(self.began) {
                self.leave_queues(net);
            } else if !self.is_paused() {
                for member in self.members.keys() {
                    self.ask_if_out(net, member);
                }
                self.decide(net);
            }
        }
        self.rest(net)
    }

    /// Continues after something changed at a member.
    pub(crate) fn resume(&mut self, net: &mut Net) -> Next {
        // Members that failed are asked again once the round is over.
        if self.is_queued() && matches!(self.phase, Phase::Waiting) {
            for member_state in &mut self.members {
                if matches!(member_state.standing, Standing::Failed(_)) {
                    member_state.standing = Standing::Out;
                }
            }
        }
        self.advance(net)
    }

    /// The caller wants it no more. It releases what it may have left behind.
    pub(crate) fn cancel(&mut self, net: &mut Net) -> Next {
        net.drop_events(self.id);
        self.withdraw(net);
        Next::Over
    }

    /// Ends the acquisition, and releases what it may have left behind.
    fn withdraw(&mut self, net: &mut Net) {
        self.give_back(net, Then::End);
        self.forget(net);
    }

    /// Ends the acquisition. From now on, nothing finds it.
    pub(crate) fn forget(&mut self, net: &mut Net) {
        self.phase = Phase::Over;
        net.set_timer(Timer::Acquire(self.id), &mut self.timer, None);
        net.waiters
            .remove(&self.lock_request.key, self.ticket, self.id);
        net.forget_owner(&self.lock_request, self.id);
    }

    /// The timer is due: ends what has reached its end. [`ask_due`](Self::ask_due) follows.
    pub(crate) fn wake(&mut self, net: &mut Net) -> Next {
        let now = net.now.instant;
        self.timer = None;
        match &mut self.phase {
            Phase::Paused(end) if *end <= now => {
                self.phase = Phase::Waiting;
                for member_state in &mut self.members {
                    if member_state.granted().is_none() {
                        member_state.ask_at = Some(now);
                    }
                }
            }
            Phase::Round(round) => {
                round.awaits_until.take_if(|it| *it <= now);
                let is_over = round.end.is_some_and(|end| end <= now);
                if is_over && !self.extends_round(net) {
                    self.end_round(net);
                }
            }
            Phase::Waiting | Phase::Paused(_) | Phase::Held(_) | Phase::Over => {}
        }
        self.next()
    }

    /// Continues the round of a waiter whose time is up, while a member that owes it an answer is at work.
    fn extends_round(&mut self, net: &Net) -> bool {
        let members = self.members.iter_enumerated();
        let owing = members.filter(|(_, state)| state.is_asked);
        let end = net.round_goes_on(owing.map(|(member, _)| member));
        match (&mut self.phase, end) {
            (Phase::Round(round), Some(_)) if self.lock_request.is_queued() => {
                round.end = end;
                true
            }
            _ => false,
        }
    }

    /// The round's time is up, and there is no majority.
    fn end_round(&mut self, net: &mut Net) {
        if self.is_queued() {
            return self.fail_round(net, self.has_differing_permits());
        }
        // An attempt without a position waits for each member it asked, up to that member's limit.
        if let Some(round) = self.round_mut() {
            round.end = None;
        }
        for member in self.members.keys() {
            let state = &self.members[member];
            if !state.is_asked && matches!(state.standing, Standing::Out) {
                let obstacle = net.membership.obstacle(net.now.instant, member);
                let none = || Error::new(ErrorKind::Unreachable, "the member was not asked");
                let error = obstacle.map_or_else(none, |it| it.error);
                self.vote_failed(member, error);
            }
        }
    }

    /// Sets the timer to the earliest due time, unless the acquisition is over.
    fn rest(&mut self, net: &mut Net) -> Next {
        let idle = self.members.iter().filter(|it| !it.is_asked);
        let next = idle.filter_map(|member_state| member_state.ask_at).min();
        let due = match &self.phase {
            Phase::Waiting | Phase::Held(_) => next,
            Phase::Paused(end) => Some(*end),
            Phase::Round(round) => [next, round.end, round.awaits_until]
                .into_iter()
                .flatten()
                .min(),
            Phase::Over => None,
        };
        net.set_timer(Timer::Acquire(self.id), &mut self.timer, due);
        self.next()
    }

    fn next(&self) -> Next {
        match self.phase {
            Phase::Over => Next::Over,
            _ => Next::Runs,
        }
    }

    fn is_paused(&self) -> bool {
        matches!(self.phase, Phase::Paused(_))
    }

    /// The member may have the lease from now on: it is repaired there.
    pub(crate) fn doubt(&mut self, member: MemberIndex) -> Next {
        self.members[member].uncertain = true;
        self.next()
    }

    /// The members that may have an entry in a queue, but not the lease.
    pub(crate) fn other_queues(&self) -> impl Iterator<Item = MemberIndex> {
        let is_other = |state: &MemberState| state.may_have() && state.granted().is_none();
        let members = self.members.iter_enumerated();
        members
            .filter(move |(_, state)| is_other(state))
            .map(|(member, _)| member)
    }
}
