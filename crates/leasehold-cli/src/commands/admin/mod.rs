//! The subcommands that set up a store, check it, and change what it holds.

pub(crate) mod break_lock;
pub(crate) mod doctor;
pub(crate) mod gc;
pub(crate) mod init;
#[cfg(feature = "redis")]
pub(crate) mod members;
