//! The Redlock protocol as a state machine.
//!
//! [`Engine`] takes, renews and releases leases on one server or on a majority of several. It does
//! no I/O, reads no clock and starts no thread. The caller, called the driver, owns the sockets: it
//! sends what [`Engine::poll_transmit`] returns and hands in replies, notifications and the time.
//! The design follows `quinn-proto` and `rustls`.
//!
//! A member never sees this crate: [`Request`] and [`Reply`] are values, and a codec turns them into
//! the commands of a server.
//!
//! # The life of an acquisition
//!
//! ```text
//! start ──► ask each member ──► granted by a majority ──► confirm the greatest fence ──► held
//!             ▲        │                                   (only where fences differ)      │
//!             │        ├─► busy: wait in the queue of this member ◄──┐                     │
//!             │        │     notification, heartbeat, "ask again"    │                     │
//!             └────────┼─────────────┘                               │                     │
//!                      └─► no majority in time: give everything back ┘                     │
//!                                                                                          ▼
//! cancel, failure, release ──► release wherever something may be left ──► each member answered
//! ```
//!
//! - `engine` takes in events, and `dispatch` passes each to the operation that it concerns.
//! - `net` is what the operations share: the servers, the clock, the output, and the timers.
//! - `acquire` takes locks: its state, its requests, its answers, and its decisions.
//! - `release` frees leases, ended waits, and what failed attempts left behind.
//! - `health` asks each member for its status.
//! - `member` is the state of one connection: the requests in flight, their limits, and the releases that it owes.
//! - `known_locks` remembers which locks plain commands may take on new connections.
//! - `waiting` knows the client's waiters and their tickets, and sends the heartbeats that repair lost notifications.
//! - `membership` says which members may be asked and have a vote.
//! - `renewal` extends and repairs leases.
//! - `record` opens, writes and reads the records of locks.
//! - `setup` decides how an operator initializes and changes a quorum.
//! - `views` merges what members show to people.
#![deny(clippy::disallowed_types)]
#![forbid(unsafe_code)]

mod acquire;
mod ballot;
mod config;
mod dispatch;
mod engine;
mod errors;
mod fanout;
mod health;
mod known_locks;
mod member;
mod membership;
mod messages;
mod net;
mod operation;
mod record;
mod release;
mod renewal;
pub mod setup;
mod tally;
#[cfg(test)]
mod tests;
mod trust;
pub mod views;
mod waiting;

pub use config::{Config, Now};
pub use engine::Engine;
pub use member::index::{MemberIndex, Members, PerMember};
pub use membership::MemberEvent;
pub use messages::{
    BatchReply, Lease, LeaseState, Notification, Position, RecordAction, RecordAnswer, Refusal,
    Reply, Request, RequestId, Requeue, Successor,
};
pub use operation::{Acquired, Event, Operation, OperationId, Outcome, Progress, ReleaseMode};

pub use trust::TrustRules;
