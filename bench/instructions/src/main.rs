//! Counts the instructions of the hot paths and compares them with the recorded counts. `cargo xtask
//! instructions` builds the program and installs what it needs.
#![forbid(unsafe_code)]
#![expect(
    clippy::disallowed_methods,
    clippy::print_stdout,
    reason = "a command for developers: it reads the environment and prints"
)]

use std::process::ExitCode;

mod baseline;
mod check;
mod counts;
mod options;

use clap::Parser as _;
use options::Options;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let outcome = match arguments.split_first() {
        Some((verb, rest)) if verb == leasehold_instructions::VERB => {
            leasehold_instructions::run_workload(rest)
        }
        _ => match Options::try_parse_from(&arguments) {
            Ok(options) => check::run(&options),
            Err(error) => return leasehold_instructions::usage(&error),
        },
    };
    leasehold_instructions::exit("instructions", outcome)
}
