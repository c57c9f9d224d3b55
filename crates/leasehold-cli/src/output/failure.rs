use std::fmt;
use std::io;

use leasehold::Error;

use crate::output::exit_code::ExitCode;

/// Why the program failed: a line for people, and an exit code.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) code: ExitCode,
    /// Another client holds the lock, as scheduled jobs expect.
    pub(crate) is_busy: bool,
    text: String,
}

impl Failure {
    pub(crate) fn new(code: ExitCode, text: impl Into<String>) -> Self {
        Self {
            code,
            is_busy: false,
            text: text.into(),
        }
    }

    /// Another client holds the lock.
    pub(crate) fn busy(code: ExitCode, text: impl Into<String>) -> Self {
        Self {
            is_busy: true,
            ..Self::new(code, text)
        }
    }

    /// A value breaks a rule; `text` names both.
    pub(crate) fn usage(text: impl Into<String>) -> Self {
        Self::new(ExitCode::USAGE, text)
    }

    /// `what` failed, for a reason other than the store or the arguments.
    pub(crate) fn of(what: &str, error: &dyn fmt::Display) -> Self {
        Self::new(ExitCode::FAILURE, format!("{what}: {error}"))
    }

    /// The system refused something that the program needs to start.
    pub(crate) fn of_start(error: &dyn fmt::Display) -> Self {
        Self::of("cannot start", error)
    }

    /// Writing to stdout failed.
    pub(crate) fn of_stdout(error: &io::Error) -> Self {
        Self::new(ExitCode::IO, format!("cannot write to stdout: {error}"))
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        let advice = match error.ttl_bounds() {
            Some(_) => "; --ttl, LEASEHOLD_TTL, or `ttl` in leasehold.toml sets it",
            None => "",
        };
        Self::new(ExitCode::of_error(&error), format!("{error}{advice}"))
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}
