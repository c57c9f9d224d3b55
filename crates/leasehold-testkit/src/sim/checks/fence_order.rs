use std::collections::BTreeMap;

use super::Violation;
use super::spans::spans;
use crate::sim::history::{Event, What};

/// I2: a later grant has a greater fence than every earlier one of its key, and a record that checks
/// fences refuses nobody who holds the lock.
pub(super) fn check(events: &[Event]) -> Vec<Violation> {
    let mut spans = spans(events);
    spans.retain(|span| !span.excused && !span.is_stillborn());
    let mut violations = Vec::new();
    let mut greatest = BTreeMap::new();
    for span in &spans {
        let (before, fence) = greatest.entry(span.key).or_insert((span.hold, 0));
        if span.fence > *fence {
            (*before, *fence) = (span.hold, span.fence);
            continue;
        }
        let text = format!(
            "key {}: h{} was granted fence {} after h{before} had {fence}",
            span.key, span.hold, span.fence
        );
        violations.push(Violation {
            invariant: "I2",
            at: span.granted,
            text,
        });
    }
    for event in events {
        let What::Wrote {
            hold,
            key,
            accepted: false,
            ..
        } = event.what
        else {
            continue;
        };
        let mut held = spans.iter().filter(|span| span.hold == hold);
        if held.any(|span| span.granted <= event.at && event.at < span.end) {
            let text = format!("record {key} refused h{hold}, which holds the lock");
            violations.push(Violation {
                invariant: "I2",
                at: event.at,
                text,
            });
        }
    }
    violations
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sim::checks::invented::*;

    #[test]
    fn a_fence_that_is_not_greater_is_rejected() {
        let in_order = [
            grant_with_fence(1, 0, 0, 1_000, 2_000, 7),
            grant_with_fence(2, 1, 0, 3_000, 4_000, 8),
            grant_with_fence(3, 1, 1, 3_000, 4_000, 5),
        ];
        assert!(check(&in_order.concat()).is_empty());
        let equal = grant_with_fence(4, 1, 0, 5_000, 6_000, 8);
        assert_eq!(check(&[in_order.concat(), equal].concat()).len(), 1);
    }

    #[test]
    fn a_record_that_refuses_the_holder_is_rejected() {
        let refused = |millis| {
            let wrote = What::Wrote {
                hold: 1,
                key: 0,
                fence: 7,
                accepted: false,
            };
            [grant(1, 0, 0, 1_000, 2_000), vec![event(millis, wrote)]].concat()
        };
        assert_eq!(check(&refused(1_500)).len(), 1);
        assert!(
            check(&refused(2_500)).is_empty(),
            "it does not hold it any more"
        );
    }
}
