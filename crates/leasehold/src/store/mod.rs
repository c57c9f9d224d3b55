//! For implementors: a [`Store`] opens a [`Session`] for each client. Both traits, and what they exchange
//! with a client.
//!
//! Applications need little of this: the guarantees, and why a call waits ([`Report`]). What
//! [`Client`](crate::Client) returns to operators is in [`look`](crate::look), and what only a store with members
//! has is in [`member`](crate::member). [`kit`] has what stores on a network would otherwise write alike.

mod admin;
mod guarantees;
mod health;
mod inspection;
pub mod kit;
mod per_runtime;
mod progress;
mod record_state;
mod records;
mod session;

pub use crate::env::{BoxFuture, locked};
pub use crate::runtime::background;
pub use crate::runtime::caller_runtimes::CallerRuntimes;
pub use crate::runtime::socket_reader::{SocketReader, Sockets};
pub use admin::Admin;
pub use guarantees::{Exclusion, Expiry, Guarantees, LeaseTerms, Order};
pub use health::Health;
pub use inspection::Inspection;
#[doc(inline)]
pub use leasehold_types::{
    AcquireError, Busy, Grant, Held, LockRequest, Opened, Permits, RECORD_MEMORY, Reading,
    RecordKey, RecordWrite, ReleaseReply, RenewReply, Term, Ticket, Version, Visibility,
    WriteOutcome, Written, exact_span, is_printable, printable, rough_span, without_secrets,
};
pub use per_runtime::PerRuntime;
pub use progress::{Listener, Progress, Report, poll_until};
pub use record_state::{KeptValue, RecordState};
pub use records::Records;
pub use session::{Session, SessionContext};

use std::fmt;
use std::sync::Arc;

/// A place that grants locks: the trait for implementors. Users see [`Lock`](crate::Lock) and
/// [`Guard`](crate::Guard).
///
/// It fits three kinds of store: expiring leases (Redis, PostgreSQL), sessions (etcd, ZooKeeper) and
/// locks held by the kernel (files). The store is the place, and has no connection. Each client opens a
/// [`Session`], which takes the locks.
///
/// Each numbered obligation is a named test of the contract suite, which every store runs.
///
/// # Contract
///
/// - **S1** Two stores of the same place, and two sessions of one store, grant the same locks, also from two
///   processes.
/// - **S2** `guarantees` and `terms` never change during a store's life.
/// - **S3** `Display` names the store in a few words. Neither it nor `Debug` shows credentials.
/// - **S4** The optional traits that the sessions return are the same for all sessions, and never change.
///   Locks can be broken exactly if the sessions return [`Admin`].
/// - **S5** A store whose servers ask for a password reads it anew for each connection, so a new password ends no lock. A wrong one
///   is [`ErrorKind::Refused`](crate::ErrorKind::Refused).
pub trait Store: fmt::Display + fmt::Debug + Send + Sync + 'static {
    /// Returns the locations at which the store keeps its locks, one per member, as
    /// `Display` names them. A [`Handle`](crate::handle::Handle) contains them, so that a
    /// store without a common location refuses it.
    fn locations(&self) -> Vec<String> {
        vec![self.to_string()]
    }

    /// Returns what the store promises.
    fn guarantees(&self) -> Guarantees;

    /// Returns the limits of its leases.
    fn terms(&self) -> LeaseTerms;

    /// Opens the session of one client. Sends nothing, and starts nothing that can fail: the first request
    /// connects.
    fn open(&self, context: SessionContext) -> Arc<dyn Session>;
}
