use super::member::MemberStatus;
use super::member_record::MemberRecord;
use crate::env::BoxFuture;
use crate::types::{Error, MemberFailure, MemberId};

/// Shows the state of each member: an optional part of a [`Store`](crate::store::Store) that consists of members.
pub trait Health: Send + Sync {
    /// Asks every member and returns its state, in the order in which the members were given. A member
    /// that does not answer is no error; its state says so. For diagnostics and monitoring.
    ///
    /// # Cancel safety
    ///
    /// May be dropped at any time.
    fn members(&self) -> BoxFuture<'_, Vec<MemberHealth>>;
}

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
}

impl MemberHealth {
    /// Returns the health of a member that has a vote.
    pub fn new(id: MemberId, status: Result<MemberStatus, Error>) -> Self {
        Self {
            id,
            status,
            untrusted_reason: None,
        }
    }
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

    /// Returns whether a quorum relies on the member to remember everything across its next restart. It
    /// does if the member is durable now, and no client found otherwise during this run. If a member
    /// becomes durable while it runs, the quorum relies on it from its next restart on.
    pub fn will_remember(&self) -> bool {
        let durable_so_far =
            |member_record: &MemberRecord| member_record.durable || member_record.run != self.run;
        self.durable && self.member_record.as_ref().is_none_or(durable_so_far)
    }
}
