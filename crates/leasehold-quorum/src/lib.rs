//! The Redlock protocol as a state machine.
//!
//! [`Engine`] takes, renews and releases leases on one server or on a majority of several. It does
//! no I/O, reads no clock and starts no thread. The caller, called the driver, owns the sockets: it
//! sends what [`Engine::poll_transmit`] returns and hands in replies, notifications and the time.
//! The design follows `quinn-proto` and `rustls`.
//!
//! A member never sees this crate: [`Request`] and [`Reply`] are values, and a codec turns them into
//! the commands of a server.
#![forbid(unsafe_code)]

mod engine;
mod operation;
mod reply;
mod request;

pub use engine::{Config, Engine, Now};
pub use operation::{Acquired, Operation, OperationId, Outcome, Progress, ReleaseMode};
pub use reply::{BatchReply, LeaseState, Notification, Refusal, Reply};
pub use request::{Lease, Place, Request, RequestId, Successor};
