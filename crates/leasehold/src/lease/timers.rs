#![deny(clippy::disallowed_types)]

use std::collections::{BTreeMap, BTreeSet};

use crate::env::clock::BootInstant;

/// When the renewer must check which lease.
///
/// Each lease has its own timer, except leases that one message renews. Until its answer arrives, one
/// watch for all of them costs less. It ends with the soonest of their deadlines.
#[derive(Debug, Default)]
pub(crate) struct Timers {
    own: BTreeSet<(BootInstant, u64)>,
    watches: BTreeMap<Watch, Vec<u64>>,
    /// The number of watches so far, which numbers each new one.
    begun: u64,
}

/// The end of a watch, and its number.
pub(crate) type Watch = (BootInstant, u64);

impl Timers {
    /// Returns the time before which nothing is due.
    pub(crate) fn first(&self) -> Option<BootInstant> {
        let own = self.own.first().map(|&(at, _)| at);
        let watch = self.watches.first_key_value().map(|(&(at, _), _)| at);
        own.into_iter().chain(watch).min()
    }

    /// Moves the lease's own timer, which it keeps as `timer`, to `at`.
    pub(crate) fn set(
        &mut self,
        id: u64,
        timer: &mut Option<BootInstant>,
        at: Option<BootInstant>,
    ) {
        let before = std::mem::replace(timer, at);
        if before == at {
            return;
        }
        if let Some(before) = before {
            self.own.remove(&(before, id));
        }
        if let Some(at) = at {
            self.own.insert((at, id));
        }
    }

    /// Returns the leases whose own timers end by `then`, soonest first.
    pub(crate) fn due(&self, then: BootInstant) -> Vec<u64> {
        let due = self.own.iter().take_while(|&&(at, _)| at <= then);
        due.map(|&(_, id)| id).collect()
    }

    /// Adds one watch for all of `leases`, which need no timers of their own until it ends.
    pub(crate) fn watch(&mut self, end: BootInstant, leases: Vec<u64>) -> Watch {
        self.begun += 1;
        let watch = (end, self.begun);
        self.watches.insert(watch, leases);
        watch
    }

    /// Removes a watch before its end, or one that has already ended.
    pub(crate) fn unwatch(&mut self, watch: Watch) {
        self.watches.remove(&watch);
    }

    /// Ends the watches that end by `now`. Their leases need timers of their own from now on.
    pub(crate) fn end_watches(&mut self, now: BootInstant) -> Vec<u64> {
        let mut leases = Vec::new();
        while let Some(watch) = self.watches.first_entry()
            && watch.key().0 <= now
        {
            leases.append(&mut watch.remove());
        }
        leases
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(nanos: u64) -> BootInstant {
        BootInstant::from_nanos(nanos)
    }

    #[test]
    fn leases_are_due_in_timer_order() {
        let mut timers = Timers::default();
        let mut set = [None; 3];
        for (id, timer) in [(1, 30), (2, 10), (0, 20)] {
            timers.set(id, &mut set[id as usize], Some(at(timer)));
        }
        assert_eq!(timers.first(), Some(at(10)));
        assert!(timers.due(at(9)).is_empty());
        assert_eq!(timers.due(at(20)), [2, 0]);
        timers.set(2, &mut set[2], Some(at(40)));
        timers.set(0, &mut set[0], None);
        assert_eq!(timers.due(at(40)), [1, 2]);
        assert_eq!(set, [None, Some(at(30)), Some(at(40))]);
    }

    #[test]
    fn a_watch_ends_once() {
        let mut timers = Timers::default();
        timers.set(9, &mut None, Some(at(20)));
        let watches = [10, 10, 30].map(|end| timers.watch(at(end), vec![end, end + 1]));
        assert_eq!(timers.first(), Some(at(10)));
        timers.unwatch(watches[1]);
        assert!(timers.end_watches(at(9)).is_empty());
        assert_eq!(timers.end_watches(at(20)), [10, 11]);
        timers.unwatch(watches[0]);
        assert_eq!(
            timers.first(),
            Some(at(20)),
            "nobody watches what has a timer"
        );
        assert_eq!(timers.end_watches(at(30)), [30, 31]);
    }
}
