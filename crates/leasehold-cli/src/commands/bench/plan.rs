use std::time::Duration;

use leasehold::Key;
use leasehold::clock::{BootInstant, Clock as _, SystemClock};

use crate::output::failure::Failure;

/// What is measured, on which locks, and for how long.
#[derive(Debug)]
pub(super) struct Plan {
    pub(super) duration: Duration,
    pub(super) in_flight: usize,
    pub(super) ttl: Duration,
    /// The prefix of all names, random so that no other client uses them.
    pub(super) prefix: String,
}

/// One measurement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Part {
    RoundTrips,
    OneAtATime,
    InFlight,
    HandOver,
    Renewals,
}

impl Part {
    pub(super) const ALL: [Self; 5] = [
        Self::RoundTrips,
        Self::OneAtATime,
        Self::InFlight,
        Self::HandOver,
        Self::Renewals,
    ];

    /// How many hundredths of the whole it takes.
    fn share(self) -> u32 {
        match self {
            Self::RoundTrips => 10,
            Self::OneAtATime | Self::HandOver => 20,
            Self::InFlight | Self::Renewals => 25,
        }
    }
}

/// How many locks are held and renewed.
pub(super) const RENEWED: usize = 512;

impl Plan {
    pub(super) fn span(&self, part: Part) -> Duration {
        self.duration * part.share() / 100
    }

    /// When `part` is over if it begins now.
    pub(super) fn end(&self, part: Part) -> BootInstant {
        SystemClock.now() + self.span(part)
    }

    /// The lock that is taken again and again.
    pub(super) fn one(&self) -> String {
        format!("{}/one", self.prefix)
    }

    /// The lock that is handed over.
    pub(super) fn handed(&self) -> String {
        format!("{}/handed", self.prefix)
    }

    /// The locks that are taken many at once.
    pub(super) fn many(&self) -> impl Iterator<Item = String> {
        (0..self.in_flight).map(|number| format!("{}/many-{number}", self.prefix))
    }

    /// The locks that are renewed.
    pub(super) fn renewed(&self) -> impl Iterator<Item = String> {
        (0..RENEWED).map(|number| format!("{}/renewed-{number}", self.prefix))
    }

    /// All of them.
    pub(super) fn keys(&self) -> Result<Vec<Key>, Failure> {
        let names = [self.one(), self.handed()].into_iter();
        let names = names.chain(self.many()).chain(self.renewed());
        names.map(|name| Ok(Key::new(name)?)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_parts_make_up_the_whole() {
        let shares: u32 = Part::ALL.into_iter().map(Part::share).sum();
        assert_eq!(shares, 100);
    }

    #[test]
    fn every_lock_has_a_name_of_its_own() {
        let plan = Plan {
            duration: Duration::from_secs(4),
            in_flight: 3,
            ttl: Duration::from_secs(30),
            prefix: "leasehold-bench/7".into(),
        };
        assert_eq!(plan.span(Part::InFlight), Duration::from_secs(1));
        let mut keys = plan.keys().unwrap();
        keys.sort_unstable();
        keys.dedup();
        assert_eq!(keys.len(), 2 + 3 + RENEWED);
    }
}
