use std::time::Duration;

use super::record::MemberRecord;
use super::status::MemberStatus;
use crate::{Error, MemberFailure, MemberId};

/// The health of one member, as one client sees it. For diagnostics and monitoring.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct MemberHealth {
    /// The member.
    pub id: MemberId,
    /// What the member reports about itself, or why it could not be asked.
    pub status: Result<MemberStatus, Error>,
    /// Why the member has no vote, and for how long; `None` if it has a vote.
    pub untrusted_reason: Option<MemberFailure>,
    /// For how long the member has certainly lost nothing; [`Duration::MAX`] if it never did, and `None` if that
    /// is unknown. It can deny the result of a request if this is at least the retention of the request.
    pub remembers_for: Option<Duration>,
}

impl MemberHealth {
    /// Returns the health of a member that has a vote.
    pub fn new(id: MemberId, status: Result<MemberStatus, Error>) -> Self {
        Self {
            id,
            status,
            untrusted_reason: None,
            remembers_for: None,
        }
    }

    /// Returns the time until the member can deny a result with this retention, if it is known.
    fn denies_results_in(&self, retention: Duration) -> Option<Duration> {
        let status = self.status.as_ref().ok()?;
        let left = retention.saturating_sub(self.remembers_for?);
        status.will_remember().then_some(left)
    }
}

/// Returns the time until a majority of the members can deny the result of a request, so that requests with
/// this retention run: zero if it can now, and `None` if too few members are known to be durable.
pub fn requests_run_in(health: &[MemberHealth], retention: Duration) -> Option<Duration> {
    let spans = health
        .iter()
        .filter_map(|it| it.denies_results_in(retention));
    let mut spans: Vec<Duration> = spans.collect();
    spans.sort_unstable();
    spans.get(health.len() / 2).copied()
}

impl MemberStatus {
    /// Returns whether the member has all the data that its member record describes. It does if it runs as before,
    /// or if it was durable before its restart and is durable now. A server that is not durable now has
    /// loaded something other than the file that was durable. A server that was durable in this run was
    /// no replica then.
    pub fn remembers(&self) -> bool {
        let Some(member_record) = &self.member_record else {
            return false;
        };
        if member_record.run == self.run {
            return !(member_record.durable && self.was_replica);
        }
        member_record.durable && self.durable
    }

    /// Returns whether an operator may still state that the member was new when a client initialized its quorum.
    pub fn may_be_stated_new(&self) -> bool {
        let is_first =
            |record: &MemberRecord| record.configuration() == 1 && record.since.as_micros() > 0;
        self.remembers() && self.member_record.as_ref().is_some_and(is_first)
    }

    /// Returns whether a quorum relies on the member to remember everything across its next restart. It
    /// does if the member is durable now, and no client found otherwise during this run. If a member
    /// becomes durable while it runs, the quorum relies on it from its next restart on.
    pub fn will_remember(&self) -> bool {
        let durable_so_far =
            |member_record: &MemberRecord| member_record.durable || member_record.run != self.run;
        self.durable && self.member_record.as_ref().is_none_or(durable_so_far)
    }
}
