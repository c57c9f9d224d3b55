//! The subcommands that hold a lock, or act for its holder.

pub(crate) mod elect;
pub(crate) mod fence;
pub(crate) mod handle;
pub(crate) mod hold;
pub(crate) mod once;
pub(crate) mod run;
