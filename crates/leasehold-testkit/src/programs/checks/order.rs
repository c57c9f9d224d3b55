//! I9: waiters are served in the order in which they came.

use std::ops::Range;

use super::holds::Hold;
use super::{History, Violation};
use crate::programs::history::HeldMode;

/// A request that was sent this much later also arrived later, if the store answered the client of the first one meanwhile.
const LATER: u64 = 1_000_000_000;

pub(super) fn check(history: &History<'_>) -> Vec<Violation> {
    if !history.assumptions.is_undisturbed || !history.assumptions.is_fifo {
        return Vec::new();
    }
    let queued = |hold: &&Hold| hold.is_queued && hold.mode == HeldMode::Exclusive;
    let waiters: Vec<(&Hold, u64)> = history
        .holds
        .iter()
        .filter(queued)
        .filter_map(|hold| hold.granted.map(|(at, _)| (hold, at)))
        .collect();
    let mut found = Vec::new();
    for (first, first_granted) in &waiters {
        for (second, second_granted) in &waiters {
            if first.lock == second.lock
                && first.asked + LATER < second.asked
                && second_granted < first_granted
                && was_answered(history, first.client, first.asked..second.asked)
            {
                let text = format!("{second} was served before {first}, which came first");
                found.push(Violation::new("order", text));
            }
        }
    }
    found
}

/// Whether the store granted something to the client meanwhile. Otherwise its first request may wait for a connection.
fn was_answered(history: &History<'_>, client: usize, span: Range<u64>) -> bool {
    let grants = history.holds.iter().filter(|hold| hold.client == client);
    let mut grants = grants.filter_map(|hold| hold.granted);
    grants.any(|(at, _)| span.contains(&at))
}
