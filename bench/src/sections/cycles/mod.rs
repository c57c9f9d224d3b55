//! A free lock, acquired and released: what that costs, one at a time and many at once.

mod page;
mod run;
mod subjects;

use crate::error::Fallible;
use crate::measure::results::Results;
use crate::measure::worker_process::{Keys, Scenario};
use crate::options::{Options, or};
use crate::sections::turns;
pub(super) use page::write_page;
use run::Run;

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

pub(super) fn measure(options: &Options, results: &mut Results) -> Fallible {
    for (name, why) in ABSENT {
        results.skip(name, why)?;
    }
    for &nodes in options.nodes() {
        for &in_flight in or(&options.in_flight, &IN_FLIGHT) {
            let subjects = turns::present(subjects::all(nodes, in_flight), options, results)?;
            let scenario = Scenario::without_pauses(Keys::Each, in_flight);
            let what = format!("cycles, {in_flight} in flight");
            for round in 0..options.rounds(1, 3) {
                let measure = |subject: &_, servers: &_, round| {
                    Run::measure(subject, &scenario, servers, round, options)
                };
                turns::take_turns(&subjects, round, &what, nodes, results, measure)?;
            }
        }
    }
    Ok(())
}
