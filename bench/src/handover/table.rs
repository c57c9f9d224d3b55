use crate::report::{integer, part, row, spread};
use crate::statistics::Spread;
use crate::subject::{LEASEHOLD, Subject};

use super::run::Run;

const COLUMNS: [&str; 18] = [
    "subject",
    "sections/s",
    "÷ leasehold",
    "hand-over p50 µs",
    "÷ leasehold",
    "p99 µs",
    "idle µs",
    "hold µs",
    "same again",
    "grants per waiter",
    "commands per section and server",
    "client CPU",
    "server CPU",
    "others' CPU",
    "gave up",
    "overlaps",
    "lock seen on",
    "rounds",
];

/// A row for each subject, in their order.
pub(super) fn markdown(subjects: &[Subject], runs: &[Run]) -> String {
    let mut text = row(COLUMNS) + &row(COLUMNS.map(|_| "---"));
    for subject in subjects {
        let own: Vec<&Run> = runs_of(runs, subject.name).collect();
        if !own.is_empty() {
            text += &row(cells(subject.name, &own, runs));
        }
    }
    text
}

fn cells(name: &str, own: &[&Run], all: &[Run]) -> [String; COLUMNS.len()] {
    let over = |value: fn(&Run) -> Option<f64>| Spread::of(own.iter().filter_map(|run| value(run)));
    let share = |value: fn(&Run) -> Option<f64>| percent(over(value));
    let sum = |value: fn(&Run) -> u64| own.iter().map(|run| value(run)).sum::<u64>().to_string();
    let grants = |run: &&Run| (run.figures.grants_least, run.figures.grants_most);
    let least = own.iter().map(|run| grants(run).0).min().unwrap_or(0);
    let most = own.iter().map(|run| grants(run).1).max().unwrap_or(0);
    let seen = own.iter().map(|run| run.seen).min().unwrap_or(0);
    [
        name.to_owned(),
        spread(over(|run| Some(run.figures.sections_per_second))),
        ratio(own, all, |run| Some(run.figures.sections_per_second)),
        spread(over(|run| run.figures.handover_p50)),
        ratio(own, all, |run| run.figures.handover_p50),
        spread(over(|run| run.figures.handover_p99)),
        integer(over(|run| run.figures.idle)),
        integer(over(|run| run.figures.hold)),
        share(|run| Some(run.figures.same_again)),
        format!("{least}–{most}"),
        part(over(|run| Some(run.commands))),
        share(|run| Some(run.client_cpu)),
        share(|run| Some(run.server_cpu)),
        share(|run| Some(run.other_cpu)),
        sum(|run| run.gave_up),
        sum(|run| u64::try_from(run.figures.overlaps).unwrap_or(u64::MAX)),
        format!("{seen}/{}", own.first().map_or(0, |run| run.nodes)),
        own.len().to_string(),
    ]
}

/// The median of what it is of Leasehold's value in the same round.
fn ratio(own: &[&Run], all: &[Run], value: fn(&Run) -> Option<f64>) -> String {
    let ratios = own.iter().filter_map(|run| {
        let same_round = |other: &&Run| other.round == run.round;
        let leasehold = runs_of(all, LEASEHOLD).find(same_round)?;
        Some(value(run)? / value(leasehold)?)
    });
    Spread::of(ratios).map_or_else(|| "–".into(), |ratios| format!("{:.2}", ratios.median))
}

fn runs_of<'a>(runs: &'a [Run], name: &str) -> impl Iterator<Item = &'a Run> {
    runs.iter().filter(move |run| run.subject == name)
}

fn percent(shares: Option<Spread>) -> String {
    shares.map_or_else(
        || "–".into(),
        |shares| format!("{:.0} %", shares.median * 100.0),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::figures::Figures;
    use crate::record::Record;

    fn run(subject: &'static str, round: usize, p50: f64) -> Run {
        Run {
            subject,
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
            run(LEASEHOLD, 0, 100.0),
            run(LEASEHOLD, 1, 1000.0),
            run("rslock", 0, 200.0),
            run("rslock", 1, 2000.0),
        ];
        let subjects: Vec<Subject> = Subject::all(1).collect();
        let text = markdown(&subjects, &runs);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), 4, "{text}");
        assert!(lines[2].starts_with("| leasehold | "), "{text}");
        assert!(
            lines[3].contains("| 0.50 |") && lines[3].contains("| 2.00 |"),
            "{text}"
        );
        assert!(
            lines[3].contains("1100 (200–2000)") && lines[3].ends_with("| 2 | 0 | 1/1 | 2 |"),
            "{text}"
        );
    }

    #[test]
    fn without_leasehold_there_is_no_ratio() {
        let runs = [run("rslock", 0, 200.0)];
        assert_eq!(ratio(&[&runs[0]], &runs, |run| Some(run.commands)), "–");
    }
}
