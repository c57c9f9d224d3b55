//! The invariants. Each check reads the history of a run on its own.

mod exclusion;
mod facts;
mod idle;
mod leases;
mod leftovers;
mod order;
mod outcomes;
mod pace;
mod records;
mod servers;

#[cfg(test)]
mod invented;

use std::fmt;

use self::facts::Facts;
use crate::history::Event;
use crate::plan::Plan;
use crate::time::Time;

/// An invariant that a history breaks.
#[derive(Clone, Debug)]
pub struct Violation {
    /// The invariant's number in ARCHITECTURE.md.
    pub invariant: &'static str,
    /// The check that found it.
    pub check: &'static str,
    /// When, in microseconds since the run began.
    pub at: u64,
    /// What happened.
    pub text: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let at = self.at as f64 / 1e6;
        write!(
            f,
            "{} {} at {at:.6}: {}",
            self.invariant, self.check, self.text
        )
    }
}

/// Returns the violations, and for how long locks were free although a waiter could have had them.
pub(crate) fn all(events: &[Event], plan: &Plan) -> (Vec<Violation>, Vec<Time>) {
    let facts = Facts::new(events, plan);
    let checks = [
        exclusion::exclusion,
        exclusion::fence_order,
        leases::lease_end,
        leases::foreign_release,
        leases::resurrection,
        leftovers::left,
        leftovers::let_go,
        outcomes::reported,
        outcomes::differing,
        outcomes::stuck,
        idle::idle,
        order::turn_order,
        order::kept_places,
        pace::poll_rate,
        pace::rounds,
        pace::bounded,
        records::records,
    ];
    let violations = checks.iter().flat_map(|check| check(&facts)).collect();
    let (from, last) = (facts.cleared, events.last().map_or(0, |event| event.at));
    let start = if plan.start == 0 {
        plan.recovery()
    } else {
        plan.start
    };
    let idle = idle::spans(&facts).into_iter();
    let idle = idle.filter(|span| span.from >= from.max(start));
    let idle = idle
        .map(|span| span.to.min(last).saturating_sub(span.from))
        .collect();
    (violations, idle)
}
