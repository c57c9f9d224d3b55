//! The processes of a command, and its terminal.

pub(crate) mod descendants;
pub(crate) mod terminal;
