//! Which counters need not be given their rest time again so soon.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use leasehold::clock::BootInstant;

use crate::connection::Writing;
use crate::wire::{REST_MS, Records};

/// The locks whose counters were given their rest time lately, on one connection.
///
/// A server that restarts forgets its counters and its connections together. One whose data are thrown
/// away as it runs shows another mark; where it has none, nobody knows of it before
/// [`AGAIN_AFTER`] is over.
#[derive(Debug, Default)]
pub(crate) struct Rests(Mutex<HashMap<String, BootInstant>>);

/// So much shorter the rest of a counter may be, measured from the last use of its lock.
const AGAIN_AFTER: Duration = Duration::from_secs(10 * 60);

/// How many counters are remembered; the others are given their rest time at each use.
const REMEMBERED_MAX: usize = 4096;

impl Rests {
    /// Whether the rest time of a lock's counter is to begin anew. That counts as done: who asks
    /// [has it sent](renew).
    pub(crate) fn is_due(&self, records: &Records<'_>, now: BootInstant) -> bool {
        let mut rests = self.rests();
        let lately = |since: &BootInstant| now.since(*since) < AGAIN_AFTER;
        if rests.get(records.lock()).is_some_and(lately) {
            return false;
        }
        if rests.len() >= REMEMBERED_MAX {
            rests.retain(|_, since| lately(since));
        }
        if rests.len() < REMEMBERED_MAX {
            rests.insert(records.lock().to_owned(), now);
        }
        true
    }

    /// The lock has no counter yet: one that it gets from now on is given its rest time.
    pub(crate) fn has_none(&self, records: &Records<'_>) {
        self.rests().remove(records.lock());
    }

    /// The counters are gone.
    pub(crate) fn forget(&self) {
        self.rests().clear();
    }

    fn rests(&self) -> MutexGuard<'_, HashMap<String, BootInstant>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Lets the rest time of a lock's counter begin anew.
pub(crate) fn renew(out: &mut Writing<'_>, records: &Records<'_>) {
    let renewal = out.command("PEXPIRE").joined(&records.fence());
    renewal.number(REST_MS);
}

#[cfg(test)]
mod tests {
    use leasehold::clock::{Clock as _, SystemClock};

    use super::*;

    fn lock(name: &str) -> Records<'_> {
        Records::at(name)
    }

    #[test]
    fn a_counter_is_given_its_rest_once_in_a_while() {
        let (rests, began) = (Rests::default(), SystemClock.now());
        let is_due = |name: &str, after: Duration| rests.is_due(&lock(name), began + after);
        let moment = Duration::from_millis(1);
        assert!(is_due("a", Duration::ZERO));
        assert!(!is_due("a", AGAIN_AFTER - moment));
        assert!(is_due("b", AGAIN_AFTER - moment));
        assert!(is_due("a", AGAIN_AFTER));
        assert!(!is_due("a", AGAIN_AFTER + moment));
        rests.has_none(&lock("a"));
        assert!(is_due("a", AGAIN_AFTER + moment));
        assert!(!is_due("a", AGAIN_AFTER + moment));
        rests.forget();
        assert!(is_due("a", AGAIN_AFTER + moment));
    }

    #[test]
    fn more_counters_than_are_remembered_are_given_their_rest_each_time() {
        let (rests, began) = (Rests::default(), SystemClock.now());
        for number in 0..REMEMBERED_MAX {
            assert!(rests.is_due(&lock(&number.to_string()), began));
        }
        for _ in 0..2 {
            assert!(rests.is_due(&lock("one more"), began));
        }
        assert!(!rests.is_due(&lock("0"), began));
        let later = began + AGAIN_AFTER;
        assert!(rests.is_due(&lock("one more"), later));
        assert!(!rests.is_due(&lock("one more"), later));
    }
}
