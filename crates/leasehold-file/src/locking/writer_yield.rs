//! How long a claim that shares the lock yields to a waiting writer. Pure logic, without I/O.

use std::time::Duration;

use leasehold::clock::BootInstant;

use crate::locking::occupancy::Present;

/// The state of one waiter, which limits how long it yields. Otherwise an endless stream of writers
/// would keep it waiting indefinitely, and a single writer that does not take the free lock, for
/// example because its process is stopped, would keep out all others.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct WriterYield {
    /// A writer had its turn meanwhile, or could have had it.
    is_paid: bool,
    /// When the lock was first seen without a holder.
    unused_since: Option<BootInstant>,
}

impl WriterYield {
    /// Returns the state of a waiter that has already met a writer, or that came before every writer
    /// it will meet.
    pub(crate) fn paid() -> Self {
        Self {
            is_paid: true,
            unused_since: None,
        }
    }

    /// Returns whether it yields to a waiting writer while the lock is held as `present` says.
    pub(crate) fn stands_back(&mut self, present: Present, now: BootInstant) -> bool {
        match present {
            Present::Writer => self.is_paid = true,
            Present::Sharers => self.unused_since = None,
            Present::Nobody => {
                let since = *self.unused_since.get_or_insert(now);
                self.is_paid |= now.since(since) >= LONGEST;
            }
        }
        !self.is_paid
    }
}

/// How long a reader waits for a writer that does not come.
const LONGEST: Duration = Duration::from_secs(1);

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns whether the waiter still yields after it found these states, at these milliseconds.
    fn stands_back(found: &[(u64, Present)]) -> bool {
        let mut writer_yield = WriterYield::default();
        let mut stands_back = true;
        for (millis, present) in found {
            let now = BootInstant::from_nanos(0) + Duration::from_millis(*millis);
            stands_back = writer_yield.stands_back(*present, now);
        }
        stands_back
    }

    #[test]
    fn reader_yields_until_a_writer_was_served() {
        use Present::{Nobody, Sharers, Writer};
        assert!(stands_back(&[(0, Sharers), (90_000, Sharers)]));
        assert!(stands_back(&[(0, Nobody), (900, Nobody)]));
        assert!(!stands_back(&[(0, Sharers), (10, Writer)]));
        assert!(!stands_back(&[(0, Sharers), (10, Writer), (20, Sharers)]));
    }

    #[test]
    fn reader_stops_yielding_to_absent_writer() {
        use Present::{Nobody, Sharers};
        assert!(!stands_back(&[(0, Nobody), (1000, Nobody)]));
        assert!(!stands_back(&[(0, Nobody), (500, Nobody), (1500, Nobody)]));
        // Another holder that comes and goes excuses the writer for not taking the lock.
        let between = [(0, Nobody), (600, Sharers), (700, Nobody), (1600, Nobody)];
        assert!(stands_back(&between));
        assert!(!stands_back(&[&between[..], &[(1700, Nobody)]].concat()));
    }
}
