//! Five servers, one of them slow or frozen: what that costs the clients.

mod condition;
mod run;
mod subjects;
mod worker;

use crate::measure::results::{Lines, Results};
use crate::options::{Options, or};
use crate::report::charts::{Bar, Group, Role, bars};
use crate::report::figures::distinct;
use crate::report::page::{Page, fine_spread, integer, spread, table};
use crate::report::statistics::Spread;
use crate::sections::Section;

pub(crate) use worker::{VERB, run as work};

use condition::Condition;
use run::Run;

pub(crate) const SECTION: Section = Section {
    name: "frozen",
    title: "One of five servers fails",
    measure,
    tell,
};

/// The subjects, and the role of each in the comparison.
const SUBJECTS: [(&str, Role); 3] = [
    ("leasehold", Role::Ours),
    ("raw redis", Role::Bound),
    ("rslock", Role::Peer),
];

const COLUMNS: [&str; 8] = [
    "in flight",
    "servers",
    "subject",
    "cycles/s",
    "÷ its own with all healthy",
    "acquire p50 µs",
    "acquire p99 µs",
    "longest ms",
];

fn measure(options: &Options, results: &mut Results) -> Result<(), String> {
    for round in 0..options.rounds(1, 3) {
        for &in_flight in or(&options.in_flight, &[1, 64]) {
            for condition in Condition::ALL {
                for turn in 0..SUBJECTS.len() {
                    // Rotates the order, so that no subject always follows the same other one.
                    let (name, _) = SUBJECTS[(turn + round) % SUBJECTS.len()];
                    if options.wants(name) {
                        let number = results.round(round);
                        eprintln!(
                            "frozen: round {number}: {name}, {condition}, {in_flight} in flight"
                        );
                        match Run::measure(name, condition, in_flight, number, options) {
                            Ok(run) => results.keep(&run)?,
                            Err(why) => results.fail(&format!("{name}, {condition}: {why}"))?,
                        }
                    }
                }
            }
        }
    }
    Ok(())
}

fn tell(lines: &Lines, page: &mut Page) -> Result<(), String> {
    let runs: Vec<Run> = lines.results()?;
    page.say(include_str!("../../../pages/frozen.md"));
    let widths = distinct(runs.iter().map(|run| run.in_flight));
    let (mut rows, mut groups) = (Vec::new(), Vec::new());
    for in_flight in widths {
        for condition in Condition::ALL {
            let mut shown = Vec::new();
            for (name, role) in SUBJECTS {
                let own = runs.iter().filter(|run| run.is(name, condition, in_flight));
                let own: Vec<&Run> = own.collect();
                if own.is_empty() {
                    continue;
                }
                let share = share(&own, &runs);
                rows.push(cells(&own, share));
                let bar = |value| Bar {
                    label: name.into(),
                    value,
                    role,
                };
                shown.extend(share.map(bar));
            }
            if condition != Condition::Healthy && !shown.is_empty() {
                groups.push(Group {
                    title: format!("{condition}, {in_flight} in flight"),
                    bars: shown,
                });
            }
        }
    }
    let title = "Cycles per second, of those with five healthy servers";
    page.chart("share", title, bars(title, Some(1.0), &groups)?);
    page.say(table(COLUMNS, rows));
    Ok(())
}

/// Its cycles per second, of those with healthy servers in the same round.
fn share(own: &[&Run], all: &[Run]) -> Option<Spread> {
    Spread::of(own.iter().filter_map(|run| {
        let healthy = |other: &&Run| {
            other.is(&run.name, Condition::Healthy, run.in_flight) && other.round == run.round
        };
        let healthy = all.iter().find(healthy)?;
        Some(run.cycles_per_second / healthy.cycles_per_second)
    }))
}

fn cells(own: &[&Run], share: Option<Spread>) -> [String; COLUMNS.len()] {
    let over = |value: fn(&Run) -> f64| Spread::of(own.iter().map(|run| value(run)));
    let failed: usize = own.iter().map(|run| run.failed).sum();
    let name = &own[0].name;
    let name = match failed {
        0 => name.clone(),
        _ => format!("{name} ({failed} cycles failed)"),
    };
    [
        own[0].in_flight.to_string(),
        own[0].condition.to_string(),
        name,
        spread(over(|run| run.cycles_per_second)),
        fine_spread(share),
        integer(over(|run| run.p50)),
        integer(over(|run| run.p99)),
        integer(over(|run| run.longest / 1000.0)),
    ]
}
