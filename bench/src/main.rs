//! Benchmarks of Leasehold beside other lock libraries and the bare server: all in one run, in turn,
//! round after round, so that they meet the same machine. `cargo xtask bench` builds and equips it.
#![forbid(unsafe_code)]
#![expect(
    clippy::disallowed_methods,
    clippy::print_stderr,
    clippy::print_stdout,
    reason = "a command for developers: it measures time, reads the environment and prints"
)]

use std::process::ExitCode;

mod commands;
mod figures;
mod handover;
mod machine;
mod modes;
mod options;
mod record;
mod report;
mod statistics;
mod subject;
mod verification;
mod waiters;
mod worker;
mod worker_process;

use options::{Options, USAGE};

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let outcome = match arguments.split_first() {
        Some((verb, rest)) if verb == worker::VERB => worker::run(rest),
        Some((verb, rest)) => match Options::parse(rest) {
            Ok(options) if verb == "handover" => handover::run(&options),
            Ok(options) if verb == "modes" => modes::run(&options),
            Ok(options) if verb == "waiters" => waiters::run(&options),
            Ok(_) => return usage(&format!("there is no benchmark {verb:?}")),
            Err(text) => return usage(&text),
        },
        None => return usage("which benchmark?"),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(text) => {
            eprintln!("bench: {text}");
            ExitCode::FAILURE
        }
    }
}

fn usage(text: &str) -> ExitCode {
    eprintln!("bench: {text}\n\n{USAGE}");
    // EX_USAGE of sysexits.h, as the `leasehold` command has it.
    ExitCode::from(64)
}
