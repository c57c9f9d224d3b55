//! What tests need to start programs: default signals, terminals, and this program once more.

mod second_process;
mod signals;
mod terminal;

pub use second_process::SecondProcess;
pub(crate) use second_process::is_stopped;
pub use signals::reset_ignored_signals;
pub use terminal::{start_on_terminal, written_on};
