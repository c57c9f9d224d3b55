//! What people see of locks: their holders and waiters, lists of them, and breaks.
//!
//! [`Client`](crate::Client) returns these values to programs, and the [`Inspection`](crate::store::Inspection) and
//! [`Admin`](crate::store::Admin) of a store return them to the client.

#[doc(inline)]
pub use leasehold_types::{
    BreakOptions, BreakOutcome, BreakRecord, BreakTarget, BrokenLease, ClientId, ClientInfo,
    Holder, ListedLock, LockListing, NotAnOwner, Owner, Pattern, Waiter,
};
