//! Several servers.

mod leaders;
mod promises;
mod rollback;
mod semaphore;
mod setup;
mod shared_runtime;
