//! When a waiter tries again: pure.

use std::time::Duration;

use leasehold::clock::BootInstant;

/// The instants at which one waiter tries, from what it hears and when.
///
/// The kernel tells of a close just before it frees the lock of the closed file, so the try that
/// follows may come too early: a few more follow it, with growing pauses. Without any word it
/// tries at the floor alone, for holders that give a lock back and keep the file open.
#[derive(Debug)]
pub(crate) struct Rhythm {
    /// How many of [`FOLLOWING`] were made since the last word.
    followed: usize,
    /// Until when the tries that words called for would last at the rate that is kept in the long
    /// run: they may be ahead of it by [`AHEAD`].
    spread_until: BootInstant,
}

impl Rhythm {
    /// Of a waiter that begins to listen: as if it had just heard something, since what was told
    /// just before may still be to come true.
    pub(crate) fn new() -> Self {
        Self {
            followed: 0,
            spread_until: BootInstant::from_nanos(0),
        }
    }

    /// When to try if nothing is heard from `now` on, the try before having failed.
    pub(crate) fn unheard(&mut self, now: BootInstant, floor: Duration) -> BootInstant {
        let following = FOLLOWING.get(self.followed);
        self.followed += usize::from(following.is_some());
        now + following.copied().unwrap_or(floor)
    }

    /// When to try after something was heard at `now`: at once, unless so much is heard, and all
    /// of it in vain, that trying each time would keep the machine busy.
    pub(crate) fn heard(&mut self, now: BootInstant) -> BootInstant {
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

/// How far apart a waiter's tries lie in the long run, where words come without end.
const APART: Duration = Duration::from_millis(10);

/// Fifty tries may be made at once: contenders that pass a lock on quickly do so.
const AHEAD: Duration = Duration::from_millis(500);

#[cfg(test)]
mod tests {
    use super::*;

    const FLOOR: Duration = Duration::from_secs(1);

    fn at(millis: u64) -> BootInstant {
        BootInstant::from_nanos(0) + Duration::from_millis(1000 + millis)
    }

    #[test]
    fn a_few_tries_follow_a_word_and_then_the_floor() {
        let mut rhythm = Rhythm::new();
        for _ in 0..2 {
            let pauses: Vec<_> = (0..5)
                .map(|_| rhythm.unheard(at(0), FLOOR).since(at(0)).as_millis())
                .collect();
            assert_eq!(pauses, [1, 4, 16, 1000, 1000]);
            assert_eq!(rhythm.heard(at(0)), at(0));
        }
    }

    #[test]
    fn endless_words_are_answered_at_a_bounded_rate() {
        let mut rhythm = Rhythm::new();
        let mut now = at(0);
        let mut tries = 0;
        while now < at(10_000) {
            // The next word is there as soon as the try before failed.
            now = rhythm.heard(now).max(now + Duration::from_micros(50));
            tries += 1;
        }
        assert!((1000..=1060).contains(&tries), "{tries} in ten seconds");
    }

    #[test]
    fn words_that_come_now_and_then_are_answered_at_once() {
        let mut rhythm = Rhythm::new();
        for word in 0..1000 {
            let now = at(20 * word);
            assert_eq!(rhythm.heard(now), now);
        }
        let quickly = at(20_000);
        for _ in 0..50 {
            assert_eq!(rhythm.heard(quickly), quickly);
        }
        assert!(rhythm.heard(quickly) > quickly);
    }
}
