//! Takes locks: asks members, waits in their queues, and gives back grants that did not become a majority.
//!
//! `state` holds what is known, `asking` sends requests, `answers` takes in replies, `deciding` draws the
//! conclusions, and `giving_back` undoes rounds. `plain` is the small form of an acquisition for a free lock. This file
//! begins and ends acquisitions and wakes them up.

mod answers;
mod asking;
mod deciding;
mod giving_back;
mod plain;
pub(crate) mod state;

use std::sync::Arc;

use leasehold_types::{Error, ErrorKind, LockRequest};

use crate::members::MemberIndex;
use crate::net::{Net, Timer};
use crate::operation::OperationId;
use crate::operations::Next;

pub(crate) use giving_back::GivenBack;
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
            } else if !self.is_paused(net) {
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
        if self.is_queued() && self.round.is_none() && self.pause.is_none() {
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
        net.forget_owner(self.lock_request.owner, self.id);
    }

    /// The timer is due: ends what has reached its end. [`ask_due`](Self::ask_due) follows.
    pub(crate) fn wake(&mut self, net: &mut Net) -> Next {
        let now = net.now.instant;
        self.timer = None;
        self.awaits_until.take_if(|it| *it <= now);
        if self.pause.take_if(|it| *it <= now).is_some() {
            for member_state in &mut self.members {
                if member_state.granted().is_none() {
                    member_state.ask_at = Some(now);
                }
            }
        }
        let end = self.round.as_ref().and_then(|round| round.end);
        if end.is_some_and(|end| end <= now) && !self.extends_round(net) {
            self.end_round(net);
        }
        self.next()
    }

    /// Continues the round of a waiter whose time is up, while a member that owes it an answer is at work.
    fn extends_round(&mut self, net: &Net) -> bool {
        let members = self.members.iter_enumerated();
        let owing = members.filter(|(_, state)| state.asked.is_some());
        let end = net.round_goes_on(owing.map(|(member, _)| member));
        let round = self
            .round
            .as_mut()
            .filter(|_| self.lock_request.is_queued());
        match (round, end) {
            (Some(round), Some(_)) => {
                round.end = end;
                true
            }
            _ => false,
        }
    }

    /// The round's time is up, and there is no majority.
    fn end_round(&mut self, net: &mut Net) {
        if self.is_queued() {
            return self.fail_round(net);
        }
        // An attempt without a position waits for each member it asked, up to that member's limit.
        if let Some(round) = &mut self.round {
            round.end = None;
        }
        for member in self.members.keys() {
            let state = &self.members[member];
            if state.asked.is_none() && matches!(state.standing, Standing::Out) {
                let obstacle = net.membership.obstacle(net.now.instant, member);
                let none = || Error::new(ErrorKind::Unreachable, "the member was not asked");
                let error = obstacle.map_or_else(none, |it| it.error);
                self.vote_failed(member, error);
            }
        }
    }

    /// Sets the timer to the earliest due time, unless the acquisition is over.
    fn rest(&mut self, net: &mut Net) -> Next {
        if self.phase != Phase::Over {
            let idle = self.members.iter().filter(|it| it.asked.is_none());
            let next = idle.filter_map(|member_state| member_state.ask_at).min();
            // No member is asked before the end of a pause.
            let next = next.max(next.and(self.pause));
            let end = self.round.as_ref().and_then(|round| round.end);
            let due = [next, end, self.pause, self.awaits_until];
            let next = due.into_iter().flatten().min();
            net.set_timer(Timer::Acquire(self.id), &mut self.timer, next);
        }
        self.next()
    }

    fn next(&self) -> Next {
        match self.phase {
            Phase::Asking | Phase::Held(_) => Next::Runs,
            Phase::Over => Next::Over,
        }
    }

    fn is_paused(&self, net: &Net) -> bool {
        self.pause.is_some_and(|pause| pause > net.now.instant)
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
