#![deny(clippy::disallowed_types)]

use std::collections::BTreeMap;
use std::ops::Bound::{Excluded, Unbounded};

use crate::env::clock::BootInstant;
use crate::store::RecordState;
use crate::types::Key;

/// The records of a memory store.
#[derive(Clone, Debug, Default)]
pub(super) struct RecordTable {
    slots: BTreeMap<Key, RecordState<BootInstant>>,
    /// The last key at which the sweep looked for expired records.
    swept: Option<Key>,
}

impl RecordTable {
    /// Runs `change` on the record of `key`. Also removes this record and the next few if they have
    /// expired, because names are often used only once.
    pub(super) fn with<T>(
        &mut self,
        key: &Key,
        now: BootInstant,
        change: impl FnOnce(&mut RecordState<BootInstant>) -> T,
    ) -> T {
        let mut slot = self.slots.remove(key).unwrap_or_default();
        let answer = change(&mut slot);
        if !slot.is_over(now) {
            self.slots.insert(key.clone(), slot);
        }
        self.sweep(now);
        answer
    }

    /// Returns the keys of the records that have a value, by name.
    pub(super) fn keys(&self, now: BootInstant) -> impl Iterator<Item = &Key> {
        let slots = self.slots.iter();
        slots
            .filter(move |(_, slot)| slot.read(now).written.is_some())
            .map(|(key, _)| key)
    }

    pub(super) fn forget(&mut self, key: &Key) {
        self.slots.remove(key);
    }

    fn sweep(&mut self, now: BootInstant) {
        for _ in 0..SWEPT_AT_ONCE {
            let behind = self.swept.take().map_or(Unbounded, Excluded);
            // This is the end; the next sweep starts from the beginning.
            let Some((key, slot)) = self.slots.range((behind, Unbounded)).next() else {
                return;
            };
            let (key, is_over) = (key.clone(), slot.is_over(now));
            if is_over {
                self.slots.remove(&key);
            }
            self.swept = Some(key);
        }
    }
}

/// More than the one record that a call may add, so the sweep removes expired records faster than new
/// ones come.
const SWEPT_AT_ONCE: usize = 2;

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::store::{RECORD_MEMORY, RecordWrite, Version, WriteOutcome};
    use crate::types::Fence;

    fn write(table: &mut RecordTable, name: &str, now: BootInstant) {
        let fence = Fence::new(7).unwrap();
        let version = Version { fence, step: 1 };
        let write = RecordWrite::new(version, *b"x", RecordWrite::RETENTION_MIN).unwrap();
        let key = Key::new(name).unwrap();
        let wrote = table.with(&key, now, |slot| slot.write(&write, now));
        assert_eq!(wrote, WriteOutcome::Written);
    }

    #[test]
    fn expired_records_are_swept() {
        let mut table = RecordTable::default();
        let start = BootInstant::from_nanos(0);
        for number in 0..100 {
            write(&mut table, &format!("once/{number}"), start);
        }
        let later = start + RECORD_MEMORY - Duration::from_secs(1);
        for _ in 0..100 {
            write(&mut table, "often", later);
        }
        assert_eq!(table.slots.len(), 101, "who was there is remembered");
        for _ in 0..100 {
            write(&mut table, "often", start + RECORD_MEMORY);
        }
        assert_eq!(table.slots.len(), 1);
    }
}
