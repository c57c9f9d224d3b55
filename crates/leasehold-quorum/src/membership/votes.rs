//! Whose answers count.

use std::time::Duration;

use leasehold::clock::BootInstant;
use leasehold::{Incarnation, MemberFailure};

use super::{MemberEvent, Membership};
use crate::quorum::trust::Distrust;

impl Membership {
    /// Returns whether an answer counts that the member gave to a request sent at `sent`.
    pub(crate) fn counts(
        &mut self,
        member: usize,
        sent: BootInstant,
        incarnation: Option<&Incarnation>,
    ) -> Result<(), Distrust> {
        let mut verdict = self.trust.counts(member, sent, incarnation);
        if self.members[member].restarted.is_some() {
            verdict = verdict.and(Err(Distrust::Changed));
        }
        let told = &mut self.members[member].told;
        // It is no news that this client has not asked yet.
        if !matches!(verdict, Err(Distrust::Unknown)) && told.as_ref() != verdict.as_ref().err() {
            *told = verdict.as_ref().err().cloned();
            self.events.push_back(match told {
                Some(distrust) => MemberEvent::NoVote {
                    member,
                    reason: distrust.to_string(),
                    until: distrust.until(),
                },
                None => MemberEvent::HasVote { member },
            });
        }
        verdict
    }

    /// Returns why the member has no vote, with the member's name.
    pub(crate) fn failure(
        &self,
        now: BootInstant,
        member: usize,
        distrust: &Distrust,
    ) -> MemberFailure {
        let id = &self.ids[member];
        let mut failure = distrust.failure(id, now);
        failure.error = self.named(member, failure.error);
        failure
    }

    /// Returns whether a member that has a vote lost nothing of what it was to keep for `retention`.
    #[allow(dead_code, reason = "for records, which do not use the engine yet")]
    pub(crate) fn remembers(
        &self,
        member: usize,
        sent: BootInstant,
        retention: Duration,
    ) -> Result<(), Distrust> {
        self.trust.remembers(member, sent, retention)
    }

    /// Returns whether the member said last that it keeps across a restart all that it acknowledges.
    #[allow(dead_code, reason = "for records, which do not use the engine yet")]
    pub(crate) fn is_durable(&self, member: usize) -> bool {
        self.trust.is_durable(member)
    }
}
