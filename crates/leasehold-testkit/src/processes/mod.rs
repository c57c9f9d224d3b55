//! What tests need to start programs: default signals, and terminals.

mod signals;
mod terminal;

pub use signals::reset_ignored_signals;
pub use terminal::{start_on_terminal, written_on};
