//! What the sections that compare subjects share: the subjects that can run here, and their turns.

use crate::error::Fallible;
use crate::measure::subject::Subject;
use crate::options::Options;
use crate::peers::programs::lacking;
use crate::report::page::Page;
use crate::report::table::Run;

/// Returns the requested subjects that can run here on as many servers as `nodes`, and reports the missing ones.
pub(super) fn present(
    subjects: &[Subject],
    nodes: usize,
    options: &Options,
    page: &mut Page,
) -> Vec<Subject> {
    let mut present = Vec::new();
    for subject in subjects {
        if !options.wants(subject.name) {
            eprintln!("left out by --only: {}", subject.name);
        } else if let Some(why) = lacking(subject.program) {
            page.skip(subject.name, &why);
        } else if nodes == 1 || subject.is_quorum {
            present.push(*subject);
        }
    }
    present
}

/// Measures each subject `rounds` times, as [`take_turn`] does.
pub(super) fn take_turns<S, T>(
    subjects: &[Subject],
    rounds: usize,
    condition: &str,
    page: &mut Page,
    start: impl Fn() -> S,
    measure: impl Fn(&Subject, &S) -> Fallible<T>,
) -> Vec<Run<T>> {
    let turns =
        (0..rounds).flat_map(|round| take_turn(subjects, round, condition, page, &start, &measure));
    turns.collect()
}

/// Measures each subject once, on servers that `start` starts for it, so that nothing is left of the run before. The
/// order rotates from round to round, so that no subject always follows the same other one. `condition` names what the
/// subjects have in common. A failure is reported, and the next subject follows.
pub(super) fn take_turn<S, T>(
    subjects: &[Subject],
    round: usize,
    condition: &str,
    page: &mut Page,
    start: impl Fn() -> S,
    measure: impl Fn(&Subject, &S) -> Fallible<T>,
) -> Vec<Run<T>> {
    let mut runs = Vec::new();
    let rotated = subjects.iter().cycle().skip(round);
    for subject in rotated.take(subjects.len()) {
        let name = subject.name;
        eprintln!("round {}: {condition}: {name}", round + 1);
        match measure(subject, &start()) {
            Ok(seen) => runs.push(Run {
                subject: name,
                round,
                seen,
            }),
            Err(why) => page.fail(&format!("{name}, {condition}: {why}")),
        }
    }
    runs
}

/// What the report calls this many servers.
pub(super) fn servers(nodes: usize) -> String {
    match nodes {
        1 => "one server".into(),
        5 => "five servers".into(),
        nodes => format!("{nodes} servers"),
    }
}
