//! Counts the instructions of the hot paths and compares them with the recorded counts. `cargo xtask
//! instructions` builds the program and installs what it needs.
#![forbid(unsafe_code)]
#![expect(
    clippy::disallowed_methods,
    clippy::print_stderr,
    clippy::print_stdout,
    reason = "a command for developers: it reads the environment and prints"
)]

use std::process::ExitCode;

mod baseline;
mod check;
mod counts;
mod options;

use options::{Options, USAGE};

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let outcome = match arguments.split_first() {
        Some((verb, rest)) if verb == leasehold_instructions::VERB => {
            leasehold_instructions::run_workload(rest)
        }
        _ => match Options::parse(&arguments) {
            Ok(options) => check::run(&options),
            Err(text) => {
                eprintln!("instructions: {text}\n\n{USAGE}");
                // EX_USAGE of sysexits.h, as the `leasehold` command has it.
                return ExitCode::from(64);
            }
        },
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(text) => {
            eprintln!("instructions: {text}");
            ExitCode::FAILURE
        }
    }
}
