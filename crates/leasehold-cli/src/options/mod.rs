//! Options that several subcommands share.

pub(crate) mod command_spec;
pub(crate) mod defaults;
pub(crate) mod holder_args;
pub(crate) mod listing;
pub(crate) mod lock_args;
pub(crate) mod lock_options;
pub(crate) mod readiness_args;
pub(crate) mod show_command;
pub(crate) mod span;
pub(crate) mod store_args;
pub(crate) mod table_args;
pub(crate) mod timeout_args;
