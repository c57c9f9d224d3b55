//! The waiters of this client: those of each lock, their tickets, and when heartbeats are due.

pub(crate) mod admission;
pub(crate) mod outage;
pub(crate) mod tickets;
pub(crate) mod waiters;
