use std::time::Duration;

use leasehold_types::{BootInstant, Error};

use crate::member::index::MemberIndex;

/// What changed at a member. The driver writes it to the log.
#[derive(Clone, Debug)]
pub enum MemberEvent {
    /// The member has no vote.
    NoVote {
        /// The member.
        member: MemberIndex,
        /// The reason, as text.
        reason: String,
        /// When it has a vote again, if that is known.
        until: Option<BootInstant>,
    },
    /// The member has a vote.
    HasVote {
        /// The member.
        member: MemberIndex,
        /// An earlier event reported that it had none.
        again: bool,
    },
    /// The member restarted and may have forgotten leases. Its answers still count, because the trust rules
    /// are not enforced.
    Restarted {
        /// The member.
        member: MemberIndex,
    },
    /// Requests to the member begin to fail.
    Fails {
        /// The member.
        member: MemberIndex,
        /// The first failure.
        error: Error,
    },
    /// The member answers again.
    Answers {
        /// The member.
        member: MemberIndex,
    },
    /// This machine was suspended, and its clock did not notice. The driver sets its clock ahead before it
    /// hands in anything else. Otherwise the other members' clocks would seem wrong.
    Suspended {
        /// The member whose clock showed it.
        member: MemberIndex,
        /// For how long.
        span: Duration,
    },
}
