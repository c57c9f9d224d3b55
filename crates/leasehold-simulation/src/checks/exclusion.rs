use super::Violation;
use super::facts::{Facts, are_compatible};
use crate::history::Manner;

/// I1: at no instant are two guards of a lock valid that exclude each other, nor more guards than there are
/// permits. No guard is granted before the lock delay of another one ends.
pub(super) fn exclusion(facts: &Facts<'_>) -> Vec<Violation> {
    let promises = facts.promises();
    let mut violations = Vec::new();
    for (index, (later, span)) in promises.iter().enumerate() {
        let earlier = promises[..index].iter().filter(|(it, other)| {
            it.asked.lock == later.asked.lock && span.granted < it.closed_until(other)
        });
        let earlier: Vec<_> = earlier.collect();
        let modes = earlier.iter().map(|(it, _)| it.mode(span.granted));
        let modes: Vec<_> = modes.chain([later.asked.mode]).collect();
        if !are_compatible(&modes) {
            let beside: Vec<_> = earlier
                .iter()
                .map(|(it, other)| format!("w{} until {}", it.asked.wait, it.closed_until(other)))
                .collect();
            violations.push(Violation {
                invariant: "I1",
                check: "exclusion",
                at: span.granted,
                text: format!(
                    "lock {}: w{} was granted {} beside {}",
                    later.asked.lock,
                    later.asked.wait,
                    later.asked.mode,
                    beside.join(", ")
                ),
            });
        }
    }
    violations
}

/// I2: a later grant has a greater fence. Co-holders each have their own fence. Their fences are in order
/// if the later one asked after the earlier one was granted.
pub(super) fn fence_order(facts: &Facts<'_>) -> Vec<Violation> {
    let mut promises = facts.promises();
    promises.retain(|(it, _)| it.asked.manner != Manner::Foreign);
    let mut violations = Vec::new();
    for (index, (later, span)) in promises.iter().enumerate() {
        let wrong = promises[..index].iter().find(|(it, other)| {
            let may_meet =
                are_compatible(&[it.asked.mode, later.asked.mode]) || other.downgraded.is_some();
            let is_before = !may_meet || other.granted < later.at;
            it.asked.lock == later.asked.lock
                && (other.fence == span.fence || is_before && other.fence > span.fence)
        });
        if let Some((earlier, other)) = wrong {
            violations.push(Violation {
                invariant: "I2",
                check: "fence order",
                at: span.granted,
                text: format!(
                    "lock {}: w{} was granted fence {} after w{} had {}",
                    later.asked.lock, later.asked.wait, span.fence, earlier.asked.wait, other.fence
                ),
            });
        }
    }
    violations
}

#[cfg(test)]
mod tests {
    use leasehold::Mode;
    use leasehold::store::Permits;

    use super::*;
    use crate::checks::invented::*;
    use crate::history::What;

    #[test]
    fn two_valid_guards_are_rejected() {
        let both = |until| {
            let events = [grant(1, 0, 1_000, until), grant(2, 1, 2_000, 5_000)];
            judge(exclusion, events.concat())
        };
        assert_eq!((both(2_001), both(2_000)), (1, 0));
    }

    #[test]
    fn only_compatible_modes_hold_together() {
        let permit = Mode::Permit(Permits::new(2).unwrap());
        let together = |modes: &[Mode]| {
            let grants = modes.iter().enumerate();
            let grants =
                grants.map(|(n, mode)| in_mode(*mode, grant(n, n, 1_000 + n as u64, 5_000)));
            judge(exclusion, grants.collect::<Vec<_>>().concat())
        };
        assert_eq!(together(&[Mode::Shared; 3]), 0);
        assert_eq!(together(&[Mode::Shared, Mode::Exclusive]), 1);
        assert_eq!((together(&[permit; 2]), together(&[permit; 3])), (0, 1));
    }

    #[test]
    fn lock_delay_is_over_before_the_next_grant() {
        let after = |millis, end: What| {
            let mut first = grant(1, 0, 1_000, 2_000);
            for event in &mut first {
                if let What::Asked(asked) = &mut event.what {
                    asked.delay = 1_000_000;
                }
            }
            let events = [first, vec![event(1_500, end)], grant(2, 1, millis, 9_000)];
            judge(exclusion, events.concat())
        };
        let lost = || What::Lost { wait: 1 };
        assert_eq!((after(2_999, lost()), after(3_000, lost())), (1, 0));
        assert_eq!(after(1_501, What::Ended { wait: 1 }), 0);
    }

    #[test]
    fn fences_that_do_not_grow_are_rejected() {
        let order = |mode, fences: [u64; 2]| {
            let events = [
                fenced(fences[0], in_mode(mode, grant(1, 0, 1_000, 2_000))),
                fenced(fences[1], in_mode(mode, grant(2, 1, 3_000, 4_000))),
            ];
            judge(fence_order, events.concat())
        };
        for mode in [Mode::Exclusive, Mode::Shared] {
            assert_eq!(order(mode, [1, 2]), 0);
            assert_eq!((order(mode, [2, 1]), order(mode, [2, 2])), (1, 1));
        }
    }
}
