//! Several servers.

mod leaders;
mod promises;
mod rollback;
mod setup;
mod shared_runtime;
