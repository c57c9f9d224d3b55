//! Which members may be asked, and which operations wait for.

use leasehold_types::{BootInstant, Error, ErrorKind, MemberFailure, MemberId, rough_span};

use super::{Connection, Membership};
use crate::ballot::majority;
use crate::member::index::MemberIndex;
use crate::messages::Request;
use crate::trust::UntrustedReason;

/// Whether a member may be asked for a lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Access {
    /// Requests may be sent.
    Open,
    /// Not yet: its status is not known. Look again after [`Membership::take_changed`].
    Pending,
    /// No. [`Membership::obstacle`] says why.
    Closed,
}

impl Membership {
    /// Returns whether requests of an operation that began at `began` may be sent to the member. If an
    /// older status of the member is in the way, asks for a new one.
    #[inline]
    pub(crate) fn access(
        &mut self,
        now: BootInstant,
        member: MemberIndex,
        began: BootInstant,
    ) -> Access {
        match self.is_open(member) {
            true => Access::Open,
            false => self.access_unless_open(now, member, began),
        }
    }

    fn access_unless_open(
        &mut self,
        now: BootInstant,
        member: MemberIndex,
        began: BootInstant,
    ) -> Access {
        let state = &self.members[member];
        match state.connection {
            Connection::Open if state.silent_since.is_some() => return Access::Closed,
            Connection::Open if state.met => {}
            Connection::Open | Connection::Pending => {
                // After a refusal the retry decides.
                return match self.is_awaited(now, member) {
                    true => Access::Pending,
                    false => Access::Closed,
                };
            }
            Connection::Closed(..) => return Access::Closed,
        }
        let is_forming = match self.trust.may_ask(member) {
            Err(UntrustedReason::NotFormed { missing }) => self.may_form(now, missing),
            Ok(()) | Err(_) => false,
        };
        let is_known = self.trust.heard_since(member, began);
        if !is_known && state.retry.is_none() {
            self.ask(now, member, Request::Status);
        }
        match is_known && !is_forming {
            true => Access::Closed,
            false => Access::Pending,
        }
    }

    /// Returns whether requests of any operation may be sent to the member.
    #[inline]
    pub(crate) fn is_open(&self, member: MemberIndex) -> bool {
        let state = &self.members[member];
        let is_open = matches!(state.connection, Connection::Open);
        is_open && state.met && state.silent_since.is_none() && self.trust.may_ask(member).is_ok()
    }

    /// Returns whether requests of operations may have been sent to the member.
    pub(crate) fn was_met(&self, member: MemberIndex) -> bool {
        self.members[member].met
    }

    /// Returns whether operations wait for the first status of the member.
    pub(crate) fn is_awaited(&self, now: BootInstant, member: MemberIndex) -> bool {
        let state = &self.members[member];
        let is_first = match state.connection {
            Connection::Pending => true,
            Connection::Open => !state.met && state.missed.is_none(),
            Connection::Closed(..) => false,
        };
        is_first && self.first_connections.are_awaited(now)
    }

    /// Returns whether the quorum may be initialized soon: none of the members that it needs is known to be
    /// unreachable.
    fn may_form(&self, now: BootInstant, missing: &[MemberId]) -> bool {
        let members = self.ids.iter().zip(&self.members);
        let mut needed = members.filter(|(id, _)| missing.contains(id));
        needed.all(|(_, member)| match member.connection {
            Connection::Pending => self.first_connections.are_awaited(now),
            Connection::Open => member.silent_since.is_none() && member.missed.is_none(),
            Connection::Closed(..) => false,
        })
    }

    /// Returns why the member may not be asked, if so.
    pub(crate) fn obstacle(&self, now: BootInstant, member: MemberIndex) -> Option<MemberFailure> {
        let state = &self.members[member];
        let unreachable = |text: String| Error::new(ErrorKind::Unreachable, text);
        let error = match &state.connection {
            Connection::Pending => {
                let span = rough_span(self.first_connections.lasted(now));
                unreachable(format!("not connected after {span}"))
            }
            Connection::Closed(error, _) => error.clone(),
            Connection::Open => match (state.silent_since, &state.missed) {
                (Some(since), _) => {
                    let span = rough_span(now.since(since));
                    unreachable(format!("has not answered for {span}"))
                }
                (None, Some(error)) if !state.met => error.clone(),
                (None, _) if !state.met => UntrustedReason::Unknown.error(),
                (None, _) => {
                    let reason = self.trust.may_ask(member).err()?;
                    return Some(self.failure(now, member, reason));
                }
            },
        };
        let error = self.named(member, error);
        Some(MemberFailure::new(self.ids[member].clone(), error))
    }

    /// Returns whether the result of [`Membership::access`] may have changed since the last call.
    pub(crate) fn take_changed(&mut self, now: BootInstant) -> bool {
        if self.changed && !self.first_connections.has_majority() {
            let has_vote = |it: &MemberIndex| {
                let state = &self.members[*it];
                let is_open = matches!(state.connection, Connection::Open) && state.met;
                is_open && self.trust.counts(*it, now, None).is_ok()
            };
            if self.ids.keys().filter(has_vote).count() >= majority(self.len()) {
                self.first_connections.reached_majority(now);
            }
        }
        std::mem::take(&mut self.changed)
    }
}
