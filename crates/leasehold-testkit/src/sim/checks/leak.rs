use super::Violation;
use crate::sim::history::{Event, What};

/// I5: once everybody has ended, and the time is over by which it must be gone, nothing is held.
pub(super) fn check(events: &[Event]) -> Vec<Violation> {
    let left = events.iter().filter_map(|event| match &event.what {
        What::Left { server, key, owner } => Some(Violation {
            invariant: "I5",
            at: event.at,
            text: format!("server {server} still holds key {key} for {owner:?}"),
        }),
        _ => None,
    });
    left.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sim::checks::invented::*;

    #[test]
    fn what_is_left_is_rejected() {
        let left = What::Left {
            server: 0,
            key: 0,
            owner: None,
        };
        assert_eq!(
            check(&[event(1_000, What::Settled), event(1_000, left)]).len(),
            1
        );
        assert!(check(&[event(1_000, What::Settled)]).is_empty());
    }
}
