//! Takes in what members answer to acquisitions.

use std::sync::Arc;

use leasehold_types::{Error, ErrorKind, Fence, FenceConfirmation, PermitSlot};

use super::state::{Acquisition, Granted, Standing};
use crate::ballot::Vote;
use crate::member::index::MemberIndex;
use crate::member::{Answered, Task};
use crate::messages::{Refusal, Reply, Request};
use crate::net::Net;
use crate::operation::operations::Next;

impl Acquisition {
    /// Whether an attempt at a member is the last one. Replies to those that were given back are void.
    fn is_current(&self, member: MemberIndex, number: u32) -> bool {
        self.members[member].number == number
    }

    /// A member answered an attempt.
    pub(crate) fn answered(
        &mut self,
        net: &mut Net,
        from: &Answered,
        number: u32,
        reply: Reply,
    ) -> Next {
        let member = from.member;
        if !self.is_current(member, number) {
            return Next::Runs;
        }
        match reply {
            Reply::Granted { fence, slot } => self.granted(net, from, Some(fence), slot),
            Reply::GrantedBehind => {
                // The lease counts from the first request, and has no fence yet.
                self.granted(net, from, None, None);
                self.draw_fence(net, member);
                return self.rest(net);
            }
            Reply::Busy(refusal) => self.refused(net, member, refusal),
            Reply::Failed(error) => {
                if error.is_unreachable() {
                    net.membership.refused(member, &error);
                }
                self.vote_failed(member, error);
            }
            _ => self.vote_failed(member, invalid_response()),
        }
        self.decide(net);
        self.rest(net)
    }

    fn granted(
        &mut self,
        net: &mut Net,
        from: &Answered,
        fence: Option<Fence>,
        slot: Option<PermitSlot>,
    ) {
        // A late grant may be the first of its round.
        self.begin_round(net);
        let member = from.member;
        let state = &mut self.members[member];
        // A fence that was drawn later belongs to the lease of the first request.
        let without_fence = state.granted().filter(|it| it.fence.is_none());
        let (sent, is_same) = match without_fence {
            Some(first) => (first.sent, first.incarnation == *from.incarnation),
            None => (from.sent, true),
        };
        if !is_same {
            let text = "the member lost the lease before it drew a fence";
            let error = Error::new(ErrorKind::Unreachable, text).with_unknown_effect();
            return self.vote_failed(member, error);
        }
        state.is_asked = false;
        state.ask_at = None;
        state.uncertain = false;
        state.standing = Standing::Granted(Granted {
            sent,
            fence,
            slot,
            incarnation: from.incarnation.clone(),
        });
        if let Some(fence) = fence {
            self.vote(member, Vote::Granted(fence));
        }
    }

    fn draw_fence(&mut self, net: &mut Net, member: MemberIndex) {
        let state = &mut self.members[member];
        state.is_asked = true;
        let task = Task::Attempt(self.id, state.number);
        let lock_request = Arc::clone(&self.lock_request);
        let limit = net.limit_of(lock_request.usable_ttl());
        net.send(member, task, Request::DrawFence { lock_request }, limit);
    }

    fn refused(&mut self, net: &mut Net, member: MemberIndex, refusal: Refusal) {
        let now = net.now.instant;
        let state = &mut self.members[member];
        state.is_asked = false;
        let was_plain = std::mem::take(&mut state.is_plain);
        // An earlier sending took the lease. It counts from a script that asks again, which extends it.
        let is_own = was_plain && refusal.busy.holder == Some(self.lock_request.owner);
        state.uncertain = is_own;
        state.ask_at = refusal.ask_again.map(|after| now + after);
        state.standing = match refusal.busy.position {
            Some(_) => Standing::Queued(refusal.busy),
            None => Standing::Refused(refusal.busy),
        };
        net.waiters.note_busy(&self.lock_request.key, now);
        if is_own || self.is_queued() {
            if was_plain && self.is_asking() {
                self.ask(net, member);
            }
        } else {
            self.vote(member, Vote::Busy);
        }
    }

    /// An attempt has no reply, or not in time. It may have taken effect.
    pub(crate) fn lost(
        &mut self,
        net: &mut Net,
        member: MemberIndex,
        number: u32,
        error: Error,
    ) -> Next {
        if !self.is_current(member, number) {
            return Next::Runs;
        }
        if self.is_queued() {
            // A waiter asks again once the member may be asked.
            let state = &mut self.members[member];
            state.is_asked = false;
            state.uncertain = true;
            state.standing = Standing::Out;
        } else {
            self.vote_failed(member, error);
        }
        self.decide(net);
        self.rest(net)
    }

    /// A release named this waiter as its successor.
    pub(crate) fn succeeded(
        &mut self,
        net: &mut Net,
        from: &Answered,
        number: u32,
        got: Option<(Fence, Option<PermitSlot>)>,
    ) -> Next {
        if !self.is_current(from.member, number) {
            return Next::Runs;
        }
        match got {
            Some((fence, slot)) => self.granted(net, from, Some(fence), slot),
            None => self.members[from.member].is_asked = false,
        }
        self.decide(net);
        self.rest(net)
    }

    /// A member answered a request to confirm the fence.
    pub(crate) fn confirmed(
        &mut self,
        net: &mut Net,
        from: &Answered,
        fence: Fence,
        reply: Reply,
    ) -> Next {
        let (member, data) = (from.member, Some(from.incarnation));
        let counts = net.membership.counts(member, from.sent, data);
        let answer = match reply {
            Reply::Confirmed(answer) if counts.is_ok() && !from.late => Some(answer),
            _ => None,
        };
        self.count_confirmation(net, member, fence, answer)
    }

    /// Such a request has no reply, or not in time.
    pub(crate) fn unconfirmed(&mut self, net: &mut Net, member: MemberIndex, fence: Fence) -> Next {
        self.count_confirmation(net, member, fence, None)
    }

    fn count_confirmation(
        &mut self,
        net: &mut Net,
        member: MemberIndex,
        fence: Fence,
        answer: Option<FenceConfirmation>,
    ) -> Next {
        if let Some(round) = self.round_mut() {
            round.ballot.confirm(member, fence, answer);
        }
        self.decide(net);
        self.rest(net)
    }

    /// A member notified this waiter. A notification is only a hint, so this asks the member.
    pub(crate) fn notified(&mut self, net: &mut Net, member: MemberIndex) -> Next {
        let now = net.now.instant;
        self.notified_at.get_or_insert(now);
        let state = &mut self.members[member];
        if state.is_asked {
            // The answer to an attempt says when to ask again. A release that named this waiter answers only a grant.
            state.ask_at = Some(now);
            return self.next();
        }
        if state.granted().is_some() {
            return self.next();
        }
        self.ask(net, member);
        self.decide(net);
        self.rest(net)
    }

    /// A member answered a heartbeat.
    pub(crate) fn heard(&mut self, net: &mut Net, member: MemberIndex, answer: Refusal) -> Next {
        let is_asking = self.is_asking();
        let state = &mut self.members[member];
        if !is_asking || state.is_asked || !state.is_queued() {
            return self.next();
        }
        if answer.turn || answer.busy.position.is_none() {
            self.ask(net, member);
        } else {
            state.ask_at = answer.ask_again.map(|after| net.now.instant + after);
            state.standing = Standing::Queued(answer.busy);
        }
        self.decide(net);
        self.rest(net)
    }

    /// The connection broke: the member drops waiters of clients that do not listen.
    pub(crate) fn disconnected(&mut self, member: MemberIndex) {
        let state = &mut self.members[member];
        if matches!(state.standing, Standing::Queued(_) | Standing::Refused(_)) {
            state.uncertain = true;
            state.standing = Standing::Out;
            state.ask_at = None;
        }
    }
}

fn invalid_response() -> Error {
    let text = "not the answer to what was asked";
    Error::new(ErrorKind::InvalidResponse, text).with_unknown_effect()
}
