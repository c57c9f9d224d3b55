use std::process::ExitStatus;

use crate::output::exit_code::ExitCode;

/// How a run ended.
pub(crate) enum End {
    With(ExitCode),
    /// A lock was lost, and the command ended.
    Lost {
        /// Whether a signal had also asked the program to end.
        end_requested: bool,
        /// The lock, if it was lost because an operator broke it.
        broken: Option<String>,
    },
    /// The command ended.
    Ended {
        status: ExitStatus,
        /// Whether a signal had asked the program to end, and was passed on to the command.
        end_requested: bool,
        /// Whether the store answered that the locks are released.
        is_released: bool,
    },
    /// The interrupt key ended the command.
    Interrupted,
}
