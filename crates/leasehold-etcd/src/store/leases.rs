use std::collections::HashMap;
use std::sync::Mutex;
use std::time::Duration;

use leasehold::Key;
use leasehold::look::Owner;
use leasehold::store::{Term, locked};

use super::pool::Lease;
use crate::locking::{Names, Position};

/// The leases of the client that may have an entry, by owner.
#[derive(Debug, Default)]
pub(super) struct OwnLeases(Mutex<HashMap<Owner, OwnLease>>);

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct OwnLease {
    /// The key of the entry.
    pub(super) key: Vec<u8>,
    /// The lease that the entry ends with.
    pub(super) lease: Lease,
    pub(super) holding: Holding,
    /// How many releases of the owner began.
    pub(super) releases: u32,
}

/// Whether an owner holds the lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Holding {
    /// It waits, or its attempt is not over.
    No,
    /// This process got the lock.
    Here {
        /// When this process wrote the entry last. `None` if a request of the owner has no answer so far, so that it can arrive
        /// late: its lease and its key are never used again.
        written: Option<i64>,
        /// Whether it got the lock alone, from its place in the queue or as a newcomer.
        passes_on: bool,
    },
    /// Another process got the lock, and may still use the lease.
    Elsewhere,
}

impl OwnLeases {
    pub(super) fn insert(&self, owner: Owner, lease: OwnLease) {
        locked(&self.0).insert(owner, lease);
    }

    pub(super) fn get(&self, owner: Owner) -> Option<OwnLease> {
        locked(&self.0).get(&owner).cloned()
    }

    /// Notes that the server renewed the lease of an owner.
    pub(super) fn renewed(&self, owner: Owner, term: Term) {
        if let Some(own) = locked(&self.0).get_mut(&owner) {
            own.lease.term = term;
        }
    }

    /// Begins a release, and returns what the client knew of the owner before.
    pub(super) fn begin_release(&self, owner: Owner) -> Option<OwnLease> {
        let mut leases = locked(&self.0);
        let own = leases.get_mut(&owner)?;
        let before = own.clone();
        own.releases += 1;
        Some(before)
    }

    /// Forgets an owner whose entry is gone. Returns whether only this one of its `releases` was under way, so that nothing revokes its
    /// lease.
    pub(super) fn end(&self, owner: Owner, releases: u32) -> bool {
        let own = self.remove(owner);
        own.is_some_and(|own| own.releases == releases)
    }

    /// Notes that the entry of a holder is written again. It was written at the revision `written`; `None` until the server
    /// has answered. The holder does not pass the lock on from now on.
    pub(super) fn writes(&self, owner: Owner, written: Option<i64>) {
        if let Some(own) = locked(&self.0).get_mut(&owner) {
            own.writes(written);
        }
    }

    pub(super) fn remove(&self, owner: Owner) -> Option<OwnLease> {
        locked(&self.0).remove(&owner)
    }
}

impl OwnLease {
    pub(super) fn new(key: Vec<u8>, lease: Lease, holding: Holding) -> Self {
        Self {
            key,
            lease,
            holding,
            releases: 0,
        }
    }

    pub(super) fn writes(&mut self, now_written: Option<i64>) {
        if let Holding::Here { written, passes_on } = &mut self.holding {
            *written = now_written;
            *passes_on = false;
        }
    }

    /// Returns when the entry was written last, if all requests of the holder were answered: no earlier release deletes it late.
    pub(super) fn settled(&self) -> Option<i64> {
        match self.holding {
            Holding::Here { written, .. } => written.filter(|_| self.releases == 0),
            Holding::No | Holding::Elsewhere => None,
        }
    }
}

/// The numbers of keys that the client used, and that do not exist now, by lock and part of its directory. A server keeps the
/// names of deleted keys, and reads them at each attempt. So a client uses its keys again.
#[derive(Debug, Default)]
pub(super) struct UsedKeys(Mutex<HashMap<(String, Position), Vec<i64>>>);

/// For how many locks a client remembers its keys.
const LOCKS_MAX: usize = 1024;

impl UsedKeys {
    /// Returns the number of a key for an entry; `new` if there is no key to use again.
    pub(super) fn take(&self, lock: &Key, position: Position, new: i64) -> i64 {
        let mut used = locked(&self.0);
        let numbers = used.get_mut(&(lock.to_string(), position));
        numbers.and_then(Vec::pop).unwrap_or(new)
    }

    /// Remembers the key of an entry that the server has deleted.
    pub(super) fn put(&self, names: &Names, key: &[u8]) {
        let Some((lock, position, number)) = names.parse(key) else {
            return;
        };
        let mut used = locked(&self.0);
        if used.len() >= LOCKS_MAX {
            used.clear();
        }
        let numbers = used.entry((lock.to_owned(), position)).or_default();
        numbers.push(number);
    }
}

/// Returns a TTL in whole seconds, rounded up.
pub(super) fn seconds(ttl: Duration) -> i64 {
    let whole = ttl.as_secs() + u64::from(ttl.subsec_nanos() > 0);
    i64::try_from(whole.max(1)).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ttl_is_rounded_up_to_whole_seconds() {
        for (millis, expected) in [(1, 1), (1000, 1), (1001, 2), (60_000, 60)] {
            assert_eq!(seconds(Duration::from_millis(millis)), expected);
        }
    }
}
