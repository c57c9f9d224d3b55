//! All entries of one lock at one revision: pure.
#![deny(clippy::disallowed_types)]

use std::cmp::Reverse;

use leasehold::{Key, Mode};

use super::entry::Entry;
use super::names::{Names, Position};
use super::order::{Decision, Standing, decide, is_before};
use crate::proto::RangeResponse;

/// The holders and waiters of a lock, as they were at a revision.
#[derive(Clone, Debug)]
pub(crate) struct Snapshot {
    /// The revision at which the entries were read.
    pub(crate) revision: i64,
    /// Those ahead of the queue, the latest first.
    ahead: Vec<Entry>,
    /// The others, the latest first.
    queue: Vec<Entry>,
}

impl Snapshot {
    pub(super) fn new(revision: i64, entries: impl Iterator<Item = Entry>) -> Self {
        let (mut ahead, mut queue): (Vec<_>, Vec<_>) =
            entries.partition(|entry| entry.position == Position::Ahead);
        for part in [&mut ahead, &mut queue] {
            part.sort_by_key(|entry| Reverse(entry.created));
        }
        Self {
            revision,
            ahead,
            queue,
        }
    }

    /// Reads the answer to a request for all keys of a lock. The keys of other locks can lie among them.
    pub(crate) fn read(names: &Names, lock: &Key, found: RangeResponse) -> Self {
        let revision = found.header.map_or(0, |header| header.revision);
        let read = |kv| Entry::read(names, lock.as_str(), kv);
        Self::new(revision, found.kvs.into_iter().filter_map(read))
    }

    /// Decides whether a client may have the lock in this mode.
    pub(crate) fn decide(&self, standing: Standing, mode: Mode) -> Decision {
        let earlier = match standing {
            Standing::Queued(created) => self.queue.partition_point(|it| it.created >= created),
            _ => 0,
        };
        let (later, earlier) = self.queue.split_at(earlier);
        // Permits are counted, so those of later clients matter.
        let later = match mode {
            Mode::Permit(_) => later,
            Mode::Exclusive | Mode::Shared => &[],
        };
        let entries = self.ahead.iter().chain(later).chain(earlier);
        decide(entries.filter(|entry| is_before(entry, standing)), mode)
    }

    /// Returns whether the entry of a client with this key is still there.
    pub(crate) fn has(&self, key: &[u8], created: i64) -> bool {
        let is_own = |entry: &&Entry| entry.created == created && entry.key == key;
        let at = self.queue.partition_point(|entry| entry.created > created);
        let queue = self.queue.get(at..).unwrap_or_default();
        let queue = queue.iter().take_while(|entry| entry.created == created);
        queue.chain(&self.ahead).any(|entry| is_own(&entry))
    }

    /// Returns the oldest entry of the queue: the holder, unless others went ahead.
    pub(crate) fn first(&self) -> Option<&Entry> {
        self.queue.last()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::proto::{KeyValue, ResponseHeader};

    fn kv(key: &str, created: i64) -> KeyValue {
        KeyValue {
            key: key.into(),
            create_revision: created,
            mod_revision: created,
            value: Vec::new(),
            lease: created,
        }
    }

    #[test]
    fn keys_of_other_locks_are_left_out() {
        let kvs = ["job/2a", "job/x/2b", "job/s7", "job/2c", "job/r3"];
        let numbered = kvs.iter().zip([8, 7, 9, 6, 5]);
        let found = RangeResponse {
            header: Some(ResponseHeader {
                member_id: 1,
                revision: 40,
            }),
            kvs: numbered.map(|(key, created)| kv(key, created)).collect(),
            more: false,
        };
        let job = Key::new("job").unwrap();
        let snapshot = Snapshot::read(&Names::new(""), &job, found);
        assert_eq!(snapshot.revision, 40);
        assert_eq!(snapshot.first().map(|entry| entry.created), Some(5));
        assert!(snapshot.has(b"job/2a", 8) && snapshot.has(b"job/s7", 9));
        assert!(!snapshot.has(b"job/2a", 6) && !snapshot.has(b"job/x/2b", 7));
        let nearest = |standing| match snapshot.decide(standing, Mode::Exclusive) {
            Decision::Behind(entry) => entry.key,
            other => panic!("{other:?}"),
        };
        assert_eq!(
            nearest(Standing::Queued(8)),
            b"job/s7",
            "ahead of the queue"
        );
        assert_eq!(nearest(Standing::Ahead(9)), b"job/2a", "of another library");
    }
}
