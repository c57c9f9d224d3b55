//! Searches all variants and prints the results as a Markdown table.
//!
//! `--bounds large` adds the design within larger bounds and the rules that can be spared, which
//! takes minutes; `--trace` prints the shortest trace of each break below its row.

#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a program for people"
)]

use std::process::ExitCode;
use std::time::Instant;

use leasehold_model::search::{Limits, Report, search};
use leasehold_model::variants::{Variant, broken, design, design_at_length, spare};

/// States in one search, so that all of them together take minutes.
const STATES: usize = 12_000_000;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let (large, traces) = match arguments[..] {
        [] => (false, false),
        ["--trace"] => (false, true),
        ["--bounds", "large"] => (true, false),
        ["--bounds", "large", "--trace"] => (true, true),
        _ => {
            eprintln!("usage: leasehold-model [--bounds large] [--trace]");
            return ExitCode::from(64);
        }
    };
    let mut variants = broken();
    variants.extend(design());
    if large {
        variants.extend(design_at_length());
        variants.extend(spare());
    }
    println!("| variant | bounds | states | seconds | breaks | steps |");
    println!("|---|---|---|---|---|---|");
    let mut as_expected = true;
    for variant in &variants {
        as_expected &= row(variant, traces);
    }
    match as_expected {
        true => ExitCode::SUCCESS,
        false => ExitCode::FAILURE,
    }
}

/// Prints the result of one search, and returns whether it is what the variant expects.
fn row(variant: &Variant, traces: bool) -> bool {
    let limits = Limits {
        states: STATES,
        until: variant.breaks,
    };
    #[expect(
        clippy::disallowed_methods,
        reason = "how long a search took is for people"
    )]
    let begun = Instant::now();
    let report = search(&variant.model, limits);
    let seconds = begun.elapsed().as_secs_f64();
    let found = variant
        .breaks
        .and_then(|property| report.broken.get_key_value(&property));
    let (breaks, steps) = match found {
        Some((property, trace)) => (property.to_string(), trace.steps.len().to_string()),
        None => (nothing(&report), "–".to_owned()),
    };
    let (name, bounds) = (variant.name, variant.model.bounds);
    let states = report.states;
    println!("| {name} | {bounds} | {states} | {seconds:.1} | {breaks} | {steps} |");
    if traces && let Some((_, trace)) = found {
        println!("| | {trace} | | | | |");
    }
    variant.breaks.is_some() == found.is_some() && (found.is_some() || report.broken.is_empty())
}

fn nothing(report: &Report) -> String {
    match (report.broken.keys().next(), report.complete) {
        (Some(property), _) => format!("{property}, not expected"),
        (None, true) => "nothing".to_owned(),
        (None, false) => format!("nothing to depth {} (capped)", report.depth),
    }
}
