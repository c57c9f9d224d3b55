//! I3, I6, and I7: a guard is valid until its deadline at most, a loss is final, and no lease vanishes by itself.
//! And calls end.

use super::{History, Violation};
use crate::harness::Impact;
use crate::programs::history::What;

/// How much longer than its wait a call may take on a busy machine.
const LATE_MAX: u64 = 5_000_000_000;

/// A loss this long before the deadline has another reason than the deadline.
const EARLY: u64 = 200_000_000;

pub(super) fn check(history: &History<'_>) -> Vec<Violation> {
    let mut found = Vec::new();
    for hold in &history.holds {
        if let Some(oddity) = &hold.oddity {
            found.push(Violation::new("loss", format!("{hold} {oddity}")));
        }
        if let (Some((lost, reason)), Some(deadline)) = (&hold.lost, hold.deadline)
            && *lost + EARLY < deadline
            && is_unexplained(reason)
            && history.assumptions.impact == Impact::None
            && !history.breaks.iter().any(|it| it.lock == hold.lock)
            && !has_restarted(history, hold.client)
        {
            let text = format!("{hold} was lost before its deadline: {reason}");
            found.push(Violation::new("keeping", text));
        }
        if history.assumptions.is_undisturbed
            && let Some(answered) = hold.answered
            && answered > hold.asked + hold.wait.unwrap_or(0) + LATE_MAX
        {
            let text = format!("the call of {hold} took too long");
            found.push(Violation::new("limits", text));
        }
    }
    found
}

/// The store answered that the lease is gone.
fn is_unexplained(reason: &str) -> bool {
    use leasehold::LostReason::{Gone, Taken};
    [Gone, Taken]
        .iter()
        .any(|known| known.to_string() == reason)
}

fn has_restarted(history: &History<'_>, client: usize) -> bool {
    let mut events = history.events.iter();
    events.any(|event| event.client == client && event.what == What::Restarted)
}
