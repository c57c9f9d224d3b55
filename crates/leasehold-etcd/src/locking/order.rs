//! The order of holders and waiters: pure.
#![deny(clippy::disallowed_types)]

use leasehold::Mode;
use leasehold::store::Permits;

use super::entry::{Entry, State};
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

/// Decides whether a client may have a lock in this mode. `entries` are those of other clients, the latest first.
pub(crate) fn decide(entries: &[Entry], standing: Standing, mode: Mode) -> Decision {
    let before = || entries.iter().filter(|entry| is_before(entry, standing));
    let wanted = mode.permits();
    if let Some(wanted) = wanted {
        let held = before().filter(|entry| entry.is_held());
        let differing = held.filter_map(|entry| entry.mode.permits());
        if let Some(other) = differing.into_iter().find(|permits| *permits != wanted) {
            return Decision::PermitsDiffer(other);
        }
    }
    if let Some(entry) = before().find(|entry| excludes(entry.mode, mode)) {
        return Decision::Behind(Box::new(entry.clone()));
    }
    match wanted {
        Some(permits) if before().count() >= permits.get() as usize => {
            Decision::Full(before().map(|entry| entry.key.clone()).collect())
        }
        _ => Decision::Free,
    }
}

fn is_before(entry: &Entry, standing: Standing) -> bool {
    let is_ahead = entry.position == Position::Ahead;
    match standing {
        Standing::Newcomer => true,
        Standing::Queued(created) => is_ahead || entry.created < created,
        // Other libraries look at the revision alone, so nothing can go ahead of their clients.
        Standing::Barging => entry.state() != Some(State::Waiting),
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
