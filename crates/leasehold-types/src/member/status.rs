use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use super::record::{Epoch, MemberRecord, RunId};
use crate::Fence;
use crate::instants::WallTime;

/// A member's answer to the request to raise its counter to a fence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FenceConfirmation {
    /// The request holds, and the counter is at least the fence. For a request that is not exclusive, the
    /// counter was smaller before.
    Confirmed,
    /// The request holds together with others, but the counter already had this value, which is the fence
    /// or greater. Nothing was changed.
    Conflict(Fence),
    /// The request does not hold here. Nothing was changed.
    NotHeld,
}

/// What a member reports with every answer: the data that gave it, and the time at the member.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sample {
    /// Its wall clock, read while it answered.
    pub clock: WallTime,
    /// The data that gave the answer.
    pub incarnation: Incarnation,
}

/// One run of a member, with the member record that it had. Answers of different incarnations may come from
/// different data.
#[derive(Clone, Eq)]
pub struct Incarnation(Arc<str>);

/// Answers of one connection share their text, and each answer is compared.
impl PartialEq for Incarnation {
    #[inline]
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0) || self.0 == other.0
    }
}

impl Incarnation {
    /// Returns the incarnation of this run and of the member record with this epoch.
    pub fn new(run: &RunId, epoch: Option<&Epoch>) -> Self {
        Self(format!("{run}/{}", epoch.map_or("", Epoch::as_str)).into())
    }
}

impl fmt::Debug for Incarnation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Incarnation({})", self.0)
    }
}

/// The state of a member, as it reports it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct MemberStatus {
    /// The run of the server.
    pub run: RunId,
    /// Its wall clock.
    pub clock: WallTime,
    /// How long it has been running, by its wall clock; [`Duration::MAX`] for a member that cannot have
    /// run before.
    pub uptime: Duration,
    /// Whether its settings alone keep everything that it acknowledges now across a restart.
    /// [`will_remember`](Self::will_remember) says whether a quorum relies on that.
    pub durable: bool,
    /// Whether it was a replica during this run: its data may be older than what it acknowledged.
    pub was_replica: bool,
    /// Why it is unfit to be a member, if it is, in words; for example, that it evicts keys.
    pub unfit: Option<String>,
    /// Its member record, if it has one.
    pub member_record: Option<MemberRecord>,
}

impl MemberStatus {
    /// Returns the state of a fit member in this run that is not durable and has no member record.
    pub fn new(run: RunId, clock: WallTime, uptime: Duration) -> Self {
        Self {
            run,
            clock,
            uptime,
            durable: false,
            was_replica: false,
            unfit: None,
            member_record: None,
        }
    }

    /// Returns the incarnation of its answers while nothing changes.
    pub fn incarnation(&self) -> Incarnation {
        Incarnation::new(
            &self.run,
            self.member_record
                .as_ref()
                .map(MemberRecord::epoch)
                .as_ref(),
        )
    }
}
