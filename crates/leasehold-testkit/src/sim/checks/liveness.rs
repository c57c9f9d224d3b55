use super::Violation;
use crate::sim::history::{Event, What};

/// I8: what nothing is in the way of is granted in time, and every program ends.
pub(super) fn check(events: &[Event]) -> Vec<Violation> {
    let failed = events.iter().filter_map(|event| {
        let text = match &event.what {
            What::Probed {
                granted: true,
                took,
                allowed,
                ..
            } if took <= allowed => return None,
            What::Probed { .. } => event.what.to_string(),
            What::Stuck { client } => format!("client {client} does not end"),
            _ => return None,
        };
        Some(Violation {
            invariant: "I8",
            at: event.at,
            text,
        })
    });
    failed.collect()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::sim::checks::invented::*;

    #[test]
    fn a_lock_that_is_not_granted_in_time_is_rejected() {
        let probed = |granted, millis| {
            let (took, allowed) = (Duration::from_millis(millis), Duration::from_secs(1));
            check(&[event(
                1_000,
                What::Probed {
                    key: 0,
                    granted,
                    took,
                    allowed,
                },
            )])
            .len()
        };
        assert_eq!(
            (probed(true, 1_000), probed(true, 1_001), probed(false, 10)),
            (0, 1, 1)
        );
        assert_eq!(check(&[event(1_000, What::Stuck { client: 0 })]).len(), 1);
    }
}
