//! The order of holders and waiters: pure.
#![deny(clippy::disallowed_types)]

use leasehold::Mode;
use leasehold::store::Permits;

use super::entry::{Entry, EntryState};
use super::names::Position;

/// The standing of a client that asks for a lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Standing {
    /// It has no entry, and does not go ahead of any other client.
    Newcomer,
    /// It has an entry in the queue, created at this revision.
    Queued(i64),
    /// It has no entry, and goes ahead of those that wait.
    Barging,
    /// It has an entry ahead of the queue, created at this revision.
    Ahead(i64),
}

impl Standing {
    /// Returns when the entry of the client was created; `None` if it has none.
    pub(crate) fn created(self) -> Option<i64> {
        match self {
            Self::Queued(created) | Self::Ahead(created) => Some(created),
            Self::Newcomer | Self::Barging => None,
        }
    }

    /// Returns the standing of the client once its entry exists.
    pub(crate) fn with_entry(self, created: i64) -> Self {
        match self {
            Self::Newcomer | Self::Queued(_) => Self::Queued(created),
            Self::Barging | Self::Ahead(_) => Self::Ahead(created),
        }
    }
}

/// Whether a client may have a lock.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Decision {
    /// No other client excludes it.
    Free,
    /// This entry excludes it: the nearest one before it.
    Behind(Box<Entry>),
    /// Other clients have, or will have, all permits: these are the keys of all before it.
    Full(Vec<Vec<u8>>),
    /// The lock is held with another number of permits.
    PermitsDiffer(Permits),
}

/// Decides whether a client may have a lock in this mode. `before` are the entries of others that come before it, the
/// nearest first.
pub(super) fn decide<'a>(
    mut before: impl Iterator<Item = &'a Entry> + Clone,
    mode: Mode,
) -> Decision {
    let wanted = mode.permits();
    if let Some(wanted) = wanted {
        let held = before.clone().filter(|entry| entry.is_held());
        let mut differing = held.filter_map(|entry| entry.mode.permits());
        if let Some(other) = differing.find(|permits| *permits != wanted) {
            return Decision::PermitsDiffer(other);
        }
    }
    let all = before.clone();
    if let Some(entry) = before.find(|entry| excludes(entry.mode, mode)) {
        return Decision::Behind(Box::new(entry.clone()));
    }
    match wanted {
        Some(permits) if all.clone().count() >= permits.get() as usize => {
            Decision::Full(all.map(|entry| entry.key.clone()).collect())
        }
        _ => Decision::Free,
    }
}

/// Returns whether an entry of another client comes before one with this standing.
pub(super) fn is_before(entry: &Entry, standing: Standing) -> bool {
    let is_ahead = entry.position == Position::Ahead;
    // Other libraries look at the revision alone, so nothing can go ahead of their clients.
    let is_passed = !is_ahead && entry.state() == Some(EntryState::Waiting);
    match standing {
        Standing::Newcomer => true,
        // A client that came later may have been faster.
        Standing::Queued(created) => {
            is_ahead || entry.created < created || (entry.created > created && entry.is_held())
        }
        Standing::Barging => !is_passed,
        Standing::Ahead(created) => {
            let waits = entry.state() == Some(EntryState::Waiting);
            let is_later = is_ahead && waits && entry.created > created;
            entry.created != created && !is_passed && !is_later
        }
    }
}

fn excludes(one: Mode, other: Mode) -> bool {
    match (one, other) {
        (Mode::Shared, Mode::Shared) => false,
        (Mode::Permit(one), Mode::Permit(other)) => one != other,
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::locking::entry::tests::stored;
    use crate::locking::snapshot::Snapshot;

    fn decide(entries: &[Entry], standing: Standing, mode: Mode) -> Decision {
        Snapshot::new(9, entries.iter().cloned()).decide(standing, mode)
    }

    fn permits(count: u32) -> Mode {
        Mode::Permit(Permits::new(count).unwrap())
    }

    /// An entry created at this revision: held with its own fence, or waiting.
    fn entry(created: i64, mode: Mode, is_held: bool) -> Entry {
        let position = match mode {
            Mode::Shared => Position::Reader,
            _ => Position::Queue,
        };
        Entry {
            key: format!("job/{created:x}").into(),
            position,
            lease: created,
            created,
            modified: created,
            mode,
            stored: Some(stored(mode, is_held.then_some(7))),
        }
    }

    fn foreign(created: i64) -> Entry {
        let mut entry = entry(created, Mode::Exclusive, false);
        entry.stored = None;
        entry
    }

    fn ahead(created: i64, mode: Mode) -> Entry {
        let mut entry = entry(created, mode, true);
        entry.position = Position::Ahead;
        entry
    }

    fn behind(entry: &Entry) -> Decision {
        Decision::Behind(Box::new(entry.clone()))
    }

    #[test]
    fn writer_waits_for_the_nearest_before_it() {
        let entries = [
            entry(4, Mode::Shared, false),
            foreign(3),
            entry(2, Mode::Exclusive, true),
        ];
        let decided = |standing| decide(&entries, standing, Mode::Exclusive);
        assert_eq!(decided(Standing::Newcomer), behind(&entries[0]));
        assert_eq!(decided(Standing::Queued(4)), behind(&entries[1]));
        assert_eq!(decided(Standing::Queued(3)), behind(&entries[2]));
        assert_eq!(decided(Standing::Queued(2)), Decision::Free);
        assert_eq!(
            decide(&[], Standing::Newcomer, Mode::Exclusive),
            Decision::Free
        );
    }

    #[test]
    fn reader_passes_readers_but_no_writer() {
        let mut downgraded = entry(2, Mode::Shared, true);
        downgraded.position = Position::Queue;
        let entries = [
            entry(4, Mode::Exclusive, false),
            entry(3, Mode::Shared, true),
            downgraded,
        ];
        let decided = |standing| decide(&entries, standing, Mode::Shared);
        assert_eq!(decided(Standing::Queued(4)), Decision::Free);
        assert_eq!(decided(Standing::Queued(5)), behind(&entries[0]));
        assert_eq!(decided(Standing::Newcomer), behind(&entries[0]));
        assert_eq!(
            decided(Standing::Barging),
            Decision::Free,
            "ahead of the writer"
        );
        assert_eq!(
            decide(&entries, Standing::Queued(4), permits(3)),
            behind(&entries[1])
        );
    }

    #[test]
    fn barging_client_goes_ahead_of_no_other_library() {
        let waiting = [entry(3, Mode::Exclusive, false)];
        assert_eq!(
            decide(&waiting, Standing::Barging, Mode::Exclusive),
            Decision::Free
        );
        let other = [foreign(3)];
        assert_eq!(
            decide(&other, Standing::Barging, Mode::Shared),
            behind(&foreign(3))
        );
    }

    #[test]
    fn holder_ahead_of_the_queue_keeps_earlier_waiters_out() {
        let entries = [ahead(9, Mode::Shared)];
        assert_eq!(
            decide(&entries, Standing::Queued(3), Mode::Exclusive),
            behind(&entries[0])
        );
        assert_eq!(
            decide(&entries, Standing::Queued(3), Mode::Shared),
            Decision::Free
        );
    }

    /// A client that is slow to take its permit does not pass one that came later and has one.
    #[test]
    fn permits_count_holders_that_came_later() {
        let holder = entry(6, permits(2), true);
        let barged = ahead(7, permits(2));
        let entries = [
            holder.clone(),
            entry(5, permits(2), false),
            entry(4, permits(2), false),
        ];
        let slow = Standing::Queued(4);
        assert_eq!(decide(&entries, slow, permits(2)), Decision::Free);
        let full = Decision::Full(vec![barged.key.clone(), holder.key.clone()]);
        let entries: Vec<_> = entries.into_iter().chain([barged]).collect();
        assert_eq!(decide(&entries, slow, permits(2)), full);
    }

    #[test]
    fn permits_count_all_before_them() {
        let entries = [
            entry(4, permits(3), false),
            entry(3, permits(3), true),
            entry(2, permits(3), true),
        ];
        let decided = |standing, count| decide(&entries, standing, permits(count));
        assert_eq!(decided(Standing::Queued(4), 3), Decision::Free);
        let keys = entries.iter().map(|entry| entry.key.clone()).collect();
        assert_eq!(decided(Standing::Queued(5), 3), Decision::Full(keys));
        assert_eq!(
            decided(Standing::Barging, 3),
            Decision::Free,
            "two are held"
        );
        let three = Permits::new(3).unwrap();
        assert_eq!(
            decided(Standing::Newcomer, 4),
            Decision::PermitsDiffer(three)
        );
    }
}
