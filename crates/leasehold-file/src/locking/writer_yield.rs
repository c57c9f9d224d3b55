//! How long a request that shares the lock yields to a waiting writer. Pure logic, without I/O.

use std::time::Duration;

use leasehold::clock::BootInstant;

use crate::locking::occupancy::Present;

/// The state of one waiter, which limits how long it yields. Otherwise an endless stream of writers
/// would keep it waiting indefinitely, and a single writer that does not take the free lock, for
/// example because its process is stopped, would keep out all others.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct WriterYield {
    /// A writer had its turn meanwhile, or could have had it.
    is_done: bool,
    /// When the lock was first seen without a holder.
    unused_since: Option<BootInstant>,
}

impl WriterYield {
    /// Returns the state of a waiter that has already met a writer, or that came before every writer
    /// it will meet.
    pub(crate) fn done() -> Self {
        Self {
            is_done: true,
            unused_since: None,
        }
    }

    /// Returns whether a writer had its turn, so that the waiter yields to no other.
    pub(crate) fn is_done(&self) -> bool {
        self.is_done
    }

    /// Returns whether it yields to a waiting writer while the lock is held as `present` says.
    pub(crate) fn yields(&mut self, present: Present, now: BootInstant) -> bool {
        match present {
            Present::Writer => self.is_done = true,
            Present::Sharers => self.unused_since = None,
            Present::NoHolder => {
                let since = *self.unused_since.get_or_insert(now);
                self.is_done |= now.since(since) >= LONGEST;
            }
        }
        !self.is_done
    }
}

/// How long a reader waits for a writer that does not come.
const LONGEST: Duration = Duration::from_secs(1);

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns whether the waiter still yields after it found these states, at these milliseconds.
    fn yields(found: &[(u64, Present)]) -> bool {
        let mut writer_yield = WriterYield::default();
        let mut yields = true;
        for (millis, present) in found {
            let now = BootInstant::from_nanos(0) + Duration::from_millis(*millis);
            yields = writer_yield.yields(*present, now);
        }
        yields
    }

    #[test]
    fn reader_yields_until_a_writer_was_served() {
        use Present::{NoHolder, Sharers, Writer};
        assert!(yields(&[(0, Sharers), (90_000, Sharers)]));
        assert!(yields(&[(0, NoHolder), (900, NoHolder)]));
        assert!(!yields(&[(0, Sharers), (10, Writer)]));
        assert!(!yields(&[(0, Sharers), (10, Writer), (20, Sharers)]));
    }

    #[test]
    fn reader_stops_yielding_to_absent_writer() {
        use Present::{NoHolder, Sharers};
        assert!(!yields(&[(0, NoHolder), (1000, NoHolder)]));
        assert!(!yields(&[(0, NoHolder), (500, NoHolder), (1500, NoHolder)]));
        // Another holder that comes and goes excuses the writer for not taking the lock.
        let between = [
            (0, NoHolder),
            (600, Sharers),
            (700, NoHolder),
            (1600, NoHolder),
        ];
        assert!(yields(&between));
        assert!(!yields(&[&between[..], &[(1700, NoHolder)]].concat()));
    }
}
