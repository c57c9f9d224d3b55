//! etcd servers.

pub(super) mod builder;
pub(super) mod server;
pub(super) mod set;
