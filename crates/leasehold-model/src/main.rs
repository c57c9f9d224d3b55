//! Searches, and prints what it found as a Markdown table.
//!
//! `--bounds small` is what the tests search, and `--bounds large` takes minutes. `--trace` prints the history of each break.
#![expect(clippy::print_stdout, reason = "a program for people")]

use std::process::ExitCode;
use std::time::Instant;

use leasehold_model::table::{LARGE, Row, SMALL};

/// Steps in one search, so that all of them together take minutes.
const STEPS: usize = 100_000_000;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let has = |text: &str| arguments.iter().any(|argument| argument == text);
    if !arguments.is_empty() && !has("--bounds") && !has("--trace") {
        println!("usage: leasehold-model [--bounds small|large] [--trace]");
        return ExitCode::from(64);
    }
    println!("| left out | bounds | states | seconds | breaks | steps |");
    println!("|---|---|---|---|---|---|");
    let large = if has("large") { LARGE } else { &[] };
    let rows = SMALL.iter().chain(large);
    match rows.filter(|row| !print(row, has("--trace"))).count() {
        0 => ExitCode::SUCCESS,
        _ => ExitCode::FAILURE,
    }
}

/// Prints the result of one search, and returns whether it is what the row says.
#[expect(clippy::disallowed_methods, reason = "people ask how long it took")]
fn print(row: &Row, has_trace: bool) -> bool {
    let begun = Instant::now();
    let found = row.search(STEPS);
    let seconds = begun.elapsed().as_secs_f64();
    let (left_out, bounds, states) = (row.left_out, row.bounds, found.states);
    let history = found.history.unwrap_or_default();
    let breaks = match (row.promise, history.len()) {
        (_, 0) if found.is_complete => "nothing | –".to_owned(),
        (_, 0) => "nothing (capped) | –".to_owned(),
        (Some(promise), steps) => format!("{promise:?} | {steps}"),
        (None, steps) => format!("not expected | {steps}"),
    };
    println!("| {left_out:?} | {bounds} | {states} | {seconds:.1} | {breaks} |");
    for step in history.iter().filter(|_| has_trace) {
        println!("| | {step} | | | | |");
    }
    row.is_kept == history.is_empty()
}
