//! How many instructions the hot paths take, as callgrind counts them: a figure that a busy machine
//! does not move, and by which the gate notices a path that became slower. `cargo xtask
//! instructions` builds and equips it.
#![forbid(unsafe_code)]
#![expect(
    clippy::disallowed_methods,
    clippy::print_stderr,
    clippy::print_stdout,
    reason = "a command for developers: it reads the environment, drives clients, and prints"
)]

use std::process::ExitCode;

mod callgrind;
mod check;
mod counts;
mod options;
mod path;
mod workload;

use options::{Options, USAGE};

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let outcome = match arguments.split_first() {
        Some((verb, rest)) if verb == workload::VERB => workload::run(rest),
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
