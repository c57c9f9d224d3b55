//! A free lock, acquired and released: what that costs, one at a time and many at once.

mod run;
mod subjects;
mod tell;

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
    name: "cycles",
    title: "A free lock",
    measure,
    tell: tell::tell,
};

/// The default numbers of cycles in flight.
const IN_FLIGHT: [usize; 3] = [1, 64, 512];

/// Other popular libraries, and why they are absent.
const ABSENT: [(&str, &str); 2] = [
    (
        "redsync",
        "it is Go, and this command fetches no Go toolchain and no Go modules",
    ),
    (
        "Redisson",
        "it is Java, and this command fetches nothing for Java",
    ),
];

fn measure(options: &Options, results: &mut Results) -> Result<(), String> {
    for (name, why) in ABSENT {
        results.skip(name, why)?;
    }
    for &nodes in options.nodes() {
        for &in_flight in or(&options.in_flight, &IN_FLIGHT) {
            let subjects = present(nodes, in_flight, options, results)?;
            rounds(&subjects, nodes, in_flight, options, results)?;
        }
    }
    Ok(())
}

fn present(
    nodes: usize,
    in_flight: usize,
    options: &Options,
    results: &mut Results,
) -> Result<Vec<Subject>, String> {
    let mut present = Vec::new();
    for subject in subjects::all(nodes, in_flight).filter(|subject| options.wants(subject.name)) {
        match lacking(subject.program) {
            Some(why) => results.skip(subject.name, &why)?,
            None => present.push(subject),
        }
    }
    Ok(present)
}

fn rounds(
    subjects: &[Subject],
    nodes: usize,
    in_flight: usize,
    options: &Options,
    results: &mut Results,
) -> Result<(), String> {
    let scenario = Scenario {
        keys: Keys::Each,
        waiters: in_flight,
        hold: Duration::ZERO,
        away: Duration::ZERO,
    };
    let rounds = options.rounds(1, 3);
    for round in 0..rounds {
        // Rotates the order, so that no subject always follows the same other one.
        for turn in 0..subjects.len() {
            let subject = &subjects[(turn + round) % subjects.len()];
            eprintln!(
                "cycles: round {} of {rounds}: {in_flight} in flight, {nodes} servers: {}",
                round + 1,
                subject.name
            );
            // Fresh servers for each run, so that nothing is left of the run before.
            let servers = RedisSet::start(nodes);
            match Run::measure(subject, &scenario, &servers, results.round(round), options) {
                Ok(run) => results.keep(&run)?,
                Err(why) => results.fail(&why)?,
            }
        }
    }
    Ok(())
}
