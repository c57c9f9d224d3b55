use crate::error::Fallible;
use crate::measure::results::Lines;
use crate::report::charts::{Bar, Group};
use crate::report::figures::distinct;
use crate::report::page::{Page, SampleColumn, comparison, fine_spread};
use crate::report::statistics::{Sample, Spread};
use crate::sections::turns;

use super::run::Run;
use super::subjects::{self, REFERENCE};

const COLUMNS: [SampleColumn<Run>; 14] = [
    ("subject", |of| of.first().subject.clone()),
    ("cycles/s", |of| of.spread(|run| run.cycles_per_second)),
    ("÷ redis crate", |of| fine_spread(ratio(of))),
    ("acquire p50 µs", |of| {
        of.integer(|run| run.cycled.acquire_p50)
    }),
    ("p99 µs", |of| of.integer(|run| run.cycled.acquire_p99)),
    ("cycle p50 µs", |of| of.integer(|run| run.cycled.cycle_p50)),
    ("p99 µs", |of| of.integer(|run| run.cycled.cycle_p99)),
    ("commands per cycle and server", |of| {
        of.part(|run| run.commands)
    }),
    ("client CPU µs per cycle", |of| {
        of.part(|run| run.client_micros)
    }),
    ("servers' CPU µs per cycle", |of| {
        of.part(|run| run.server_micros)
    }),
    ("others' CPU", |of| of.percent(|run| run.other_cpu)),
    ("lock seen on", |of| {
        let seen = of.own.iter().map(|run| run.seen).min();
        format!("{}/{}", seen.unwrap_or(0), of.first().nodes)
    }),
    ("failed", |of| {
        let failed: usize = of.own.iter().map(|run| run.cycled.failed).sum();
        failed.to_string()
    }),
    ("rounds", |of| of.own.len().to_string()),
];

pub(in crate::sections) fn write_page(lines: &Lines, page: &mut Page) -> Fallible {
    page.title("A free lock");
    let runs: Vec<Run> = lines.results()?;
    page.say(include_str!("../../../pages/cycles.md"));
    for nodes in distinct(runs.iter().map(|run| run.nodes)) {
        let name = turns::servers(nodes);
        let here = runs.iter().filter(|run| run.nodes == nodes);
        let levels = distinct(here.map(|run| run.in_flight));
        let groups = levels.iter().map(|level| group(nodes, *level, &runs));
        let title = format!("Cycles per second of those of the redis crate, {name}");
        page.say(format!("### {}", name.replacen('o', "O", 1)));
        page.bars(
            &format!("ratios-{nodes}"),
            &title,
            Some(1.0),
            &groups.collect::<Vec<Group>>(),
        )?;
        for in_flight in levels {
            page.say(format!("{in_flight} in flight, {name}:"));
            page.say(comparison(&COLUMNS, samples(nodes, in_flight, &runs)));
        }
    }
    Ok(())
}

fn group(nodes: usize, in_flight: usize, runs: &[Run]) -> Group {
    let mut bars: Vec<Bar> = subjects::all(nodes, in_flight)
        .filter_map(|subject| {
            let sample = sample(nodes, in_flight, subject.name, runs)?;
            Bar::of(subject.name, subject.role, ratio(&sample))
        })
        .collect();
    bars.sort_by(|one, other| other.value.median.total_cmp(&one.value.median));
    Group {
        title: format!("{in_flight} in flight"),
        bars,
    }
}

/// A sample for each subject, in their order.
fn samples(nodes: usize, in_flight: usize, runs: &[Run]) -> impl Iterator<Item = Sample<'_, Run>> {
    let subjects = subjects::all(nodes, in_flight);
    subjects.filter_map(move |subject| sample(nodes, in_flight, subject.name, runs))
}

fn sample<'a>(
    nodes: usize,
    in_flight: usize,
    subject: &str,
    runs: &'a [Run],
) -> Option<Sample<'a, Run>> {
    Sample::of(runs, |run| {
        (run.nodes, run.in_flight, run.subject.as_str()) == (nodes, in_flight, subject)
    })
}

/// Cycles per second, of those of the reference in the same round.
fn ratio(sample: &Sample<Run>) -> Option<Spread> {
    let reference = |run: &Run, other: &Run| {
        other.subject == REFERENCE
            && (other.nodes, other.in_flight, other.round) == (run.nodes, run.in_flight, run.round)
    };
    sample.ratio(reference, |run| run.cycles_per_second)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::record::Cycled;

    fn run(subject: &str, in_flight: usize, round: usize, cycles_per_second: f64) -> Run {
        Run {
            subject: subject.into(),
            nodes: 1,
            in_flight,
            round,
            seen: 1,
            cycled: Cycled {
                acquire_p50: 60.0,
                ..Cycled::default()
            },
            cycles_per_second,
            commands: 2.0,
            client_micros: 50.0,
            server_micros: 40.0,
            other_cpu: 0.01,
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
        let sample = sample(1, 1, "rslock", &runs).unwrap();
        assert_eq!(ratio(&sample), Spread::of([0.5, 0.6]));
        let text = comparison(&COLUMNS, samples(1, 1, &runs));
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
        let group = group(1, 1, &runs);
        let labels: Vec<&str> = group.bars.iter().map(|bar| bar.label.as_str()).collect();
        assert_eq!(labels, ["leasehold", REFERENCE, "rslock"]);
    }
}
