use crate::measure::results::Lines;
use crate::measure::subject::{BOUND, LEASEHOLD};
use crate::report::figures::distinct;
use crate::report::page::{Page, fine_spread, integer, part, percent, spread, table};
use crate::report::statistics::Spread;

use super::run::Run;
use super::{AWAY, HOLD, charts, subjects};

const COLUMNS: [&str; 16] = [
    "subject",
    "hand-over p50 µs",
    "÷ reference",
    "p99 µs",
    "÷ reference",
    "sections/s",
    "idle µs",
    "hold µs",
    "same again",
    "grants per waiter",
    "commands per section and server",
    "client CPU",
    "server CPU",
    "others' CPU",
    "gave up, overlaps",
    "rounds",
];

pub(super) fn tell(lines: &Lines, page: &mut Page) -> Result<(), String> {
    let runs: Vec<Run> = lines.results()?;
    page.say(introduction());
    for nodes in distinct(runs.iter().map(|run| run.nodes)) {
        let name = match nodes {
            1 => "One server".to_owned(),
            nodes => format!("A quorum of {nodes} servers"),
        };
        let of_nodes: Vec<&Run> = runs.iter().filter(|run| run.nodes == nodes).collect();
        page.say(format!("### {name}"));
        charts::draw(nodes, &of_nodes, page)?;
        for waiters in distinct(of_nodes.iter().map(|run| run.waiters)) {
            let all: Vec<&Run> = of_nodes
                .iter()
                .filter(|run| run.waiters == waiters)
                .copied()
                .collect();
            page.say(format!(
                "{name}, {waiters} waiters, compared with {}:",
                reference(nodes)
            ));
            page.say(markdown(nodes, &all));
        }
    }
    page.say(include_str!("../../../pages/handover.md"));
    Ok(())
}

fn introduction() -> String {
    format!(
        "Each waiter holds the lock for {HOLD:?} and then pauses for {AWAY:?}, plus or minus half of that. A hand-over is the time from the call \
         of release until the acquire of the next waiter returns. *Idle* is the time without a holder for each section."
    )
}

/// What the others are set against: no foreign client or bare command is a bound of a quorum.
fn reference(nodes: usize) -> &'static str {
    if nodes == 1 { BOUND } else { LEASEHOLD }
}

/// A row for each subject, in their order.
fn markdown(nodes: usize, runs: &[&Run]) -> String {
    let rows = subjects::all(nodes).filter_map(|subject| {
        let own: Vec<&Run> = runs_of(runs, subject.name).collect();
        (!own.is_empty()).then(|| cells(subject.name, &own, runs))
    });
    table(COLUMNS, rows)
}

fn cells(name: &str, own: &[&Run], all: &[&Run]) -> [String; COLUMNS.len()] {
    let over = |value: fn(&Run) -> Option<f64>| Spread::of(own.iter().filter_map(|run| value(run)));
    let share = |value: fn(&Run) -> Option<f64>| percent(over(value));
    let against = |value| fine_spread(ratio(own, all, value));
    let least = own.iter().map(|run| run.figures.grants_least).min();
    let most = own.iter().map(|run| run.figures.grants_most).max();
    let gave_up: u64 = own.iter().map(|run| run.gave_up).sum();
    let overlaps: usize = own.iter().map(|run| run.figures.overlaps).sum();
    [
        name.to_owned(),
        spread(over(|run| run.figures.handover_p50)),
        against(|run| run.figures.handover_p50),
        spread(over(|run| run.figures.handover_p99)),
        against(|run| run.figures.handover_p99),
        integer(over(|run| Some(run.figures.sections_per_second))),
        integer(over(|run| run.figures.idle)),
        integer(over(|run| run.figures.hold)),
        share(|run| Some(run.figures.same_again)),
        format!("{}–{}", least.unwrap_or(0), most.unwrap_or(0)),
        part(over(|run| Some(run.commands))),
        share(|run| Some(run.client_cpu)),
        share(|run| Some(run.server_cpu)),
        share(|run| Some(run.other_cpu)),
        format!("{gave_up}, {overlaps}"),
        own.len().to_string(),
    ]
}

/// What it is of the reference's value in the same round.
fn ratio(own: &[&Run], all: &[&Run], value: fn(&Run) -> Option<f64>) -> Option<Spread> {
    Spread::of(own.iter().filter_map(|run| {
        let same_round = |other: &&Run| other.round == run.round;
        let other = runs_of(all, reference(run.nodes)).find(same_round)?;
        Some(value(run)? / value(other)?)
    }))
}

pub(super) fn runs_of<'a>(runs: &[&'a Run], name: &str) -> impl Iterator<Item = &'a Run> {
    runs.iter().copied().filter(move |run| run.subject == name)
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
        let runs: Vec<&Run> = runs.iter().collect();
        let text = markdown(1, &runs);
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
        let run = run("rslock", 0, 200.0);
        assert_eq!(ratio(&[&run], &[&run], |run| Some(run.commands)), None);
    }
}
