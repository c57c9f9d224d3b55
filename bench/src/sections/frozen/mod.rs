//! Five servers, one of them slow or frozen: what that costs the clients.

mod condition;

use leasehold_testkit::servers::RedisSet;
use serde::{Deserialize, Serialize};

use crate::error::Fallible;
use crate::measure::record::Watched;
use crate::measure::results::{Lines, Results};
use crate::measure::subject::{LEASEHOLD, Nodes, Program, Subject};
use crate::measure::worker_process::{Keys, Scenario, WorkerProcess};
use crate::options::{Options, or};
use crate::report::charts::{Bar, Group};
use crate::report::figures::distinct;
use crate::report::page::{Page, SampleColumn, comparison, fine_spread};
use crate::report::statistics::{Sample, Spread};
use crate::sections::turns;

use condition::Condition;

const SUBJECTS: [Subject; 3] = [
    Subject::ours(LEASEHOLD, "leasehold", "multi"),
    Subject::peer("raw redis", IMPATIENT_CRATE, "multi", Nodes::Any).as_bound(),
    Subject::peer("rslock", IMPATIENT_RSLOCK, "multi", Nodes::Any),
];
const IMPATIENT_CRATE: Program = Program::Own("crate-impatient");
const IMPATIENT_RSLOCK: Program = Program::Own("rslock-impatient");

const COLUMNS: [SampleColumn<Run>; 8] = [
    ("in flight", |of| of.first().in_flight.to_string()),
    ("servers", |of| of.first().condition.to_string()),
    ("subject", |of| {
        let name = &of.first().name;
        match of.own.iter().map(|run| run.seen.failed).sum() {
            0_usize => name.clone(),
            failed => format!("{name} ({failed} cycles failed)"),
        }
    }),
    ("cycles/s", |of| of.spread(|run| run.seen.cycles_per_second)),
    ("÷ its own with all healthy", |of| fine_spread(share(of))),
    ("acquire p50 µs", |of| of.integer(|run| run.seen.p50)),
    ("acquire p99 µs", |of| of.integer(|run| run.seen.p99)),
    ("longest ms", |of| {
        of.integer(|run| run.seen.longest / 1000.0)
    }),
];

/// A subject in one round.
#[derive(Debug, Serialize, Deserialize)]
struct Run {
    name: String,
    condition: Condition,
    in_flight: usize,
    round: usize,
    #[serde(flatten)]
    seen: Watched,
}

pub(super) fn measure(options: &Options, results: &mut Results) -> Fallible {
    let subjects = turns::present(SUBJECTS.into_iter(), options, results)?;
    for round in 0..options.rounds(1, 3) {
        for &in_flight in or(&options.in_flight, &[1, 64]) {
            for condition in Condition::ALL {
                let what = format!("{condition}, {in_flight} in flight");
                let measure = |subject: &_, servers: &_, round| {
                    Run::measure(subject, servers, condition, in_flight, round, options)
                };
                turns::take_turns(&subjects, round, &what, 5, results, measure)?;
            }
        }
    }
    Ok(())
}

impl Run {
    fn measure(
        subject: &Subject,
        servers: &RedisSet,
        condition: Condition,
        in_flight: usize,
        round: usize,
        options: &Options,
    ) -> Fallible<Self> {
        let scenario = Scenario::without_pauses(Keys::Each, in_flight);
        let mut worker = WorkerProcess::start(subject, &scenario, servers)?;
        let (warm_up, window) = options.pick((200, 1500), (400, 3000));
        worker.command(&format!("cycle-on {warm_up}"), "cycling")?;
        let watch = || worker.ask_for(&format!("watch {window}"));
        let seen = condition.during(&servers[4], watch)?;
        Ok(Self {
            name: subject.name.into(),
            condition,
            in_flight,
            round,
            seen,
        })
    }
}

pub(super) fn write_page(lines: &Lines, page: &mut Page) -> Fallible {
    page.title("One of five servers fails");
    let runs: Vec<Run> = lines.results()?;
    page.say(include_str!("../../../pages/frozen.md"));
    let widths = distinct(runs.iter().map(|run| run.in_flight));
    let (mut rows, mut groups) = (Vec::new(), Vec::new());
    for in_flight in widths {
        for condition in Condition::ALL {
            let mut bars = Vec::new();
            for Subject { name, role, .. } in SUBJECTS {
                let is_own = |run: &Run| {
                    run.name == name && run.condition == condition && run.in_flight == in_flight
                };
                if let Some(sample) = Sample::of(&runs, is_own) {
                    bars.extend(Bar::of(name, role, share(&sample)));
                    rows.push(sample);
                }
            }
            if condition != Condition::Healthy && !bars.is_empty() {
                groups.push(Group {
                    title: format!("{condition}, {in_flight} in flight"),
                    bars,
                });
            }
        }
    }
    let title = "Cycles per second, of those with five healthy servers";
    page.bars("share", title, Some(1.0), &groups)?;
    page.say(comparison(&COLUMNS, rows));
    Ok(())
}

/// Its cycles per second, of those with healthy servers in the same round.
fn share(sample: &Sample<Run>) -> Option<Spread> {
    let reference = |run: &Run, other: &Run| {
        (&other.name, other.in_flight, other.round) == (&run.name, run.in_flight, run.round)
            && other.condition == Condition::Healthy
    };
    sample.ratio(reference, |run| run.seen.cycles_per_second)
}
