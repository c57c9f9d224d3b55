use std::collections::HashMap;
use std::time::Duration;

use crate::attempt::Busy;
use crate::clock::BootInstant;
use crate::key::Key;
use crate::permits::Slots;

/// Locks that were busy lately, and what was learned of each: who wants to wait for one goes straight
/// into its queue.
#[derive(Debug, Default)]
pub(super) struct Lately {
    locks: HashMap<Key, Known>,
}

#[derive(Clone, Copy, Debug)]
struct Known {
    seen: BootInstant,
    /// When another library was seen to hold it.
    silent: Option<BootInstant>,
    /// The permits that it would have granted instead, without those that were asked for since.
    free: Slots,
}

impl Lately {
    /// Notes that a lock was busy.
    pub(super) fn note(&mut self, key: &Key, busy: &Busy, now: BootInstant) {
        let before = self.silent(key);
        let silent = if busy.silent { Some(now) } else { before };
        if self.locks.len() >= MAX {
            self.locks
                .retain(|_, known| now.since(known.seen) < BUSY_LATELY);
        }
        if self.locks.len() < MAX || self.locks.contains_key(key) {
            let known = Known {
                seen: now,
                silent,
                free: busy.free,
            };
            self.locks.insert(key.clone(), known);
        }
    }

    pub(super) fn was_busy(&self, key: &Key, now: BootInstant) -> bool {
        let known = self.locks.get(key);
        known.is_some_and(|known| now.since(known.seen) < BUSY_LATELY)
    }

    /// When another library was seen to hold the lock.
    pub(super) fn silent(&self, key: &Key) -> Option<BootInstant> {
        self.locks.get(key)?.silent
    }

    /// The permits that the last refusal named, as long as that tells something.
    pub(super) fn free(&mut self, key: &Key, now: BootInstant) -> Option<&mut Slots> {
        let known = self.locks.get_mut(key)?;
        (now.since(known.seen) < BUSY_LATELY).then_some(&mut known.free)
    }
}

/// For so long a lock that was busy is taken to be so.
const BUSY_LATELY: Duration = Duration::from_secs(1);

/// So many of them are remembered.
const MAX: usize = 4096;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lock_that_is_remembered_is_brought_up_to_date_however_many_there_are() {
        let mut lately = Lately::default();
        let now = BootInstant::from_nanos(1_000_000_000);
        let key = |number: usize| Key::new(format!("lock {number}")).unwrap();
        let mut busy = Busy::default();
        for number in 0..MAX {
            lately.note(&key(number), &busy, now);
        }
        busy.silent = true;
        lately.note(&key(7), &busy, now);
        lately.note(&key(MAX), &busy, now);
        assert!(lately.silent(&key(7)).is_some());
        assert_eq!(lately.locks.len(), MAX);
    }
}
