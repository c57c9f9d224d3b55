//! One result per request, and leaders in the order of their fences.

use std::collections::BTreeMap;

use super::{History, Violation};
use crate::programs::history::What;

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
    let mut found = Vec::new();
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
