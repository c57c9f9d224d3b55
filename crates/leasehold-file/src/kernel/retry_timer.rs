//! When a waiter tries again. Pure logic, without I/O.

use std::time::Duration;

use leasehold::clock::BootInstant;

/// The instants at which one waiter tries, from what it hears and when.
///
/// The kernel reports a close just before it frees the lock of the closed file, so the first try may
/// come too early. A few more tries follow, with growing pauses. Without notifications, the waiter tries
/// only at the floor interval, to find locks that a holder released without closing the file.
#[derive(Debug)]
pub(crate) struct RetryTimer {
    /// How many of [`FOLLOWING`] were made since the last notification.
    followed: usize,
    /// Until when the tries for past notifications would last at the rate that is kept in the long
    /// run. They may be ahead of that rate by [`AHEAD`].
    spread_until: BootInstant,
}

impl RetryTimer {
    /// Creates the timer of a waiter that begins to watch the file. It starts as if the file had just
    /// changed, because the kernel may have just reported a close without having freed the
    /// lock yet.
    pub(crate) fn new() -> Self {
        Self {
            followed: 0,
            spread_until: BootInstant::from_nanos(0),
        }
    }

    /// Returns when to try if nothing is reported from `now` on. The previous try has failed.
    pub(crate) fn without_notification(
        &mut self,
        now: BootInstant,
        floor: Duration,
    ) -> BootInstant {
        let following = FOLLOWING.get(self.followed);
        self.followed += usize::from(following.is_some());
        now + following.copied().unwrap_or(floor)
    }

    /// Returns when to try after a notification at `now`: at once, unless frequent notifications in
    /// vain would keep the machine busy.
    pub(crate) fn notified(&mut self, now: BootInstant) -> BootInstant {
        self.followed = 0;
        self.spread_until = self.spread_until.max(now) + APART;
        now.max(self.spread_until - AHEAD)
    }
}

/// The pauses before the tries that follow the first one. Timers of the runtime count whole
/// milliseconds.
const FOLLOWING: [Duration; 3] = [
    Duration::from_millis(1),
    Duration::from_millis(4),
    Duration::from_millis(16),
];

/// How far apart a waiter's tries are in the long run, if notifications never stop.
const APART: Duration = Duration::from_millis(10);

/// Allows fifty tries at once, because contenders may pass a lock on quickly.
const AHEAD: Duration = Duration::from_millis(500);

#[cfg(test)]
mod tests {
    use super::*;

    const FLOOR: Duration = Duration::from_secs(1);

    fn at(millis: u64) -> BootInstant {
        BootInstant::from_nanos(0) + Duration::from_millis(1000 + millis)
    }

    #[test]
    fn few_retries_follow_a_notification() {
        let mut retry_timer = RetryTimer::new();
        for _ in 0..2 {
            let pauses: Vec<_> = (0..5)
                .map(|_| {
                    retry_timer
                        .without_notification(at(0), FLOOR)
                        .since(at(0))
                        .as_millis()
                })
                .collect();
            assert_eq!(pauses, [1, 4, 16, 1000, 1000]);
            assert_eq!(retry_timer.notified(at(0)), at(0));
        }
    }

    #[test]
    fn endless_words_are_answered_at_a_bounded_rate() {
        let mut retry_timer = RetryTimer::new();
        let mut now = at(0);
        let mut tries = 0;
        while now < at(10_000) {
            // The next notification is there as soon as the previous try has failed.
            now = retry_timer
                .notified(now)
                .max(now + Duration::from_micros(50));
            tries += 1;
        }
        assert!((1000..=1060).contains(&tries), "{tries} in ten seconds");
    }

    #[test]
    fn occasional_notifications_cause_an_immediate_retry() {
        let mut retry_timer = RetryTimer::new();
        for word in 0..1000 {
            let now = at(20 * word);
            assert_eq!(retry_timer.notified(now), now);
        }
        let quickly = at(20_000);
        for _ in 0..50 {
            assert_eq!(retry_timer.notified(quickly), quickly);
        }
        assert!(retry_timer.notified(quickly) > quickly);
    }
}
