//! Many locks held by one process: what it costs to keep them.

mod run;
mod worker;

use crate::measure::results::{Lines, Results};
use crate::options::Options;
use crate::report::page::{Page, table};
use crate::sections::Section;

pub(crate) use worker::{VERB, run as work};

use run::Run;

pub(crate) const SECTION: Section = Section {
    name: "held",
    title: "Many locks in one process",
    measure,
    tell,
};

/// How many locks, on how many servers.
const SCENES: [(usize, usize); 3] = [(10_000, 1), (100_000, 1), (10_000, 5)];

const COLUMNS: [&str; 12] = [
    "locks",
    "servers",
    "TTL s",
    "client CPU",
    "all servers' CPU",
    "memory per lock, bytes",
    "scripts/s mean",
    "scripts/s most",
    "commands/s mean",
    "commands/s most",
    "between renewals, longest",
    "left at a renewal, least",
];

fn measure(options: &Options, results: &mut Results) -> Result<(), String> {
    for (locks, nodes) in SCENES {
        if !options.nodes().contains(&nodes) || (options.quick && locks * nodes > 10_000) {
            continue;
        }
        for round in 0..options.rounds(1, 1) {
            eprintln!("held: round {}: {locks} locks, {nodes} servers", round + 1);
            match Run::measure(locks, nodes, results.round(round), options) {
                Ok(run) => results.keep(&run)?,
                Err(why) => results.fail(&format!("{locks} locks, {nodes} servers: {why}"))?,
            }
        }
    }
    Ok(())
}

fn tell(lines: &Lines, page: &mut Page) -> Result<(), String> {
    let runs: Vec<Run> = lines.results()?;
    page.say(include_str!("../../../pages/held.md"));
    page.say(table(COLUMNS, runs.iter().map(cells)));
    for run in runs.iter().filter(|run| run.watch.lost > 0) {
        let (lost, locks) = (run.watch.lost, run.locks);
        page.say(format!(
            "LOST: {lost} of {locks} locks, {} servers.",
            run.nodes
        ));
    }
    Ok(())
}

fn cells(run: &Run) -> [String; COLUMNS.len()] {
    let mean = |values: &[f64]| crate::report::statistics::mean(values).unwrap_or_default();
    let most = |values: &[f64]| values.iter().copied().fold(0.0, f64::max);
    let of_ttl = |seconds: f64| {
        format!(
            "{seconds:.1} s ({:.0} % of the TTL)",
            100.0 * seconds / run.ttl
        )
    };
    [
        run.locks.to_string(),
        run.nodes.to_string(),
        format!("{:.0}", run.ttl),
        format!("{:.1} %", run.client_cpu * 100.0),
        format!("{:.1} %", run.server_cpu * 100.0),
        format!("{:.0}", run.bytes_per_lock),
        format!("{:.0}", mean(&run.scripts)),
        format!("{:.0}", most(&run.scripts)),
        format!("{:.0}", mean(&run.commands)),
        format!("{:.0}", most(&run.commands)),
        of_ttl(run.watch.longest),
        of_ttl(run.watch.least_left),
    ]
}
