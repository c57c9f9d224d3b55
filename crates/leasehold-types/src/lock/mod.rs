//! What an attempt on a lock asks and gets, who holds it, and who waits for it.

mod attempt;
mod breaking;
mod holder;
mod listing;
mod pattern;
mod queue;
mod request;

pub use attempt::{AcquireError, Busy, Grant, ReleaseReply, RenewReply, Term};
pub use breaking::{BreakOptions, BreakOutcome, BreakRecord, BreakTarget, BrokenLease};
pub use holder::Holder;
pub use listing::{ListedLock, LockListing, Visibility};
pub use pattern::Pattern;
pub use queue::{Ticket, Waiter};
pub use request::{Held, LockRequest};
