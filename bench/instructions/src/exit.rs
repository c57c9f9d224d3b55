use std::error::Error;
use std::process::ExitCode;

/// A result whose error is a text for people, or any error that explains itself.
pub type Fallible<T = ()> = Result<T, Box<dyn Error + Send + Sync>>;

/// Returns how `program` ends, and prints its error.
#[must_use]
pub fn exit(program: &str, outcome: Fallible) -> ExitCode {
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{program}: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Prints the help, or what is wrong with the arguments.
#[must_use]
pub fn usage(error: &clap::Error) -> ExitCode {
    // An error means that nothing reads it.
    let _ = error.print();
    if error.use_stderr() {
        // EX_USAGE of sysexits.h, as the `leasehold` command has it.
        ExitCode::from(64)
    } else {
        ExitCode::SUCCESS
    }
}
