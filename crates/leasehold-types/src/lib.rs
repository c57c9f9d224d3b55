//! The values of Leasehold: keys, owners, fences, requests and the answers to them, what members report, instants,
//! and the error.
//!
//! They are checked once and then trusted. They depend on no runtime, so code that only decides, such as the engine
//! for quorums, builds and runs its tests in seconds. Users find all of them in the crate `leasehold`.
#![forbid(unsafe_code)]
#![deny(clippy::disallowed_types)]

mod client_info;
mod entropy;
mod error;
mod fence;
#[expect(
    clippy::disallowed_types,
    reason = "converts times of the wall clock, and reads none"
)]
mod instants;
mod key;
mod key_rules;
mod lock;
mod member;
mod member_id;
mod mode;
mod owner;
mod permits;
mod printable;
mod record;
#[cfg(feature = "serde")]
mod serde_text;
mod span;
mod url_text;
mod wall_clock;

pub use client_info::ClientInfo;
pub use entropy::Entropy;
pub use error::{Effect, Error, ErrorKind, LostReason, MemberFailure};
pub use fence::Fence;
pub use instants::{BootInstant, WallTime};
pub use key::Key;
pub use lock::{
    AcquireError, BreakOptions, BreakOutcome, BreakRecord, BreakTarget, BrokenLease, Busy, Grant,
    Held, Holder, ListedLock, LockListing, LockRequest, Pattern, ReleaseReply, RenewReply, Term,
    Ticket, Visibility, Waiter,
};
pub use member::{
    DataGeneration, Epoch, FenceConfirmation, Incarnation, MemberHealth, MemberRecord,
    MemberRecordEdit, MemberSet, MemberStatus, Observation, RunId, Sample, requests_run_in,
};
pub use member_id::MemberId;
pub use mode::Mode;
pub use owner::{ClientId, NotAnOwner, Owner};
pub use permits::{PermitSlot, PermitSlots, Permits};
pub use printable::{is_printable, printable};
pub use record::{
    Opened, RECORD_MEMORY, Reading, RecordKey, RecordWrite, Version, WriteOutcome, Written,
};
pub use span::{exact_span, rough_span};
pub use url_text::without_secrets;
