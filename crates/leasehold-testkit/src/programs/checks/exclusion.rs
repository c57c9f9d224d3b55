//! I1: guards that exclude each other are never valid at once.

use super::holds::Hold;
use super::{History, Violation};
use crate::harness::Impact;
use crate::programs::history::HeldMode;
use crate::programs::operation::{PERMIT_COUNT, PERMITS};

/// For how long a guard was valid, at least, and how it excluded others.
#[derive(Clone, Copy)]
struct Span<'a> {
    hold: &'a Hold,
    from: u64,
    until: u64,
    mode: HeldMode,
}

pub(super) fn check(history: &History<'_>) -> Vec<Violation> {
    // Fences alone count then.
    if history.assumptions.impact == Impact::EndsLeases {
        return Vec::new();
    }
    let mut spans: Vec<Span<'_>> = history
        .holds
        .iter()
        .flat_map(|hold| spans(history, hold))
        // A guard may be broken before its client hears of the grant, or of its downgrade.
        .filter(|span| span.from <= span.until)
        .collect();
    spans.sort_by_key(|span| span.from);
    let mut open: Vec<Span<'_>> = Vec::new();
    let mut found = Vec::new();
    for span in spans {
        open.retain(|other| other.until > span.from);
        let conflicts = open
            .iter()
            .filter(|other| other.hold.lock == span.hold.lock && !is_same_lease(other, &span));
        match span.hold.lock {
            PERMITS => {
                let count = conflicts.count() + 1;
                if count > PERMIT_COUNT as usize {
                    let text = format!("{} is holder {count} of {PERMIT_COUNT}", span.hold);
                    found.push(Violation::new("permits", text));
                }
            }
            _ => found.extend(conflicts.filter_map(|other| {
                let is_exclusive = |span: &Span<'_>| span.mode == HeldMode::Exclusive;
                (is_exclusive(other) || is_exclusive(&span)).then(|| {
                    let text = format!("{} and {} were valid at once", other.hold, span.hold);
                    Violation::new("exclusion", text)
                })
            })),
        }
        open.push(span);
    }
    found
}

/// Returns the spans of a guard: with a downgrade, it excludes others first as a writer, and then as a reader.
fn spans<'a>(history: &History<'_>, hold: &'a Hold) -> Vec<Span<'a>> {
    let at_once = history.breaks.iter().filter(|broken| broken.at_once);
    let (Some((from, _)), Some(until)) = (hold.granted, hold.valid_before_break(at_once)) else {
        return Vec::new();
    };
    let whole = Span {
        hold,
        from,
        until,
        mode: hold.mode,
    };
    match hold.downgraded {
        Some(at) if hold.mode == HeldMode::Exclusive => {
            let writer = Span {
                until: until.min(at),
                ..whole
            };
            let reader = Span {
                from: from.max(at),
                mode: HeldMode::Shared,
                ..whole
            };
            vec![writer, reader]
        }
        _ => vec![whole],
    }
}

/// Whether both hold by one grant: by a handle, or before and after a downgrade.
fn is_same_lease(one: &Span<'_>, other: &Span<'_>) -> bool {
    let fence = |span: &Span<'_>| span.hold.granted.map(|(_, fence)| fence);
    fence(one) == fence(other)
}
