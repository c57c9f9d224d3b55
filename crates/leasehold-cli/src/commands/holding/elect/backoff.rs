use std::time::Duration;

/// The pauses before a lost leader campaigns again: longer each time, so that a broken store gets few
/// requests. Pure.
#[derive(Debug, Default)]
pub(super) struct Backoff {
    /// The number of losses in quick succession.
    losses: u32,
}

impl Backoff {
    /// The next pause, after a leadership that lasted for `led`; `random` spreads it, so that candidates that lost
    /// their store together do not come back together.
    pub(super) fn after(&mut self, led: Duration, random: u64) -> Duration {
        if led >= LONG {
            self.losses = 0;
        }
        let ceiling = LONGEST.min(FIRST.saturating_mul(1 << self.losses.min(16)));
        self.losses = self.losses.saturating_add(1);
        let half = ceiling / 2;
        half + Duration::from_millis(random % (millis(half) + 1))
    }
}

fn millis(span: Duration) -> u64 {
    u64::try_from(span.as_millis()).unwrap_or(u64::MAX - 1)
}

const FIRST: Duration = Duration::from_secs(1);
const LONGEST: Duration = Duration::from_secs(30);
/// After a leadership of this length, the pauses begin with the shortest again.
const LONG: Duration = Duration::from_secs(60);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_up_to_a_random_ceiling() {
        for random in [0, 1, 250, u64::MAX] {
            let mut backoff = Backoff::default();
            for ceiling in [1, 2, 4, 8, 16, 30, 30] {
                let ceiling = Duration::from_secs(ceiling);
                let pause = backoff.after(Duration::ZERO, random);
                assert!(pause >= ceiling / 2 && pause <= ceiling, "{pause:?}");
            }
        }
        assert_eq!(Backoff::default().after(LONG, 500), FIRST);
        let mut many = Backoff { losses: u32::MAX };
        assert_eq!(many.after(Duration::ZERO, 0), LONGEST / 2);
    }

    #[test]
    fn who_led_for_long_begins_anew() {
        let mut backoff = Backoff::default();
        for _ in 0..9 {
            backoff.after(Duration::from_secs(59), 0);
        }
        assert_eq!(backoff.after(Duration::from_secs(59), 0), LONGEST / 2);
        assert_eq!(backoff.after(LONG, 0), FIRST / 2);
        assert_eq!(backoff.after(Duration::ZERO, 0), FIRST);
    }
}
