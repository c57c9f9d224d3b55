use super::Violation;
use super::spans::{Span, spans};
use crate::sim::history::Event;

/// I1: at no instant are two guards of one key valid.
pub(super) fn check(events: &[Event]) -> Vec<Violation> {
    let mut spans = spans(events);
    spans.retain(|span| !span.excused && !span.is_stillborn());
    let mut violations = Vec::new();
    for (index, earlier) in spans.iter().enumerate() {
        let later = spans[index + 1..].iter();
        let both = later.filter(|later| later.key == earlier.key && later.granted < earlier.end);
        violations.extend(both.map(|later| overlap(earlier, later)));
    }
    violations
}

fn overlap(earlier: &Span, later: &Span) -> Violation {
    Violation {
        invariant: "I1",
        at: later.granted,
        text: format!(
            "key {}: h{} of client {} was granted while h{} of client {} was valid until {:.3}",
            later.key,
            later.hold,
            later.client,
            earlier.hold,
            earlier.client,
            earlier.end.as_secs_f64()
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sim::checks::invented::*;

    #[test]
    fn two_valid_guards_of_one_key_are_rejected() {
        let mut events = [grant(1, 0, 0, 1_000, 3_000), grant(2, 1, 0, 2_000, 5_000)].concat();
        assert_eq!(check(&events).len(), 1);
        events.insert(2, lost(1_500, 1));
        assert!(
            check(&events).is_empty(),
            "the first one had said that it is lost"
        );
    }

    #[test]
    fn a_guard_counts_until_its_latest_deadline() {
        let moved = moved(2_500, 1, 4_000);
        let events = [
            grant(1, 0, 0, 1_000, 3_000),
            vec![moved],
            grant(2, 1, 0, 3_500, 5_000),
        ];
        assert_eq!(check(&events.concat()).len(), 1);
        let other_key = [grant(1, 0, 0, 1_000, 3_000), grant(2, 1, 1, 2_000, 5_000)];
        assert!(check(&other_key.concat()).is_empty());
    }

    #[test]
    fn only_a_clock_that_stood_still_excuses() {
        for frozen in [false, true] {
            let pause = vec![paused(1_500, 0, frozen)];
            let events = [
                grant(1, 0, 0, 1_000, 3_000),
                pause,
                grant(2, 1, 0, 2_000, 5_000),
            ];
            assert_eq!(check(&events.concat()).is_empty(), frozen);
        }
    }
}
