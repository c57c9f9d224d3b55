//! The members of a quorum: their health, their records, and what their votes depend on.
//!
//! [`Client::health`](crate::Client::health) returns the health of each member. The other names are those of the engine of
//! the quorum and of its tools; a store without members uses none of them.

#[doc(inline)]
pub use leasehold_types::{
    DataGeneration, Epoch, FenceConfirmation, Incarnation, MemberFailure, MemberHealth, MemberId,
    MemberRecord, MemberRecordEdit, MemberSet, MemberStatus, Observation, PermitSlot, PermitSlots,
    RunId, Sample, requests_run_in,
};
