//! ZooKeeper servers.

pub(super) mod connection;
pub(super) mod server;
