use crate::measure::results::Lines;
use crate::report::charts::{Bar, Group, bars};
use crate::report::figures::distinct;
use crate::report::page::{Page, fine_spread, integer, part, percent, spread, table};
use crate::report::statistics::Spread;

use super::run::Run;
use super::subjects::{self, REFERENCE};

const COLUMNS: [&str; 14] = [
    "subject",
    "cycles/s",
    "÷ redis crate",
    "acquire p50 µs",
    "p99 µs",
    "cycle p50 µs",
    "p99 µs",
    "commands per cycle and server",
    "client CPU µs per cycle",
    "servers' CPU µs per cycle",
    "others' CPU",
    "lock seen on",
    "failed",
    "rounds",
];

pub(super) fn tell(lines: &Lines, page: &mut Page) -> Result<(), String> {
    let runs: Vec<Run> = lines.results()?;
    page.say(include_str!("../../../pages/cycles.md"));
    for nodes in distinct(runs.iter().map(|run| run.nodes)) {
        let name = match nodes {
            1 => "one server".to_owned(),
            nodes => format!("{nodes} servers"),
        };
        let here: Vec<&Run> = runs.iter().filter(|run| run.nodes == nodes).collect();
        let levels = distinct(here.iter().map(|run| run.in_flight));
        let group = |&in_flight: &usize| group(nodes, in_flight, &here);
        let groups: Vec<Group> = levels.iter().map(group).collect();
        let title = format!("Cycles per second of those of the redis crate, {name}");
        page.say(format!("### {}", title_case(&name)));
        page.chart(
            &format!("ratios-{nodes}"),
            &title,
            bars(&title, Some(1.0), &groups)?,
        );
        for in_flight in levels {
            page.say(format!("{in_flight} in flight, {name}:"));
            page.say(markdown(nodes, in_flight, &here));
        }
    }
    Ok(())
}

fn title_case(name: &str) -> String {
    let mut letters = name.chars();
    let first = letters.next().map(|letter| letter.to_ascii_uppercase());
    first.into_iter().chain(letters).collect()
}

fn group(nodes: usize, in_flight: usize, runs: &[&Run]) -> Group {
    let mut bars: Vec<Bar> = subjects::all(nodes, in_flight)
        .filter_map(|subject| {
            let own = runs_of(runs, in_flight, subject.name);
            Some(Bar {
                label: subject.name.into(),
                value: ratio(own, runs)?,
                role: subject.role,
            })
        })
        .collect();
    bars.sort_by(|one, other| other.value.median.total_cmp(&one.value.median));
    Group {
        title: format!("{in_flight} in flight"),
        bars,
    }
}

/// A row for each subject, in their order.
fn markdown(nodes: usize, in_flight: usize, runs: &[&Run]) -> String {
    let rows = subjects::all(nodes, in_flight).filter_map(|subject| {
        let own: Vec<&Run> = runs_of(runs, in_flight, subject.name).collect();
        (!own.is_empty()).then(|| cells(subject.name, &own, runs))
    });
    table(COLUMNS, rows)
}

fn cells(name: &str, own: &[&Run], all: &[&Run]) -> [String; COLUMNS.len()] {
    let over = |value: fn(&Run) -> f64| Spread::of(own.iter().map(|run| value(run)));
    let seen = own.iter().map(|run| run.seen).min().unwrap_or(0);
    let failed: usize = own.iter().map(|run| run.failed).sum();
    [
        name.to_owned(),
        spread(over(|run| run.cycles_per_second)),
        fine_spread(ratio(own.iter().copied(), all)),
        integer(over(|run| run.acquire_p50)),
        integer(over(|run| run.acquire_p99)),
        integer(over(|run| run.cycle_p50)),
        integer(over(|run| run.cycle_p99)),
        part(over(|run| run.commands)),
        part(over(|run| run.client_micros)),
        part(over(|run| run.server_micros)),
        percent(over(|run| run.other_cpu)),
        format!("{seen}/{}", own.first().map_or(0, |run| run.nodes)),
        failed.to_string(),
        own.len().to_string(),
    ]
}

/// Cycles per second, of those of the reference in the same round.
fn ratio<'a>(own: impl Iterator<Item = &'a Run>, all: &[&Run]) -> Option<Spread> {
    Spread::of(own.filter_map(|run| {
        let other =
            runs_of(all, run.in_flight, REFERENCE).find(|other| other.round == run.round)?;
        Some(run.cycles_per_second / other.cycles_per_second)
    }))
}

fn runs_of<'a>(runs: &[&'a Run], in_flight: usize, name: &str) -> impl Iterator<Item = &'a Run> {
    let own = move |run: &&Run| run.subject == name && run.in_flight == in_flight;
    runs.iter().copied().filter(own)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(subject: &str, in_flight: usize, round: usize, cycles_per_second: f64) -> Run {
        Run {
            subject: subject.into(),
            nodes: 1,
            in_flight,
            round,
            seen: 1,
            cycles: 100,
            cycles_per_second,
            acquire_p50: 60.0,
            acquire_p99: 80.0,
            cycle_p50: 120.0,
            cycle_p99: 150.0,
            commands: 2.0,
            client_micros: 50.0,
            server_micros: 40.0,
            other_cpu: 0.01,
            failed: 0,
            why: String::new(),
        }
    }

    #[test]
    fn a_ratio_is_of_the_same_round_and_of_as_many_in_flight() {
        let runs = [
            run(REFERENCE, 1, 0, 100.0),
            run(REFERENCE, 1, 1, 1000.0),
            run(REFERENCE, 64, 0, 9.0),
            run("rslock", 1, 0, 50.0),
            run("rslock", 1, 1, 600.0),
        ];
        let runs: Vec<&Run> = runs.iter().collect();
        let own = runs_of(&runs, 1, "rslock");
        let expected = Spread::of([0.5, 0.6]);
        assert_eq!(ratio(own, &runs), expected);
        let text = markdown(1, 1, &runs);
        assert_eq!(text.lines().count(), 4, "{text}");
        assert!(
            text.contains("| rslock | 325 (50–600) | 0.55 (0.50–0.60) | 60 |"),
            "{text}"
        );
    }

    #[test]
    fn bars_are_in_the_order_of_their_length() {
        let runs = [
            run(REFERENCE, 1, 0, 100.0),
            run("rslock", 1, 0, 50.0),
            run("leasehold", 1, 0, 110.0),
        ];
        let group = group(1, 1, &runs.iter().collect::<Vec<_>>());
        let labels: Vec<&str> = group.bars.iter().map(|bar| bar.label.as_str()).collect();
        assert_eq!(labels, ["leasehold", REFERENCE, "rslock"]);
    }
}
