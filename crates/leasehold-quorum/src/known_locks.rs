use std::time::Duration;

use foldhash::HashMap;
use leasehold_types::{BootInstant, Key};

/// The locks that this client asks for on its present connections.
///
/// One map serves all members, because a round asks them alike. It is emptied whenever a member connects, may be
/// asked again, or answers from other data: that member may not know the locks.
#[derive(Debug, Default)]
pub(crate) struct KnownLocks(HashMap<Key, KnownLock>);

/// What the client knows of one lock.
#[derive(Clone, Copy, Debug)]
pub(crate) struct KnownLock {
    /// When a round last set the expiry of the counters.
    expiry_set: BootInstant,
    /// A majority granted the lock.
    pub(crate) is_granted: bool,
}

/// How often a client sets the expiry of the counters of a lock that it uses. The expiry is a week.
const EXPIRY_EVERY: Duration = Duration::from_secs(600);

/// How many locks a client remembers.
const KNOWN_MAX: usize = 4096;

impl KnownLocks {
    pub(crate) fn get(&self, key: &Key) -> Option<KnownLock> {
        self.0.get(key).copied()
    }

    /// A round sets the expiry of the counters.
    pub(crate) fn set_expiry(&mut self, key: &Key, now: BootInstant) {
        if self.0.len() >= KNOWN_MAX {
            self.0.clear();
        }
        let known = self.0.entry(key.clone()).or_insert(KnownLock {
            expiry_set: now,
            is_granted: false,
        });
        known.expiry_set = now;
    }

    /// A majority granted the lock. It stays unknown if a member changed during the round.
    pub(crate) fn granted(&mut self, key: &Key) {
        if let Some(known) = self.0.get_mut(key) {
            known.is_granted = true;
        }
    }

    pub(crate) fn forget_all(&mut self) {
        self.0.clear();
    }
}

impl KnownLock {
    /// Whether a round that begins now has to set the expiry.
    pub(crate) fn expiry_is_due(self, now: BootInstant) -> bool {
        now.since(self.expiry_set) >= EXPIRY_EVERY
    }
}
