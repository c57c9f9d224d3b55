//! What the sections that compare subjects share: the subjects that can run here, and their turns.

use leasehold_testkit::servers::RedisSet;
use serde::Serialize;

use crate::error::Fallible;
use crate::measure::peers::lacking;
use crate::measure::results::Results;
use crate::measure::subject::Subject;
use crate::options::Options;

/// Returns the requested subjects that can run here, and reports the missing ones.
pub(super) fn present(
    subjects: impl Iterator<Item = Subject>,
    options: &Options,
    results: &mut Results,
) -> Fallible<Vec<Subject>> {
    let mut present = Vec::new();
    for subject in subjects {
        if !options.wants(subject.name) {
            eprintln!("left out by --only: {}", subject.name);
        } else if let Some(why) = lacking(subject.program) {
            results.skip(subject.name, &why)?;
        } else {
            present.push(subject);
        }
    }
    Ok(present)
}

/// Rotates the order from round to round, so that no subject always follows the same other one.
pub(super) fn rotated<T>(subjects: &[T], round: usize) -> impl Iterator<Item = &T> {
    let turns = subjects.iter().cycle().skip(round % subjects.len().max(1));
    turns.take(subjects.len())
}

/// Measures each subject once, on fresh servers, so that nothing is left of the run before. `condition` names
/// what the subjects have in common. A failure is recorded, and the next subject follows.
pub(super) fn take_turns<R: Serialize>(
    subjects: &[Subject],
    round: usize,
    condition: &str,
    nodes: usize,
    results: &mut Results,
    measure: impl Fn(&Subject, &RedisSet, usize) -> Fallible<R>,
) -> Fallible {
    for subject in rotated(subjects, round) {
        let name = subject.name;
        eprintln!("round {}: {condition}, {nodes} servers: {name}", round + 1);
        let servers = RedisSet::start(nodes);
        match measure(subject, &servers, results.round(round)) {
            Ok(run) => results.keep(&run)?,
            Err(why) => results.fail(&format!("{name}, {condition}: {why}"))?,
        }
    }
    Ok(())
}

/// What the report calls this many servers.
pub(super) fn servers(nodes: usize) -> String {
    match nodes {
        1 => "one server".into(),
        nodes => format!("{nodes} servers"),
    }
}
