use crate::error::Fallible;
use crate::measure::results::Lines;
use crate::measure::subject::{BOUND, LEASEHOLD};
use crate::report::figures::distinct;
use crate::report::page::{Page, SampleColumn, comparison, fine_spread};
use crate::report::statistics::{Sample, Spread};

use super::run::Run;
use super::{AWAY, HOLD, charts, subjects};

const COLUMNS: [SampleColumn<Run>; 16] = [
    ("subject", |of| of.first().subject.clone()),
    ("hand-over p50 µs", |of| {
        of.spread(|run| run.figures.handover_p50)
    }),
    ("÷ reference", |of| {
        fine_spread(ratio(of, |run| run.figures.handover_p50))
    }),
    ("p99 µs", |of| of.spread(|run| run.figures.handover_p99)),
    ("÷ reference", |of| {
        fine_spread(ratio(of, |run| run.figures.handover_p99))
    }),
    ("sections/s", |of| {
        of.integer(|run| run.figures.sections_per_second)
    }),
    ("idle µs", |of| of.integer(|run| run.figures.idle)),
    ("hold µs", |of| of.integer(|run| run.figures.hold)),
    ("same again", |of| of.percent(|run| run.figures.same_again)),
    ("grants per waiter", |of| {
        let least = of.own.iter().map(|run| run.figures.grants_least).min();
        let most = of.own.iter().map(|run| run.figures.grants_most).max();
        format!("{}–{}", least.unwrap_or(0), most.unwrap_or(0))
    }),
    ("commands per section and server", |of| {
        of.part(|run| run.commands)
    }),
    ("client CPU", |of| of.percent(|run| run.client_cpu)),
    ("server CPU", |of| of.percent(|run| run.server_cpu)),
    ("others' CPU", |of| of.percent(|run| run.other_cpu)),
    ("gave up, overlaps", |of| {
        let gave_up: u64 = of.own.iter().map(|run| run.gave_up).sum();
        let overlaps: usize = of.own.iter().map(|run| run.figures.overlaps).sum();
        format!("{gave_up}, {overlaps}")
    }),
    ("rounds", |of| of.own.len().to_string()),
];

pub(in crate::sections) fn write_page(lines: &Lines, page: &mut Page) -> Fallible {
    page.title("A contended lock");
    let runs: Vec<Run> = lines.results()?;
    page.say(format!(
        "Each waiter holds the lock for {HOLD:?} and then pauses for {AWAY:?}, plus or minus half of that. A *section* is one such hold. A hand-over is the time from the call \
         of release until the acquire of the next waiter returns. *Idle* is the time without a holder per section."
    ));
    for nodes in distinct(runs.iter().map(|run| run.nodes)) {
        let name = match nodes {
            1 => "One server".to_owned(),
            nodes => format!("A quorum of {nodes} servers"),
        };
        page.say(format!("### {name}"));
        charts::draw(nodes, &runs, page)?;
        let here = runs.iter().filter(|run| run.nodes == nodes);
        for waiters in distinct(here.map(|run| run.waiters)) {
            page.say(format!(
                "{name}, {waiters} waiters, compared with {}:",
                reference(nodes)
            ));
            page.say(comparison(&COLUMNS, samples(nodes, waiters, &runs)));
        }
    }
    page.say(include_str!("../../../pages/handover.md"));
    Ok(())
}

/// What the others are set against: no foreign client or bare command is a bound of a quorum.
fn reference(nodes: usize) -> &'static str {
    if nodes == 1 { BOUND } else { LEASEHOLD }
}

/// A sample for each subject, in their order.
fn samples(nodes: usize, waiters: usize, runs: &[Run]) -> impl Iterator<Item = Sample<'_, Run>> {
    subjects::all(nodes).filter_map(move |subject| {
        Sample::of(runs, |run| {
            (run.nodes, run.waiters, run.subject.as_str()) == (nodes, waiters, subject.name)
        })
    })
}

/// What it is of the reference's value in the same round.
fn ratio<V: Into<Option<f64>>>(sample: &Sample<Run>, value: fn(&Run) -> V) -> Option<Spread> {
    let is_reference = |run: &Run, other: &Run| {
        other.subject == reference(run.nodes)
            && (other.nodes, other.waiters, other.round) == (run.nodes, run.waiters, run.round)
    };
    sample.ratio(is_reference, value)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::record::Record;
    use crate::report::figures::Figures;

    fn run(subject: &str, round: usize, p50: f64) -> Run {
        Run {
            subject: subject.into(),
            nodes: 1,
            waiters: 2,
            round,
            seen: 1,
            figures: Figures {
                handover_p50: Some(p50),
                sections_per_second: 1e5 / p50,
                ..Figures::of(&Record::default(), 2, 0, 1_000_000_000)
            },
            commands: 2.0,
            client_cpu: 0.25,
            server_cpu: 0.1,
            other_cpu: 0.0,
            client_mib: 3.0,
            gave_up: 1,
            why: String::new(),
            sections_ns: Vec::new(),
        }
    }

    #[test]
    fn a_ratio_is_of_the_same_round() {
        let runs = [
            run(BOUND, 0, 100.0),
            run(BOUND, 1, 1000.0),
            run("rslock", 0, 200.0),
            run("rslock", 1, 2000.0),
        ];
        let text = comparison(&COLUMNS, samples(1, 2, &runs));
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), 4, "{text}");
        assert!(
            lines[2].starts_with(&format!("| {BOUND} | 550 (100–1000) | 1.00")),
            "{text}"
        );
        assert!(
            lines[3].starts_with("| rslock | 1100 (200–2000) | 2.00 (2.00–2.00) |"),
            "{text}"
        );
        assert!(lines[3].ends_with("| 2, 0 | 2 |"), "{text}");
    }

    #[test]
    fn without_the_reference_there_is_no_ratio() {
        let runs = [run("rslock", 0, 200.0)];
        let sample = samples(1, 2, &runs).next().unwrap();
        assert_eq!(ratio(&sample, |run| run.commands), None);
    }
}
