//! The waiters of this client: those of each lock, their tickets, and their heartbeats.

pub(crate) mod heartbeat;
pub(crate) mod tickets;
pub(crate) mod waiters;
