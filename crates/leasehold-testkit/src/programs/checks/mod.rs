//! Judges a history. Each check states one promise.

mod errors;
mod exclusion;
mod fences;
mod holds;
mod loss;
mod order;
mod results;
#[cfg(test)]
mod tests;

use super::history::Event;
use crate::harness::Impact;
use holds::{Break, Hold};

/// What a check may assume of the store and of the program.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Assumptions {
    /// The store serves waiters in the order in which they came.
    pub(crate) is_fifo: bool,
    /// No fault happened.
    pub(crate) is_undisturbed: bool,
    /// The worst that a fault of a server may have done.
    pub(crate) impact: Impact,
}

/// A broken promise.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Violation {
    /// The name of the promise.
    pub(crate) promise: &'static str,
    pub(crate) text: String,
}

impl Violation {
    pub(crate) fn new(promise: &'static str, text: impl Into<String>) -> Self {
        let text = text.into();
        Self { promise, text }
    }
}

/// All that the checks read.
struct History<'a> {
    events: &'a [Event],
    holds: Vec<Hold>,
    breaks: Vec<Break>,
    assumptions: Assumptions,
}

/// Returns the broken promises. The events are in the order of their times.
pub(crate) fn check(events: &[Event], assumptions: Assumptions) -> Vec<Violation> {
    let history = History {
        events,
        holds: holds::of(events),
        breaks: holds::breaks(events),
        assumptions,
    };
    let checks: [fn(&History<'_>) -> Vec<Violation>; 7] = [
        errors::check,
        exclusion::check,
        fences::check,
        loss::check,
        order::check,
        results::check,
        results::check_leaders,
    ];
    checks.iter().flat_map(|check| check(&history)).collect()
}
