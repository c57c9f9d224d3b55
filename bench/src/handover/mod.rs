//! A lock that always changes hands: what passes between a release and the next holder's acquire.

mod run;
mod table;

use std::time::Duration;

use leasehold_testkit::servers::RedisSet;

use crate::machine;
use crate::options::Options;
use crate::report::Report;
use crate::subject::Subject;
use crate::worker_process::{Scenario, lacking};
use run::Run;

/// How many waiters contend, if not said.
const WAITERS: usize = 16;

/// A section, and how long its waiter then stays away, so that the lock goes to another one.
const HOLD: Duration = Duration::from_millis(1);
const AWAY: Duration = Duration::from_millis(5);

/// Runs all subjects in turn, round after round, and prints what came of it.
pub(crate) fn run(options: &Options) -> Result<(), String> {
    let mut report = Report::create("handover")?;
    report.say("# Hand-over")?;
    report.say(&introduction(options))?;
    let mut failures = Vec::new();
    let waiters = match options.waiters.as_slice() {
        [] => &[WAITERS],
        waiters => waiters,
    };
    for &nodes in &options.nodes {
        let subjects = present(nodes, options, &mut report)?;
        for &waiters in waiters {
            let scenario = Scenario {
                waiters,
                hold: HOLD,
                away: AWAY,
            };
            let runs = rounds(
                &subjects,
                nodes,
                &scenario,
                options,
                &mut report,
                &mut failures,
            )?;
            report.say(&format!("\n## {}, {waiters} waiters\n", servers(nodes)))?;
            report.say(&table::markdown(&subjects, &runs))?;
        }
    }
    report.say(&format!("\n{}", machine::description()))?;
    for failure in &failures {
        report.say(&format!("FAILED: {failure}"))?;
    }
    println!("\n{}", report.places());
    match failures.len() {
        0 => Ok(()),
        count => Err(format!("{count} runs failed")),
    }
}

fn introduction(options: &Options) -> String {
    format!(
        "\nEach waiter holds the lock for {HOLD:?} and then stays away for {AWAY:?}. {} rounds of \
         {:?} for each subject, in turn; in brackets the least and the most of the rounds. A \
         hand-over goes from just before release is called until the next holder's acquire has \
         returned, where somebody was waiting. Idle is the time without a holder for each section. \
         Ratios are of the same round. Each run began with the proof that the lock is real: its key \
         on the servers, a second acquire denied, nothing left after the release.",
        options.rounds(),
        options.window(),
    )
}

fn servers(nodes: usize) -> String {
    match nodes {
        1 => "One server".into(),
        nodes => format!("A quorum of {nodes} servers"),
    }
}

/// The subjects that were asked for and can be run; says who is missing.
fn present(nodes: usize, options: &Options, report: &mut Report) -> Result<Vec<Subject>, String> {
    let mut present = Vec::new();
    for subject in Subject::all(nodes) {
        if !options.wants(subject.name) {
            report.say(&format!("\nleft out by --only: {}", subject.name))?;
        } else if let Some(why) = lacking(&subject) {
            report.say(&format!(
                "\nSKIPPED, not to be had: {}: {why}",
                subject.name
            ))?;
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
    report: &mut Report,
    failures: &mut Vec<String>,
) -> Result<Vec<Run>, String> {
    let mut runs = Vec::new();
    for round in 0..options.rounds() {
        // Nobody is always the one who comes after the same other.
        for turn in 0..subjects.len() {
            let subject = &subjects[(turn + round) % subjects.len()];
            eprintln!(
                "round {} of {}: {} waiters, {nodes} servers: {}",
                round + 1,
                options.rounds(),
                scenario.waiters,
                subject.name
            );
            // Of its own for each run, so that nothing is left of the one before.
            let servers = RedisSet::start(nodes);
            match Run::measure(subject, scenario, &servers, round, options) {
                Ok((run, record)) => {
                    report.keep(&run.with_sections(&record))?;
                    runs.push(run);
                }
                Err(why) => failures.push(why),
            }
        }
    }
    Ok(runs)
}
