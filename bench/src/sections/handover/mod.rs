//! A lock that always changes hands: how long it takes from a release to the next holder's acquire.

mod charts;
mod run;
pub(crate) mod subjects;
mod table;

use std::time::Duration;

use leasehold_testkit::servers::RedisSet;

use crate::measure::peers::lacking;
use crate::measure::results::Results;
use crate::measure::subject::Subject;
use crate::measure::worker_process::{Keys, Scenario};
use crate::options::{Options, or};
use crate::sections::Section;
use run::Run;

pub(crate) const SECTION: Section = Section {
    name: "handover",
    title: "A contended lock",
    measure,
    tell: table::tell,
};

/// The default numbers of waiters. The first applies to all subjects, the others only to those that the
/// charts show.
const WAITERS: [usize; 4] = [16, 4, 64, 256];

/// A section, and the pause of its waiter afterwards, half of that more or less, so that the lock goes
/// to another waiter.
const HOLD: Duration = Duration::from_millis(1);
const AWAY: Duration = Duration::from_millis(5);

/// Runs all subjects in turn, round after round.
fn measure(options: &Options, results: &mut Results) -> Result<(), String> {
    for &nodes in options.nodes() {
        let mut subjects = present(nodes, options, results)?;
        for &waiters in or(&options.waiters, &WAITERS) {
            if options.waiters.is_empty() && waiters != WAITERS[0] {
                subjects.retain(|subject| subjects::is_drawn(subject, waiters));
            }
            let scenario = Scenario {
                keys: Keys::One,
                waiters,
                hold: HOLD,
                away: AWAY,
            };
            rounds(&subjects, nodes, &scenario, options, results)?;
        }
    }
    Ok(())
}

/// Returns the requested subjects that can run here, and reports the missing ones.
fn present(nodes: usize, options: &Options, results: &mut Results) -> Result<Vec<Subject>, String> {
    let mut present = Vec::new();
    for subject in subjects::all(nodes) {
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

fn rounds(
    subjects: &[Subject],
    nodes: usize,
    scenario: &Scenario,
    options: &Options,
    results: &mut Results,
) -> Result<(), String> {
    let rounds = options.rounds(1, 3);
    for round in 0..rounds {
        // Rotates the order, so that no subject always follows the same other one.
        for turn in 0..subjects.len() {
            let subject = &subjects[(turn + round) % subjects.len()];
            eprintln!(
                "handover: round {} of {rounds}: {} waiters, {nodes} servers: {}",
                round + 1,
                scenario.waiters,
                subject.name
            );
            // Fresh servers for each run, so that nothing is left of the run before.
            let servers = RedisSet::start(nodes);
            match Run::measure(subject, scenario, &servers, results.round(round), options) {
                Ok((run, record)) => results.keep(&run.with_sections(&record))?,
                Err(why) => results.fail(&why)?,
            }
        }
    }
    Ok(())
}
