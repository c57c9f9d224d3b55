//! The processes of a command, and its terminal.

pub(crate) mod terminal;
pub(crate) mod tree;
pub(crate) mod user;
