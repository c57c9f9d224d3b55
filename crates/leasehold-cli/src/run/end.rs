use std::process::ExitStatus;

use crate::exit_code::ExitCode;

/// How a run ended.
pub(crate) enum End {
    With(ExitCode),
    /// A lock was lost, and the command ended.
    Lost {
        /// Whether the program had been told to end, too.
        told_to_end: bool,
        /// The lock, where it was lost since an operator broke it.
        broken: Option<String>,
    },
    /// The command ended.
    Ended {
        status: ExitStatus,
        /// Whether the program had been told to end, and had told the command.
        told_to_end: bool,
    },
    /// The interrupt key ended the command.
    Interrupted,
}
