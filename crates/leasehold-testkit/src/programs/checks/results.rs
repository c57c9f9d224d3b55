//! One result per request, and leaders in the order of their fences.

use std::collections::BTreeMap;

use super::{History, Violation};
use crate::programs::history::What;
use crate::programs::operation::LEADER;

pub(super) fn check(history: &History<'_>) -> Vec<Violation> {
    let mut results = history.events.iter().filter_map(|event| match &event.what {
        What::Result { bytes, .. } => Some(bytes),
        _ => None,
    });
    let Some(first) = results.next() else {
        return Vec::new();
    };
    let differing = results.filter(|result| *result != first).map(|result| {
        let text = format!("the request has the results {first:?} and {result:?}");
        Violation::new("one result", text)
    });
    differing.collect()
}

pub(super) fn check_leaders(history: &History<'_>) -> Vec<Violation> {
    let mut begun = BTreeMap::new();
    let mut looks = Vec::new();
    for event in history.events {
        match event.what {
            What::Looking { look } => {
                begun.insert((event.client, look), event.at);
            }
            What::Leader {
                look,
                fence: Some(fence),
            } => {
                let began = begun.get(&(event.client, look)).copied().unwrap_or(0);
                looks.push((began, event.at, fence));
            }
            _ => {}
        }
    }
    let mut found = released_leaders(history, &looks);
    for (_, seen, fence) in &looks {
        for (began, _, later) in &looks {
            if seen < began && later < fence {
                let text = format!("the leader with fence {later} was seen after {fence}");
                found.push(Violation::new("leaders", text));
            }
        }
    }
    found
}

/// A leader whose lease was released before a look began is not seen by it. Each look is when it began and ended, and the fence
/// that it saw.
fn released_leaders(history: &History<'_>, looks: &[(u64, u64, u64)]) -> Vec<Violation> {
    let mut found = Vec::new();
    for event in history.events {
        let What::Released {
            hold,
            is_freed: true,
            ..
        } = &event.what
        else {
            continue;
        };
        let mut leaders = history.holds.iter().filter(|it| it.lock == LEADER);
        let leader = leaders.find(|it| (it.client, it.number) == (event.client, *hold));
        let fence = leader
            .and_then(|leader| leader.granted)
            .map(|(_, fence)| fence);
        let is_seen =
            |(began, _, seen): &(u64, u64, u64)| event.at < *began && Some(*seen) == fence;
        if looks.iter().any(is_seen) {
            let text = format!("the leader with fence {fence:?} was seen after its release");
            found.push(Violation::new("leaders", text));
        }
    }
    found
}
