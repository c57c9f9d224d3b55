//! No call fails in a way that no fault explains.

use super::{History, Violation};
use crate::programs::history::What;

pub(super) fn check(history: &History<'_>) -> Vec<Violation> {
    let odd = history.events.iter().filter_map(|event| match &event.what {
        What::Refused {
            is_unexpected: true,
            text,
            ..
        }
        | What::Failed {
            is_unexpected: true,
            text,
            ..
        } => Some(Violation::new(
            "errors",
            format!("c{}: {text}", event.client),
        )),
        _ => None,
    });
    odd.collect()
}
