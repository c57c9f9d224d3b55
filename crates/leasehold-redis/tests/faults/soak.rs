#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a program for people"
)]

use std::process::ExitCode;
use std::time::Duration;

use leasehold::clock::{Clock, SystemClock};
use leasehold_redis::TrustRules;

use crate::fault::Fault;
use crate::row::Row;
use crate::worker::Way;

pub(crate) const VERB: &str = "soak";

/// How long each fault lasts before the turn of the next one.
const TURN: Duration = Duration::from_secs(15);

/// The options of the command line.
#[derive(Debug)]
struct SoakOptions {
    minutes: f64,
    seed: u64,
    json: bool,
    rules: TrustRules,
    way: Way,
    faults: Vec<Fault>,
}

/// Causes the faults in turn until the time is over, each at least once, and prints a table.
pub(crate) fn main(arguments: &[String]) -> ExitCode {
    let options = match SoakOptions::read(arguments) {
        Ok(options) => options,
        Err(rule) => {
            eprintln!("{rule}");
            return ExitCode::from(64);
        }
    };
    let begun = SystemClock.now();
    let end = begun + Duration::from_secs_f64(options.minutes * 60.0);
    // Every fault gets its turn, even if the time is short.
    let share = Duration::from_secs_f64(options.minutes * 60.0) / options.faults.len() as u32;
    let turn = TURN.min(share);
    let mut rows: Vec<Row> = Vec::new();
    let mut is_well = true;
    let manner = (options.rules, options.way);
    for (turn_number, fault) in options.faults.iter().copied().cycle().enumerate() {
        if turn_number >= options.faults.len() && SystemClock.now() >= end {
            break;
        }
        let seed = options.seed.wrapping_add(turn_number as u64);
        // If a wait for the lock failed, its message has been printed already.
        let Ok(row) = std::panic::catch_unwind(|| Row::of(fault, manner, turn, seed)) else {
            eprintln!("seed {seed}: FAILED: {}: see above", fault.name());
            is_well = false;
            continue;
        };
        eprintln!("seed {seed}: {}", row.summary());
        for failure in row.failures() {
            eprintln!("seed {seed}: FAILED: {failure}");
            is_well = false;
        }
        match rows.iter_mut().find(|known| known.fault == fault) {
            Some(known) => known.add(row),
            None => rows.push(row),
        }
    }
    let lasted = SystemClock.now().since(begun);
    if options.json {
        println!("{}", json(&rows, options.seed, lasted));
    } else {
        println!("{}", table(&rows));
    }
    eprintln!(
        "{:.0} s in all, seed {}",
        lasted.as_secs_f64(),
        options.seed
    );
    match is_well {
        true => ExitCode::SUCCESS,
        false => ExitCode::FAILURE,
    }
}

impl SoakOptions {
    fn read(arguments: &[String]) -> Result<Self, String> {
        let mut options = Self {
            minutes: 1.0,
            seed: 1,
            json: false,
            rules: TrustRules::Enforced,
            way: Way::Lock,
            faults: Fault::ALL.to_vec(),
        };
        let mut rest = arguments.iter();
        while let Some(argument) = rest.next() {
            let mut value = || rest.next().map_or("", String::as_str);
            match argument.as_str() {
                "--json" => options.json = true,
                "--without-trust" => options.rules = TrustRules::Logged,
                "--elections" => options.way = Way::Election,
                "--minutes" => {
                    let text = value();
                    let minutes = text.parse().ok().filter(|minutes| *minutes > 0.0);
                    let minutes = minutes.filter(|minutes: &f64| minutes.is_finite());
                    options.minutes =
                        minutes.ok_or(format!("--minutes takes a number above 0, not {text:?}"))?;
                }
                "--only" => {
                    let name = value();
                    options.faults.retain(|fault| fault.test_name() == name);
                    if options.faults.is_empty() {
                        let known = Fault::ALL.iter().map(|fault| fault.test_name());
                        let known: Vec<_> = known.collect();
                        let known = known.join(", ");
                        return Err(format!("--only takes one of {known}, not {name:?}"));
                    }
                }
                "--seed" => {
                    let text = value();
                    options.seed = text
                        .parse()
                        .map_err(|_| format!("--seed takes a whole number, not {text:?}"))?;
                }
                other => return Err(format!("unknown argument {other:?}")),
            }
        }
        Ok(options)
    }
}

const COLUMNS: [&str; 9] = [
    "fault",
    "rounds",
    "seconds",
    "grants",
    "overlaps without fencing",
    "stale requests refused",
    "stale writes accepted (must be 0)",
    "two valid guards (must be 0)",
    "longest wait",
];

fn table(rows: &[Row]) -> String {
    let mut lines = vec![
        format!("| {} |", COLUMNS.join(" | ")),
        format!("|---|{}", "---:|".repeat(COLUMNS.len() - 1)),
    ];
    for row in rows {
        let found = &row.found;
        let cells = [
            row.fault.name().to_owned(),
            row.rounds.to_string(),
            format!("{:.0}", row.lasted.as_secs_f64()),
            found.grants.to_string(),
            found.overlaps.to_string(),
            found.stale_refused.to_string(),
            (found.stale_accepted.len() + found.updates_lost.len()).to_string(),
            found.valid_overlaps.len().to_string(),
            format!("{:.1} s", row.longest_wait.as_secs_f64()),
        ];
        lines.push(format!("| {} |", cells.join(" | ")));
    }
    lines.join("\n")
}

/// Only the last refusal and the failures contain text that needs escaping.
fn json(rows: &[Row], seed: u64, lasted: Duration) -> String {
    let row = |row: &Row| {
        let found = &row.found;
        let failures: Vec<_> = row.failures().iter().map(|text| quoted(text)).collect();
        format!(
            "{{\"fault\":{},\"rounds\":{},\"seconds\":{:.1},\"grants\":{},\"overlaps\":{},\
             \"plain_updates_lost\":{},\"stale_refused\":{},\"stale_accepted\":{},\
             \"updates_lost\":{},\"valid_overlaps\":{},\"fence_disorders\":{},\
             \"longest_wait_seconds\":{:.3},\"refusals\":{},\"last_refusal\":{},\"failures\":[{}]}}",
            quoted(row.fault.name()),
            row.rounds,
            row.lasted.as_secs_f64(),
            found.grants,
            found.overlaps,
            found.plain_updates_lost,
            found.stale_refused,
            found.stale_accepted.len(),
            found.updates_lost.len(),
            found.valid_overlaps.len(),
            found.fence_disorders.len(),
            row.longest_wait.as_secs_f64(),
            row.refusals,
            quoted(&row.last_refusal),
            failures.join(","),
        )
    };
    let rows: Vec<_> = rows.iter().map(row).collect();
    let seconds = lasted.as_secs_f64();
    let rows = rows.join(",");
    format!("{{\"seed\":{seed},\"seconds\":{seconds:.1},\"rows\":[{rows}]}}")
}

fn quoted(text: &str) -> String {
    let escaped: String = text
        .chars()
        .map(|c| match c {
            '"' => "\\\"".to_owned(),
            '\\' => "\\\\".to_owned(),
            c if c.is_control() => format!("\\u{:04x}", u32::from(c)),
            c => c.to_string(),
        })
        .collect();
    format!("\"{escaped}\"")
}
