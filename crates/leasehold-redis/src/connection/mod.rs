//! Connections to servers: opening and encrypting them, and the requests that are in flight on them.
//!
//! [`state`] and [`pipeline`] hold the state of a connection and do no I/O. The driver reads and writes.

pub(crate) mod connector;
pub(crate) mod encoder;
pub(crate) mod pipeline;
mod probe;
pub(crate) mod raw_request;
pub(crate) mod readiness;
mod registration;
mod silence;
pub(crate) mod socket;
pub(crate) mod state;
mod tls;

pub(crate) use probe::Probe;
pub(crate) use tls::SLOW_HANDSHAKE;
