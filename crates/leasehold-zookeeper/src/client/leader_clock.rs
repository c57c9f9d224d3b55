//! What a client knows of the leader's wall clock: pure.
//!
//! A server's clock may be stepped, and the next leader has another clock. So an earlier answer is a hint: it says how
//! long to wait, and that something is not over yet. Only a fresh answer may say that something is over.
#![deny(clippy::disallowed_types)]

use std::time::Duration;

use leasehold::clock::BootInstant;

/// The wall clock of the leader, in milliseconds since 1970, as its last answer showed it.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct LeaderClock {
    /// What it showed, and when that answer was there.
    last: Option<(i64, BootInstant)>,
}

impl LeaderClock {
    /// Replaces what earlier answers said. A maximum would outlast a step back.
    pub(super) fn learn(&mut self, millis: i64, answered: BootInstant) {
        self.last = Some((millis, answered));
    }

    /// Returns about what the clock shows at `now`; `None` without an answer.
    pub(crate) fn about(self, now: BootInstant) -> Option<i64> {
        let (millis, answered) = self.last?;
        let age = i64::try_from(now.since(answered).as_millis()).unwrap_or(i64::MAX);
        Some(millis.saturating_add(age))
    }

    /// Returns about what the clock shows, if a recent answer says that `end` has not come. Otherwise the client must ask.
    pub(crate) fn before(self, end: i64, now: BootInstant) -> Option<i64> {
        let (_, answered) = self.last?;
        let is_recent = now.since(answered) <= Self::RECENT;
        self.about(now).filter(|now| is_recent && *now < end)
    }

    /// How long an answer may say that something is not over. A step of the clock is noticed this late.
    pub(crate) const RECENT: Duration = Duration::from_secs(10);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> BootInstant {
        BootInstant::from_nanos(seconds * 1_000_000_000)
    }

    #[test]
    fn hint_never_says_that_something_is_over() {
        let mut clock = LeaderClock::default();
        assert_eq!(clock.before(i64::MAX, at(0)), None);
        clock.learn(1_000_000, at(5));
        assert_eq!(clock.before(1_002_000, at(6)), Some(1_001_000));
        assert_eq!(clock.before(1_001_000, at(6)), None, "over: ask");
        assert_eq!(clock.before(i64::MAX, at(16)), None, "old: ask");
        assert_eq!(clock.about(at(16)), Some(1_011_000));
    }

    #[test]
    fn step_back_replaces_the_greater_time() {
        let mut clock = LeaderClock::default();
        clock.learn(9_000_000, at(1));
        clock.learn(1_000_000, at(2));
        assert_eq!(clock.before(2_000_000, at(2)), Some(1_000_000));
    }
}
