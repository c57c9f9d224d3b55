//! What the engine sends to the members, and what it gets from them.

mod record_action;
mod reply;
mod request;

pub use record_action::{RecordAction, RecordAnswer};
pub use reply::{BatchReply, LeaseState, Notification, Refusal, Reply};
pub use request::{Lease, Position, Request, RequestId, Requeue, Successor};
