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

mod error;
mod measure;
mod options;
#[path = "../peers/mod.rs"]
mod peers;
mod report;
mod sections;
mod worker;

use options::Options;
use peers::programs::WORKER_VERB;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let outcome = match arguments.split_first() {
        Some((verb, rest)) if verb == WORKER_VERB => worker::run(rest),
        Some((verb, [])) if verb == report::VERB => {
            report::write(&sections::SECTIONS.map(|section| section.name))
        }
        _ => match Options::parse(&sections::SECTIONS.map(|section| section.name), &arguments) {
            Ok(options) => sections::run(&options),
            Err(error) => return leasehold_instructions::usage(&error),
        },
    };
    leasehold_instructions::exit("bench", outcome)
}
