//! The subcommands that show locks, and change nothing.

#[cfg(feature = "exporter")]
pub(crate) mod exporter;
pub(crate) mod ls;
pub(crate) mod status;
#[cfg(feature = "top")]
pub(crate) mod top;
pub(crate) mod wait;
pub(crate) mod waiters;
pub(crate) mod watch;
