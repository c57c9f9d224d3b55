use leasehold_types::{LockRequest, LostReason, MemberFailure, MemberId, Mode, RenewReply, Term};

use crate::errors::too_few;
use crate::member::index::MemberIndex;
use crate::messages::LeaseState;
use crate::tally::{LeaseVote, Tally, Verdict};

/// What the members say about one lease.
#[derive(Debug)]
pub(super) struct LeaseOutcome {
    members: usize,
    tally: Tally,
    failures: Vec<MemberFailure>,
    /// Whether the lease may be restored where members lost it.
    pub(super) repairs: bool,
    /// The members with a vote that lost the lease.
    lost_at: Vec<MemberIndex>,
}

impl LeaseOutcome {
    pub(super) fn new(lock_request: &LockRequest, members: usize) -> Self {
        Self {
            members,
            tally: Tally::new(members),
            failures: Vec::new(),
            repairs: lock_request.repairs && lock_request.mode == Mode::Exclusive,
            lost_at: Vec::new(),
        }
    }

    /// Takes in a member's answer. `doubt` says why the member has no vote. Such a member cannot extend the
    /// lease, and nothing is restored there.
    pub(super) fn count(
        &mut self,
        member: MemberIndex,
        id: &MemberId,
        state: LeaseState,
        doubt: Option<&MemberFailure>,
    ) {
        match (state, doubt) {
            (LeaseState::Lost(reason), doubt) => {
                if reason == LostReason::Gone && doubt.is_none() {
                    self.lost_at.push(member);
                }
                // Otherwise the repair would undo an operator's break.
                self.repairs &= reason != LostReason::Broken;
                self.tally.count(LeaseVote::Lost(reason));
            }
            (LeaseState::Renewed, None) => self.tally.count(LeaseVote::Valid),
            (LeaseState::Renewed, Some(failure)) => self.fail(failure.clone()),
            (LeaseState::Failed(error), _) => {
                let error = error.with_store(id.to_string());
                self.fail(MemberFailure::new(id.clone(), error));
            }
        }
    }

    /// A member did not answer, or has no vote.
    pub(super) fn fail(&mut self, failure: MemberFailure) {
        self.failures.push(failure);
        self.tally.count(LeaseVote::Unknown);
    }

    pub(super) fn is_open(&self) -> bool {
        self.tally.verdict() == Verdict::Open
    }

    /// Returns the answer, with the `term` of a lease that a majority extended.
    pub(super) fn renewal(&self, term: Term) -> RenewReply {
        match self.tally.verdict() {
            Verdict::Valid => RenewReply::Renewed(term),
            Verdict::Lost(reason) => RenewReply::Lost(reason),
            Verdict::Open | Verdict::Unknown => {
                let error = too_few(self.members, 0, self.failures.clone());
                RenewReply::Unknown(error.with_unknown_effect())
            }
        }
    }

    /// Whether a majority extended the lease, and the member lost it.
    pub(super) fn is_to_be_repaired(&self, member: MemberIndex) -> bool {
        self.repairs && self.tally.verdict() == Verdict::Valid && self.lost_at.contains(&member)
    }
}
