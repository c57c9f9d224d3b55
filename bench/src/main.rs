//! Benchmarks Leasehold next to other lock libraries and the bare server. They all run in turn, round
//! after round, so that they see the same machine. `cargo xtask bench` builds the program and installs
//! what it needs.
#![forbid(unsafe_code)]
#![expect(
    clippy::disallowed_methods,
    clippy::print_stderr,
    clippy::print_stdout,
    reason = "a command for developers: it measures time, reads the environment and prints"
)]

use std::process::ExitCode;

mod measure;
mod options;
mod report;
mod sections;
mod worker;

use options::Options;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let outcome = match arguments.split_first() {
        Some((verb, rest)) if verb == worker::VERB => worker::run(rest),
        Some((verb, rest)) if verb == sections::frozen::VERB => sections::frozen::work(rest),
        Some((verb, rest)) if verb == sections::held::VERB => sections::held::work(rest),
        Some((verb, rest)) if verb == leasehold_instructions::VERB => {
            leasehold_instructions::run_workload(rest)
        }
        Some((verb, [])) if verb == report::VERB => report::run(),
        _ => match Options::parse(&arguments) {
            Ok(options) => sections::run(&options),
            Err(text) => return usage(&text),
        },
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
    eprintln!("bench: {text}\n\n{}", options::usage());
    // EX_USAGE of sysexits.h, as the `leasehold` command has it.
    ExitCode::from(64)
}
