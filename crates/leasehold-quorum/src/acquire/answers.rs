//! Takes in what members answer to acquisitions.

use leasehold_types::{Error, ErrorKind, Fence, FenceConfirmation, PermitSlot};

use super::state::{ClaimState, Granted, MemberState, Phase};
use crate::ballot::Vote;
use crate::engine::{Engine, Now};
use crate::member::{Answered, Task};
use crate::operation::OperationId;
use crate::reply::{Refusal, Reply};
use crate::request::Request;

impl Engine {
    /// Returns the state of an attempt at a member, unless the attempt was given back in the meantime.
    fn member_state(
        &mut self,
        id: OperationId,
        member: usize,
        number: u32,
    ) -> Option<&mut MemberState> {
        let acquisition = self.acquisitions.get_mut(&id)?;
        let member_state = &mut acquisition.members[member];
        (member_state.number == number).then_some(member_state)
    }

    pub(crate) fn take_attempt(
        &mut self,
        now: Now,
        from: &Answered,
        id: OperationId,
        number: u32,
        reply: Reply,
    ) {
        let member = from.member;
        let Some(member_state) = self.member_state(id, member, number) else {
            return;
        };
        match reply {
            Reply::Granted { fence, slot } => self.granted(now, id, from, Some(fence), slot),
            Reply::GrantedBehind => {
                // The lease counts from the first request, and has no fence yet.
                self.granted(now, id, from, None, None);
                self.draw_fence(now, id, member, number);
                self.set_wake(id);
                return;
            }
            Reply::Busy(refusal) => self.refused(now, id, member, refusal),
            Reply::Failed(error) => {
                member_state.fail(error.clone());
                if error.is_unreachable() {
                    self.membership.refused(member, &error);
                }
                self.vote_failed(id, member, error);
            }
            _ => self.vote_failed(id, member, invalid_response()),
        }
        self.decide(now, id);
        self.set_wake(id);
    }

    fn granted(
        &mut self,
        now: Now,
        id: OperationId,
        from: &Answered,
        fence: Option<Fence>,
        slot: Option<PermitSlot>,
    ) {
        // A late grant may be the first of its round.
        self.begin_round(now, id);
        let Some(acquisition) = self.acquisitions.get_mut(&id) else {
            return;
        };
        let member_state = &mut acquisition.members[from.member];
        // A fence that was drawn later belongs to the lease of the first request.
        let without_fence = member_state.granted().filter(|it| it.fence.is_none());
        let (sent, is_same) = match without_fence {
            Some(first) => (first.sent, first.incarnation == from.incarnation),
            None => (from.sent, true),
        };
        if !is_same {
            let text = "the member lost the lease before it drew a fence";
            let error = Error::new(ErrorKind::Unreachable, text).with_unknown_effect();
            return self.vote_failed(id, from.member, error);
        }
        member_state.asked = None;
        member_state.ask_at = None;
        member_state.uncertain = false;
        member_state.claim = ClaimState::Granted(Granted {
            sent,
            fence,
            slot,
            incarnation: from.incarnation.clone(),
        });
        if let (Some(fence), Some(round)) = (fence, &mut acquisition.round) {
            round.ballot.vote(from.member, Vote::Granted(fence));
        }
        // A script has set the expiry, too.
        self.members[from.member].expiry_is_due(&acquisition.claim.key, now.instant);
    }

    fn draw_fence(&mut self, now: Now, id: OperationId, member: usize, number: u32) {
        let Some(member_state) = self.member_state(id, member, number) else {
            return;
        };
        member_state.asked = Some(now.instant);
        let Some(acquisition) = self.acquisitions.get(&id) else {
            return;
        };
        let claim = acquisition.claim.clone();
        let limit = self.limit_of(claim.usable_ttl());
        let request = Request::DrawFence { claim };
        self.send(now, member, Task::Attempt(id, number), request, limit);
    }

    fn refused(&mut self, now: Now, id: OperationId, member: usize, refusal: Refusal) {
        let Some(acquisition) = self.acquisitions.get_mut(&id) else {
            return;
        };
        let (is_queued, is_asking) = (acquisition.is_queued(), acquisition.phase == Phase::Asking);
        let member_state = &mut acquisition.members[member];
        member_state.asked = None;
        let was_plain = std::mem::take(&mut member_state.is_plain);
        // An earlier sending took the lease. It counts from a script that asks again, which extends it.
        let is_own = was_plain && refusal.busy.holder == Some(acquisition.claim.owner);
        member_state.uncertain = is_own;
        member_state.ask_at = refusal.ask_again.map(|after| now.instant + after);
        member_state.claim = match refusal.busy.place {
            Some(_) => ClaimState::Queued(refusal.busy),
            None => ClaimState::Refused(refusal.busy),
        };
        self.waiters.note_busy(&acquisition.claim.key, now.instant);
        if is_own || is_queued {
            if was_plain && is_asking {
                self.ask(now, id, member);
            }
        } else if let Some(round) = &mut acquisition.round {
            round.ballot.vote(member, Vote::Busy);
        }
    }

    /// An attempt has no reply, or not in time. It may have taken effect.
    pub(crate) fn lose_attempt(
        &mut self,
        now: Now,
        member: usize,
        id: OperationId,
        number: u32,
        error: Error,
    ) {
        if self.member_state(id, member, number).is_none() {
            return;
        }
        let Some(acquisition) = self.acquisitions.get_mut(&id) else {
            return;
        };
        if acquisition.is_queued() {
            // A waiter asks again once the member may be asked.
            let member_state = &mut acquisition.members[member];
            member_state.asked = None;
            member_state.uncertain = true;
            member_state.claim = ClaimState::Out;
        } else {
            self.vote_failed(id, member, error);
        }
        self.decide(now, id);
        self.set_wake(id);
    }

    /// A release named this waiter as its successor.
    pub(crate) fn take_succession(
        &mut self,
        now: Now,
        from: &Answered,
        id: OperationId,
        number: u32,
        got: Option<(Fence, Option<PermitSlot>)>,
    ) {
        let Some(member_state) = self.member_state(id, from.member, number) else {
            return;
        };
        match got {
            Some((fence, slot)) => self.granted(now, id, from, Some(fence), slot),
            None => member_state.asked = None,
        }
        self.decide(now, id);
        self.set_wake(id);
    }

    pub(crate) fn take_confirmation(
        &mut self,
        now: Now,
        from: &Answered,
        id: OperationId,
        fence: Fence,
        reply: Reply,
    ) {
        let counts = self
            .membership
            .counts(from.member, from.sent, Some(&from.incarnation));
        let answer = match reply {
            Reply::Confirmed(answer) if counts.is_ok() && !from.late => Some(answer),
            _ => None,
        };
        self.confirmed(now, from.member, id, fence, answer);
    }

    pub(crate) fn lose_confirmation(
        &mut self,
        now: Now,
        member: usize,
        id: OperationId,
        fence: Fence,
        _error: Error,
    ) {
        self.confirmed(now, member, id, fence, None);
    }

    fn confirmed(
        &mut self,
        now: Now,
        member: usize,
        id: OperationId,
        fence: Fence,
        answer: Option<FenceConfirmation>,
    ) {
        let Some(acquisition) = self.acquisitions.get_mut(&id) else {
            return;
        };
        if let Some(round) = &mut acquisition.round {
            round.ballot.confirm(member, fence, answer);
        }
        self.decide(now, id);
        self.set_wake(id);
    }

    /// A member notified this waiter. A notification is only a hint, so this asks the member.
    pub(crate) fn take_turn(&mut self, now: Now, member: usize, id: OperationId) {
        let Some(acquisition) = self.acquisitions.get_mut(&id) else {
            return;
        };
        acquisition.notified_at.get_or_insert(now.instant);
        let member_state = &mut acquisition.members[member];
        if member_state.asked.is_some() {
            // The answer to an attempt says when to ask again. A release that named this waiter answers only a grant.
            member_state.ask_at = Some(now.instant);
        } else if member_state.granted().is_none() {
            self.ask(now, id, member);
            self.decide(now, id);
            self.set_wake(id);
        }
    }

    /// The connection broke: the member drops waiters of clients that do not listen.
    pub(crate) fn disconnect_waits(&mut self, member: usize) {
        for acquisition in self.acquisitions.values_mut() {
            let member_state = &mut acquisition.members[member];
            if matches!(
                member_state.claim,
                ClaimState::Queued(_) | ClaimState::Refused(_)
            ) {
                member_state.uncertain = true;
                member_state.claim = ClaimState::Out;
                member_state.ask_at = None;
            }
        }
    }
}

fn invalid_response() -> Error {
    let text = "not the answer to what was asked";
    Error::new(ErrorKind::InvalidResponse, text).with_unknown_effect()
}
