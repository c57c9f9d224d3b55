use super::Violation;
use super::company::may_stand_together;
use super::spans::{Span, spans};
use crate::sim::history::{Event, What};

/// I2: a later grant has a greater fence than every earlier one of its key, where two may hold together
/// than every one that was there before it was asked for; and a record that checks fences refuses
/// nobody who holds the lock.
pub(super) fn check(events: &[Event]) -> Vec<Violation> {
    let mut spans = spans(events);
    spans.retain(|span| !span.excused && !span.is_stillborn());
    let mut violations = Vec::new();
    for (index, span) in spans.iter().enumerate() {
        let earlier = spans[..index].iter().filter(|it| precedes(it, span));
        let greatest = earlier.max_by_key(|it| it.fence);
        let Some(before) = greatest.filter(|it| span.fence <= it.fence) else {
            continue;
        };
        let text = format!(
            "key {}: h{} was granted fence {} after h{} had {}",
            span.key, span.hold, span.fence, before.hold, before.fence
        );
        violations.push(Violation {
            invariant: "I2",
            at: span.granted,
            text,
        });
    }
    for event in events {
        let (What::Wrote {
            hold,
            key,
            accepted: false,
            ..
        }
        | What::Read {
            hold,
            key,
            accepted: false,
            ..
        }) = event.what
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

/// Whether the fence of `later` must be greater. The members see two attempts in the order in which
/// they are granted if these cannot hold together, and else if the one began after the other.
fn precedes(earlier: &Span, later: &Span) -> bool {
    let together = may_stand_together(&[earlier.mode, later.mode]);
    earlier.key == later.key && (!together || earlier.granted < later.sent)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use leasehold::Mode;

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
    fn a_reader_that_asks_later_has_a_greater_fence() {
        let second = |mode, asks| {
            let first = in_mode(Mode::Shared, grant_with_fence(1, 0, 0, 1_000, 2_000, 9));
            let second = in_mode(mode, grant_with_fence(2, 1, 0, 3_000, 4_000, 8));
            let mut events = [first, second].concat();
            events[2].at = Duration::from_millis(asks);
            check(&events).len()
        };
        assert_eq!(second(Mode::Shared, 900), 0, "both were under way");
        assert_eq!(second(Mode::Shared, 1_100), 1);
        assert_eq!(second(Mode::Exclusive, 900), 1, "it had to wait");
    }

    #[test]
    fn what_counts_is_when_the_attempt_began_that_was_granted() {
        let mut events = [
            in_mode(Mode::Shared, vec![asked(500, 2, 1, 0)]),
            in_mode(Mode::Shared, grant_with_fence(1, 0, 0, 1_000, 2_000, 9)),
            vec![sent(1_100, 1, 2), granted(3_000, 2, 4_000)],
        ]
        .concat();
        assert_eq!(check(&events).len(), 1);
        events.remove(3);
        assert_eq!(check(&events).len(), 0);
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
        let read = What::Read {
            hold: 1,
            key: 0,
            fence: 7,
            accepted: false,
        };
        let events = [grant(1, 0, 0, 1_000, 2_000), vec![event(1_500, read)]];
        assert_eq!(check(&events.concat()).len(), 1);
    }
}
