#![deny(clippy::disallowed_types)]

use std::time::Duration;

/// Returns the pause before attempt number `attempt` + 1, after a failed one. It grows with the number of
/// failures, and `random` spreads it, so that clients that collided do not collide again.
///
/// The pause lies between 5 ms and a ceiling that doubles from 50 ms up to 400 ms.
pub(crate) fn pause_after(attempt: u32, random: u64) -> Duration {
    let ceiling = FIRST_CEILING_MS << attempt.min(MAX_DOUBLINGS);
    Duration::from_millis(LEAST_MS + random % (ceiling - LEAST_MS + 1))
}

const LEAST_MS: u64 = 5;
const FIRST_CEILING_MS: u64 = 50;
const MAX_DOUBLINGS: u32 = 3;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_between_floor_and_ceiling() {
        for attempt in [0, 1, 3, 4, u32::MAX] {
            for random in [0, 1, 45, 46, u64::MAX] {
                let pause = pause_after(attempt, random).as_millis();
                assert!((5..=400).contains(&pause), "{attempt} {random}: {pause}");
            }
        }
        assert_eq!(pause_after(0, 45), Duration::from_millis(50));
        assert_eq!(pause_after(9, 395), Duration::from_millis(400));
    }
}
