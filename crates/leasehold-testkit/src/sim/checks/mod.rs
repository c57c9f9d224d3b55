//! The invariants, each checked on a history by itself.

mod bounded;
mod company;
mod died_with;
mod differing;
mod exclusion;
mod fence_order;
mod foreign_release;
mod gathering;
mod hand_over;
mod kept_places;
mod leak;
mod let_go;
mod liveness;
mod lost_in_time;
mod lost_wake_up;
mod no_resurrection;
mod polite;
mod queue_left;
mod turn_order;
mod unknown;

#[cfg(test)]
mod invented;
mod majorities;
mod queues;
mod shows;
mod spans;
mod waits;

use std::fmt;
use std::time::Duration;

use super::history::Event;

/// An invariant that a history breaks.
#[derive(Clone, Debug)]
pub struct Violation {
    /// The invariant's number in ARCHITECTURE.md.
    pub invariant: &'static str,
    /// When on the world's timeline.
    pub at: Duration,
    /// What happened.
    pub text: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            invariant,
            at,
            text,
        } = self;
        write!(f, "{invariant} at {:.3}: {text}", at.as_secs_f64())
    }
}

/// All that `events` break.
pub(crate) fn all(events: &[Event]) -> Vec<Violation> {
    let mut violations = Vec::new();
    violations.extend(exclusion::check(events));
    violations.extend(fence_order::check(events));
    violations.extend(lost_in_time::check(events));
    violations.extend(foreign_release::check(events));
    violations.extend(leak::check(events));
    violations.extend(let_go::check(events));
    violations.extend(no_resurrection::check(events));
    violations.extend(unknown::check(events));
    violations.extend(differing::check(events));
    violations.extend(liveness::check(events));
    violations.extend(bounded::check(events));
    violations.extend(turn_order::check(events));
    violations.extend(kept_places::check(events));
    violations.extend(hand_over::check(events));
    violations.extend(lost_wake_up::check(events));
    violations.extend(queue_left::check(events));
    violations.extend(polite::check(events));
    violations
}
