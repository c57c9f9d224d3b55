//! Whose answers count.

use std::time::Duration;

use leasehold_types::{BootInstant, Error, Incarnation, LockRequest, MemberFailure, Term};

use super::{MemberEvent, Membership};
use crate::member::index::MemberIndex;
use crate::messages::Request;
use crate::trust::UntrustedReason;

impl Membership {
    /// Returns whether the member's answer to a request sent at `sent` counts.
    pub(crate) fn counts(
        &mut self,
        member: MemberIndex,
        sent: BootInstant,
        incarnation: Option<&Incarnation>,
    ) -> Result<(), UntrustedReason> {
        let mut verdict = self.trust.counts(member, sent, incarnation);
        if self.members[member].restarted.is_some() {
            verdict = verdict.and(Err(UntrustedReason::Changed));
        }
        let told = &mut self.members[member].told;
        if verdict.is_ok() && matches!(told, Some(None)) {
            return verdict;
        }
        let is_news = match (&verdict, &*told) {
            // This client has not asked the member yet.
            (Err(UntrustedReason::Unknown), _) => false,
            (Err(reason), Some(Some(told))) => !reason.is_known(told),
            (Ok(()), Some(None)) => false,
            _ => true,
        };
        if is_news {
            let again = matches!(told, Some(Some(_)));
            let reason = verdict.as_ref().err().cloned();
            self.events.push_back(match &reason {
                Some(reason) => MemberEvent::NoVote {
                    member,
                    reason: reason.to_string(),
                    until: reason.until(),
                },
                None => MemberEvent::HasVote { member, again },
            });
            *told = Some(reason);
        }
        verdict
    }

    /// Checks the TTL of a request against the limits of the quorum.
    pub(crate) fn check_ttl(&self, lock_request: &LockRequest) -> Result<(), Error> {
        self.trust.check_ttl(lock_request)
    }

    /// Returns the term of a lease that counts from `since`.
    pub(crate) fn term(&self, lock_request: &LockRequest, since: BootInstant) -> Term {
        self.trust.term(lock_request, since)
    }

    /// Returns why an answer to a request sent now would not count, if so. Asks a member without a vote for
    /// its status, at most once a second.
    pub(crate) fn lacks_vote(
        &mut self,
        now: BootInstant,
        member: MemberIndex,
    ) -> Option<MemberFailure> {
        let reason = self.counts(member, now, None).err()?;
        if !self.trust.heard_since(member, now - LOOK_PAUSE) && self.members[member].retry.is_none()
        {
            self.ask(now, member, Request::Status);
        }
        Some(self.failure(now, member, &reason))
    }

    /// Returns why the member has no vote, with the member's name.
    pub(crate) fn failure(
        &self,
        now: BootInstant,
        member: MemberIndex,
        reason: &UntrustedReason,
    ) -> MemberFailure {
        let id = &self.ids[member];
        let mut failure = reason.failure(id, now);
        failure.error = self.named(member, failure.error);
        failure
    }

    /// Returns a failure of a request to the member, with the member's name.
    pub(crate) fn named_failure(&self, member: MemberIndex, error: Error) -> MemberFailure {
        MemberFailure::new(self.ids[member].clone(), self.named(member, error))
    }

    /// Returns whether a member with a vote lost nothing that it had to keep for `retention`.
    pub(crate) fn remembers(
        &self,
        member: MemberIndex,
        sent: BootInstant,
        retention: Duration,
    ) -> Result<(), UntrustedReason> {
        self.trust.remembers(member, sent, retention)
    }

    /// Returns whether the member last said that it keeps everything it acknowledges across a restart.
    pub(crate) fn is_durable(&self, member: MemberIndex) -> bool {
        self.trust.is_durable(member)
    }
}

/// How often a client looks at a member without a vote.
const LOOK_PAUSE: Duration = Duration::from_secs(1);
