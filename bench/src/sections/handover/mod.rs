//! A lock that always changes hands: how long it takes from a release to the next holder's acquire.

mod charts;
mod run;
pub(crate) mod subjects;
mod table;

use std::time::Duration;

use crate::error::Fallible;
use crate::measure::results::Results;
use crate::measure::worker_process::{Keys, Scenario};
use crate::options::{Options, or};
use crate::sections::turns;
use run::Run;
pub(super) use table::write_page;

/// The default numbers of waiters. The first applies to all subjects, the others only to those that the
/// charts show.
const WAITERS: [usize; 4] = [16, 4, 64, 256];

/// A section, and the pause of its waiter afterwards, half of that more or less, so that the lock goes
/// to another waiter.
const HOLD: Duration = Duration::from_millis(1);
const AWAY: Duration = Duration::from_millis(5);

/// Runs all subjects in turn, round after round.
pub(super) fn measure(options: &Options, results: &mut Results) -> Fallible {
    for &nodes in options.nodes() {
        let mut subjects = turns::present(subjects::all(nodes), options, results)?;
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
            let what = format!("handover, {waiters} waiters");
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
