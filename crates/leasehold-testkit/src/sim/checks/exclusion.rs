use super::Violation;
use super::company::may_stand_together;
use super::spans::{Span, spans};
use crate::sim::history::Event;

/// I1: at no instant are two guards of one key valid, unless both are shared, or both permits of one
/// number; nor more permits than that number. Nor is one granted before the delay of another is over
/// that was lost, or whose client died.
pub(super) fn check(events: &[Event]) -> Vec<Violation> {
    let mut spans = spans(events);
    spans.retain(|span| !span.excused && !span.is_stillborn());
    let mut violations = Vec::new();
    for (index, later) in spans.iter().enumerate() {
        let earlier = spans[..index].iter();
        let valid = earlier.filter(|it| it.key == later.key && later.granted < it.shut_until);
        let valid: Vec<&Span> = valid.collect();
        let mode_of = |it: &Span| it.mode_at(later.granted);
        let clashes = |it: &&&Span| !may_stand_together(&[mode_of(it), later.mode]);
        let clashing: Vec<_> = valid.iter().filter(clashes).collect();
        violations.extend(clashing.iter().map(|earlier| overlap(earlier, later)));
        let modes = valid.iter().map(|it| mode_of(it)).chain([later.mode]);
        if clashing.is_empty() && !may_stand_together(&modes.collect::<Vec<_>>()) {
            violations.push(too_many(&valid, later));
        }
    }
    violations
}

fn too_many(valid: &[&Span], later: &Span) -> Violation {
    let holds: Vec<_> = valid.iter().map(|it| format!("h{}", it.hold)).collect();
    Violation {
        invariant: "I1",
        at: later.granted,
        text: format!(
            "key {}: h{} of client {} was granted a {} beside {}",
            later.key,
            later.hold,
            later.client,
            later.mode,
            holds.join(", ")
        ),
    }
}

fn overlap(earlier: &Span, later: &Span) -> Violation {
    Violation {
        invariant: "I1",
        at: later.granted,
        text: format!(
            "key {}: h{} of client {} was granted while h{} of client {} was valid until {:.3}, and the \
             lock shut until {:.3}",
            later.key,
            later.hold,
            later.client,
            earlier.hold,
            earlier.client,
            earlier.end.as_secs_f64(),
            earlier.shut_until.as_secs_f64()
        ),
    }
}

#[cfg(test)]
mod tests {
    use leasehold::{Mode, Permits};

    use super::*;
    use crate::sim::checks::invented::*;
    use crate::sim::history::What;

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
    fn only_readers_are_valid_together() {
        let (alone, shared) = (Mode::Exclusive, Mode::Shared);
        let together = |modes: &[Mode]| {
            let grants = (1_u64..)
                .zip(modes)
                .map(|(n, mode)| in_mode(*mode, grant(n as usize, 0, 0, 1_000 + n, 5_000)));
            check(&grants.collect::<Vec<_>>().concat()).len()
        };
        assert_eq!(together(&[shared, shared, shared]), 0);
        assert_eq!(together(&[shared, shared, alone]), 2);
        assert_eq!(together(&[alone, shared]), 1);
    }

    #[test]
    fn who_goes_on_as_a_reader_lets_readers_in_and_no_writer() {
        let joins = |mode, millis| {
            let events = [
                grant(1, 0, 0, 1_000, 5_000),
                vec![event(2_000, What::Downgraded { hold: 1 })],
                in_mode(mode, grant(2, 1, 0, millis, 9_000)),
            ];
            let mut events = events.concat();
            events.sort_by_key(|event| event.at);
            check(&events).len()
        };
        assert_eq!(
            (joins(Mode::Shared, 1_999), joins(Mode::Shared, 2_000)),
            (1, 0)
        );
        assert_eq!(joins(Mode::Exclusive, 2_000), 1);
        assert_eq!(joins(Mode::Exclusive, 5_000), 0);
    }

    #[test]
    fn no_more_permits_are_valid_than_there_are() {
        let permit = |count| Mode::Permit(Permits::new(count).unwrap());
        let third = |mode, millis| {
            let events = [
                in_mode(permit(2), grant(1, 0, 0, 1_000, 3_000)),
                in_mode(permit(2), grant(2, 1, 0, 1_500, 5_000)),
                in_mode(mode, grant(3, 2, 0, millis, 9_000)),
            ];
            check(&events.concat()).len()
        };
        assert_eq!((third(permit(2), 2_900), third(permit(2), 3_000)), (1, 0));
        assert_eq!(third(permit(3), 3_000), 1);
        assert_eq!(third(Mode::Shared, 3_000), 1);
    }

    #[test]
    fn a_lock_with_a_delay_is_shut_after_an_unclean_end_alone() {
        let delayed = |end: Event, millis| {
            let events = [
                with_delay(grant(1, 0, 0, 1_000, 3_000)),
                vec![end],
                grant(2, 1, 0, millis, 9_000),
            ];
            check(&events.concat()).len()
        };
        let unclean = [lost(1_500, 1), crashed(1_500, 0, true), ended(3_000, 1)];
        for end in unclean {
            let shut = (delayed(end.clone(), 3_999), delayed(end.clone(), 4_000));
            assert_eq!(shut, (1, 0), "{end}");
        }
        assert_eq!(delayed(ended(1_500, 1), 1_500), 0);
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
