//! The values of Leasehold: keys, owners, fences, requests and the answers to them, what members report, instants,
//! and the error.
//!
//! They are checked once and then trusted. They depend on no runtime, so code that only decides, such as the engine
//! for quorums, builds and runs its tests in seconds. Users find all of them in the crate `leasehold`.
#![forbid(unsafe_code)]
#![deny(clippy::disallowed_types)]

mod attempt;
mod client_info;
mod entropy;
mod error;
mod error_kind;
mod fence;
mod holder;
#[expect(
    clippy::disallowed_types,
    reason = "converts times of the wall clock, and reads none"
)]
mod instants;
mod key;
mod key_rules;
mod lock_break;
mod lock_listing;
mod lock_request;
mod lost_reason;
mod member;
mod member_health;
mod member_id;
mod member_record;
mod mode;
mod owner;
mod pattern;
mod permits;
mod printable;
mod queue;
mod record;
#[cfg(feature = "serde")]
mod serde_text;

pub use attempt::{AcquireError, Busy, Grant, ReleaseReply, RenewReply, Term};
pub use client_info::ClientInfo;
pub use entropy::Entropy;
pub use error::{Error, MemberFailure};
pub use error_kind::{Effect, ErrorKind};
pub use fence::Fence;
pub use holder::Holder;
pub use instants::{BootInstant, WallTime};
pub use key::Key;
pub use lock_break::{BreakOptions, BreakOutcome, BreakRecord, BrokenLease};
pub use lock_listing::{ListedLock, LockListing, Visibility};
pub use lock_request::{Held, LockRequest};
pub use lost_reason::LostReason;
pub use member::{FenceConfirmation, Incarnation, MemberStatus, Sample};
pub use member_health::{MemberHealth, requests_run_in};
pub use member_id::MemberId;
pub use member_record::{
    DataGeneration, Epoch, MemberRecord, MemberRecordEdit, MemberSet, Observation, RunId,
};
pub use mode::Mode;
pub use owner::{ClientId, NotAnOwner, Owner};
pub use pattern::Pattern;
pub use permits::{PermitSlot, PermitSlots, Permits};
pub use printable::{is_printable, printable};
pub use queue::{Ticket, Waiter};
pub use record::{
    Opened, RECORD_MEMORY, Reading, RecordKey, RecordWrite, Version, WriteOutcome, Written,
};
