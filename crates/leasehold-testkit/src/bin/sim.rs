//! Runs simulated worlds; `cargo xtask sim` builds it and passes its arguments on.
#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a program for people"
)]
#![forbid(unsafe_code)]

use std::ops::Range;
use std::process::ExitCode;

use leasehold_testkit::sim::{Faults, run, run_all};

const USAGE: &str = "usage: leasehold-sim [--seed N | --seeds A..B] [--faults NAMES] [--trace]
NAMES are faults with commas between them, `all` (the default) or `none`; `-NAME` leaves one out
--trace prints all that happens in the worlds, and judges it last";

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
    if arguments.trace {
        for seed in arguments.seeds {
            run(seed, arguments.faults)
                .trace()
                .for_each(|line| println!("{line}"));
        }
        return ExitCode::SUCCESS;
    }
    let summary = run_all(arguments.seeds, arguments.faults, threads);
    println!("{summary}");
    if summary.is_clean() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
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
