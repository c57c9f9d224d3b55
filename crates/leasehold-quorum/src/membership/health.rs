//! The state of a member, from a fresh request.

use leasehold_types::{BootInstant, Error, ErrorKind, MemberHealth};

use super::{Connection, Membership};
use crate::member::index::MemberIndex;
use crate::messages::Request;

impl Membership {
    /// Returns whether a request for the member's status that was sent at `began` or later was answered or
    /// failed. Otherwise requests the status.
    pub(crate) fn look(
        &mut self,
        now: BootInstant,
        member: MemberIndex,
        began: BootInstant,
    ) -> bool {
        let state = &self.members[member];
        match state.connection {
            // The driver connects, or tries again within a second.
            Connection::Pending => !self.first_connections.are_awaited(now),
            Connection::Closed(_, since) => since >= began,
            Connection::Open => {
                let is_answered = state.heard.is_some_and(|heard| heard >= began);
                let is_over = is_answered || self.unanswered_since(member, began).is_some();
                if !is_over {
                    self.ask(now, member, Request::Status);
                }
                is_over
            }
        }
    }

    /// Returns the state of a member, from a status that was requested at `began` or later.
    pub(crate) fn health(
        &mut self,
        now: BootInstant,
        member: MemberIndex,
        began: BootInstant,
    ) -> MemberHealth {
        let (id, state) = (self.ids[member].clone(), &self.members[member]);
        let is_open = matches!(state.connection, Connection::Open);
        let heard = state.heard.filter(|heard| is_open && *heard >= began);
        let status = self.trust.status(member).cloned();
        let (Some(heard), Some(status)) = (heard, status) else {
            let error = self.unanswered_since(member, began);
            return MemberHealth::new(id, Err(error.unwrap_or_else(|| self.silence(now, member))));
        };
        let verdict = self.counts(member, heard, Some(&status.incarnation()));
        let mut health = MemberHealth::new(id, Ok(status));
        health.remembers_for = self.trust.remembers_for(member, heard);
        health.untrusted_reason = verdict
            .err()
            .map(|reason| self.failure(now, member, &reason));
        health
    }

    fn unanswered_since(&self, member: MemberIndex, began: BootInstant) -> Option<Error> {
        let (sent, error) = self.members[member].unanswered.as_ref()?;
        (*sent >= began).then(|| error.clone())
    }

    /// Returns why there is no status.
    fn silence(&self, now: BootInstant, member: MemberIndex) -> Error {
        let obstacle = self.obstacle(now, member);
        obstacle.map(|failure| failure.error).unwrap_or_else(|| {
            let text = "did not report its status in time";
            self.named(member, Error::new(ErrorKind::Unreachable, text))
        })
    }
}
