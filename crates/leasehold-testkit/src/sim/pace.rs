use std::time::Duration;

use super::chance::Chance;
use super::history::Manner;
use super::plan::Plan;

/// When the programs of a world ask, and how long they hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pace {
    /// Each as it likes.
    Usual,
    /// All at the same instants, and most without waiting: no two members need see the same one first.
    Rushes,
    /// As they like, and often die while they hold.
    Perils,
    /// For so long that a queue forms, and nothing else happens while it is judged who is let in.
    Leisure,
    /// Many of one client, and again and again, each for a moment: leases go over among them.
    Crowds,
}

impl Pace {
    /// How long a program waits at `now` before it asks, if its pace says so.
    pub(crate) fn pause(self, now: Duration, chance: &Chance) -> Option<Duration> {
        match self {
            Self::Rushes => {}
            Self::Crowds => return Some(chance.millis(0, 150)),
            Self::Usual | Self::Perils | Self::Leisure => return None,
        }
        let (now, bell) = (now.as_micros() as u64, BELL.as_micros() as u64);
        let rings = BELL - Duration::from_micros(now % bell);
        // Not all of them each time.
        let later = BELL * u32::from(chance.percent(30));
        Some(rings + later + chance.millis(0, 3))
    }

    /// How long a lock is held, if its pace says so.
    pub(crate) fn span(self, chance: &Chance) -> Option<Duration> {
        match self {
            Self::Usual | Self::Perils => None,
            Self::Rushes => Some(chance.millis(100, 1_300)),
            Self::Leisure => Some(chance.millis(700, 3_000)),
            Self::Crowds => Some(chance.millis(0, 60)),
        }
    }

    /// The longest from one look at a lock that is held to the next.
    pub(crate) fn step_max(self) -> u64 {
        if self == Self::Crowds { 40 } else { 700 }
    }

    /// For how long a lock is taken, if its pace says so: whoever wants another lease than the one
    /// before has none left to it.
    pub(crate) fn ttl(self) -> Option<Duration> {
        (self == Self::Crowds).then_some(Plan::MAX_TTL)
    }

    /// How a lock is asked for, if its pace says so.
    pub(crate) fn manner(self, chance: &Chance) -> Option<Manner> {
        match self {
            Self::Usual | Self::Perils => None,
            Self::Rushes => {
                Some(*chance.pick(&[Manner::Once, Manner::Once, Manner::Barging, Manner::Limited]))
            }
            Self::Leisure | Self::Crowds => {
                Some(*chance.pick(&[Manner::Patient, Manner::Patient, Manner::Limited]))
            }
        }
    }
}

/// How often all ask.
const BELL: Duration = Duration::from_millis(1_500);
