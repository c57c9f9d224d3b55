//! Runs simulated worlds: `leasehold-sim [--seed N | --seeds A..B] [--faults NAMES] [--trace]`.
#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a program for people"
)]
#![forbid(unsafe_code)]

use std::ops::Range;
use std::process::ExitCode;

use leasehold_testkit::sim::{Faults, Outcome, run_all};

const USAGE: &str = "usage: leasehold-sim [--seed N | --seeds A..B] [--faults NAMES] [--trace]
NAMES are faults with commas between them, `all` (the default) or `none`; `-NAME` leaves one out";

struct Arguments {
    seeds: Range<u64>,
    faults: Faults,
    trace: bool,
}

fn main() -> ExitCode {
    let arguments = match parse(std::env::args().skip(1)) {
        Ok(arguments) => arguments,
        Err(error) => {
            eprintln!("leasehold-sim: {error}\n{USAGE}");
            return ExitCode::from(64);
        }
    };
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let summary = run_all(arguments.seeds, arguments.faults, threads);
    for outcome in &summary.broken {
        report(outcome, arguments.faults, arguments.trace);
    }
    for seed in &summary.panicked {
        println!("seed {seed} PANICKED");
    }
    println!(
        "{} seeds, {} locks granted, {} seeds broke an invariant",
        summary.seeds,
        summary.grants,
        summary.broken.len()
    );
    if summary.broken.is_empty() && summary.panicked.is_empty() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}

fn report(outcome: &Outcome, faults: Faults, trace: bool) {
    if trace {
        outcome.trace().for_each(|line| println!("{line}"));
    }
    println!("seed {} ({}):", outcome.seed, outcome.faults);
    for violation in &outcome.violations {
        println!("  {violation}");
    }
    let seed = outcome.seed;
    println!("  again: cargo xtask sim --seed {seed} --faults {faults} --trace");
}

fn parse(mut arguments: impl Iterator<Item = String>) -> Result<Arguments, String> {
    let mut parsed = Arguments {
        seeds: 0..1_000,
        faults: Faults::all(),
        trace: false,
    };
    while let Some(argument) = arguments.next() {
        let mut value = || arguments.next().ok_or(format!("{argument} needs a value"));
        match argument.as_str() {
            "--seed" => {
                let seed = number(&value()?)?;
                parsed.seeds = seed..seed + 1;
            }
            "--seeds" => {
                let text = value()?;
                let (from, to) = text
                    .split_once("..")
                    .ok_or_else(|| format!("seeds are given as A..B, not {text:?}"))?;
                parsed.seeds = number(from)?..number(to)?;
            }
            "--faults" => parsed.faults = value()?.parse()?,
            "--trace" => parsed.trace = true,
            _ => return Err(format!("there is no option {argument:?}")),
        }
    }
    Ok(parsed)
}

fn number(text: &str) -> Result<u64, String> {
    text.parse()
        .map_err(|_| format!("a seed is a whole number, not {text:?}"))
}
