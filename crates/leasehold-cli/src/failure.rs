use std::fmt;
use std::io;

use leasehold::Error;

use crate::exit_code::ExitCode;

/// Why the program ends without having done what it was asked to: a line for people, and a number.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) code: ExitCode,
    text: String,
}

impl Failure {
    pub(crate) fn new(code: ExitCode, text: impl Into<String>) -> Self {
        Self {
            code,
            text: text.into(),
        }
    }

    /// A value breaks a rule; `text` names both.
    pub(crate) fn usage(text: impl Into<String>) -> Self {
        Self::new(ExitCode::USAGE, text)
    }

    /// `what` failed, by no fault of a store or a value.
    pub(crate) fn of(what: &str, error: &dyn fmt::Display) -> Self {
        Self::new(ExitCode::FAILURE, format!("{what}: {error}"))
    }

    /// The program lacks what it needs from the system before it can begin.
    pub(crate) fn of_start(error: &dyn fmt::Display) -> Self {
        Self::of("cannot start", error)
    }

    /// What was asked for could not be printed.
    pub(crate) fn of_stdout(error: &io::Error) -> Self {
        Self::new(ExitCode::IO, format!("cannot write to stdout: {error}"))
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self::new(ExitCode::of_error(&error), error.to_string())
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}
