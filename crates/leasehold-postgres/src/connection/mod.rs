//! Connections to a server: addresses, passwords, poolers, and what an error means.

pub(crate) mod bounded;
pub(crate) mod connect;
pub(crate) mod failure;
pub(crate) mod pooler;
pub(crate) mod silence;
mod socket;
