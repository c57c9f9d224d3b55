//! I2: each grant has a greater fence than all before it.

use super::holds::Hold;
use super::{History, Violation};
use crate::harness::Impact;
use crate::programs::history::HeldMode;

pub(super) fn check(history: &History<'_>) -> Vec<Violation> {
    let mut found = disorder(history);
    let grants = history.holds.iter().filter(|hold| !hold.is_adopted);
    let grants: Vec<_> = grants
        .filter_map(|hold| hold.granted.map(|(at, fence)| (hold, at, fence)))
        .collect();
    for (hold, _, fence) in &grants {
        for (earlier, granted, before) in &grants {
            if earlier.lock != hold.lock {
                continue;
            }
            let is_other = (earlier.client, earlier.number) != (hold.client, hold.number);
            if *granted < hold.asked && before >= fence || is_other && before == fence {
                let text = format!("{earlier} was granted before {hold} was asked for");
                found.push(Violation::new("fences", text));
            }
        }
    }
    found
}

/// Guards that exclude each other were granted in the order in which they were valid.
fn disorder(history: &History<'_>) -> Vec<Violation> {
    if history.assumptions.impact == Impact::EndsLeases {
        return Vec::new();
    }
    let grants: Vec<_> = history
        .holds
        .iter()
        .filter_map(|hold| valid_grant(history, hold))
        .collect();
    let mut found = Vec::new();
    for (earlier, granted, before) in &grants {
        for (hold, later, fence) in &grants {
            let is_exclusive = |hold: &Hold| hold.mode == HeldMode::Exclusive;
            let excludes = is_exclusive(earlier) || is_exclusive(hold);
            if earlier.lock == hold.lock && excludes && granted < later && before > fence {
                let text = format!("{earlier} was valid before {hold}");
                found.push(Violation::new("fences", text));
            }
        }
    }
    found
}

/// Returns a grant, with the time at which its call returned and its guard was valid.
fn valid_grant<'a>(history: &History<'_>, hold: &'a Hold) -> Option<(&'a Hold, u64, u64)> {
    let (at, fence) = hold.granted.filter(|_| !hold.is_adopted)?;
    hold.valid_until?;
    let ends_it = |at_once: bool, broken: u64| at_once && (hold.asked..=at).contains(&broken);
    let mut breaks = history.breaks.iter().filter(|it| it.lock == hold.lock);
    let is_broken = breaks.any(|broken| ends_it(broken.at_once, broken.at));
    (!is_broken).then_some((hold, at, fence))
}
