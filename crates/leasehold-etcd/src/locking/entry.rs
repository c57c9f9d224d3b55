//! One entry in the directory of a lock: a holder or a waiter.
#![deny(clippy::disallowed_types)]

use leasehold::look::{ClientInfo, Owner};
use leasehold::store::Permits;
use leasehold::{Fence, Mode};
use serde::{Deserialize, Serialize};

use super::names::{Names, Position};
use crate::proto::KeyValue;

/// A holder or a waiter, as read from the server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) key: Vec<u8>,
    pub(crate) position: Position,
    /// The entry ends with this lease.
    pub(crate) lease: i64,
    pub(crate) created: i64,
    pub(crate) modified: i64,
    pub(crate) mode: Mode,
    /// What the value says; `None` if another library wrote it.
    pub(crate) stored: Option<Stored>,
}

/// The value of an entry.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Stored {
    pub(crate) owner: Owner,
    mode: StoredMode,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    permits: Option<u32>,
    pub(crate) state: EntryState,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) fence: Option<Fence>,
    pub(crate) client: ClientInfo,
    /// Whether the entry has a lease of its own, which keeps the lock closed after a break.
    #[serde(default, skip_serializing_if = "is_false")]
    pub(crate) is_closed: bool,
}

fn is_false(flag: &bool) -> bool {
    !*flag
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum StoredMode {
    Exclusive,
    Shared,
    Permit,
}

/// What an owner does with the lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum EntryState {
    Waiting,
    Held,
    /// An operator broke the lease. The entry keeps the lock closed until it ends.
    Broken,
}

impl Stored {
    /// Returns a value of `owner`, which waits or holds.
    pub(crate) fn new(owner: Owner, mode: Mode, fence: Option<Fence>, client: ClientInfo) -> Self {
        let state = match fence {
            Some(_) => EntryState::Held,
            None => EntryState::Waiting,
        };
        let stored_mode = match mode {
            Mode::Exclusive => StoredMode::Exclusive,
            Mode::Shared => StoredMode::Shared,
            Mode::Permit(_) => StoredMode::Permit,
        };
        Self {
            owner,
            mode: stored_mode,
            permits: mode.permits().map(Permits::get),
            state,
            fence,
            client,
            is_closed: false,
        }
    }

    /// The same value in shared mode.
    pub(crate) fn shared(mut self) -> Self {
        self.mode = StoredMode::Shared;
        self
    }

    /// The same value of a lease that an operator broke.
    pub(crate) fn broken(mut self) -> Self {
        self.state = EntryState::Broken;
        self
    }

    /// The same value with a lease of its own.
    pub(crate) fn closed(mut self) -> Self {
        self.is_closed = true;
        self
    }

    pub(crate) fn to_bytes(&self) -> Vec<u8> {
        serde_json::to_vec(self).unwrap_or_default()
    }

    fn mode(&self) -> Option<Mode> {
        match self.mode {
            StoredMode::Exclusive => Some(Mode::Exclusive),
            StoredMode::Shared => Some(Mode::Shared),
            StoredMode::Permit => Permits::new(self.permits?).ok().map(Mode::Permit),
        }
    }
}

impl Entry {
    /// Reads an entry of `lock`. Returns `None` for a key that is none.
    pub(crate) fn read(names: &Names, lock: &str, kv: KeyValue) -> Option<Self> {
        let (name, ..) = names.parse(&kv.key)?;
        if name != lock {
            return None;
        }
        Self::of_any_lock(names, kv).map(|(_, entry)| entry)
    }

    /// Reads an entry, and the name of its lock.
    pub(crate) fn of_any_lock(names: &Names, kv: KeyValue) -> Option<(String, Self)> {
        let (lock, position, _) = names.parse(&kv.key)?;
        let lock = lock.to_owned();
        let stored: Option<Stored> = serde_json::from_slice(&kv.value).ok();
        let stored = stored.and_then(|stored| Some((stored.mode()?, stored)));
        // Other libraries write no value that we know. Theirs is a mutex, unless the key says that it reads.
        let unknown = match position {
            Position::Reader => Mode::Shared,
            Position::Queue | Position::Ahead => Mode::Exclusive,
        };
        let (mode, stored) = match stored {
            Some((mode, stored)) => (mode, Some(stored)),
            None => (unknown, None),
        };
        let entry = Self {
            key: kv.key,
            position,
            lease: kv.lease,
            created: kv.create_revision,
            modified: kv.mod_revision,
            mode,
            stored,
        };
        Some((lock, entry))
    }

    pub(crate) fn owner(&self) -> Option<Owner> {
        self.stored.as_ref().map(|stored| stored.owner)
    }

    pub(crate) fn state(&self) -> Option<EntryState> {
        self.stored.as_ref().map(|stored| stored.state)
    }

    /// Returns when its owner was granted the lock exclusively and from a place in the queue; `None` if it was not.
    pub(crate) fn was_granted_alone(&self) -> Option<i64> {
        let is_alone = self.mode == Mode::Exclusive && self.position == Position::Queue;
        (is_alone && self.state() == Some(EntryState::Held)).then_some(self.modified)
    }

    /// Returns whether the entry is that of a holder, or of a holder whose lease an operator broke.
    pub(crate) fn is_held(&self) -> bool {
        matches!(self.state(), Some(EntryState::Held | EntryState::Broken))
    }
}

#[cfg(test)]
pub(super) mod tests {
    use leasehold::clock::WallTime;
    use leasehold::env::{Env, SystemEntropy};
    use leasehold::look::ClientId;

    use super::*;

    pub(in crate::locking) fn stored(mode: Mode, fence: Option<u64>) -> Stored {
        let client = Env::default().this_process(None);
        let owner = Owner::random(ClientId::random(&SystemEntropy), &SystemEntropy);
        Stored::new(owner, mode, fence.and_then(Fence::new), client)
    }

    fn read(key: &str, value: Vec<u8>) -> Option<Entry> {
        let kv = KeyValue {
            key: key.into(),
            create_revision: 5,
            mod_revision: 6,
            value,
            lease: 0x1f,
        };
        Entry::read(&Names::new(""), "job", kv)
    }

    #[test]
    fn values_survive_their_text_form() {
        let permits = Mode::Permit(Permits::new(3).unwrap());
        for mode in [Mode::Exclusive, Mode::Shared, permits] {
            for fence in [None, Some(7)] {
                let stored = stored(mode, fence);
                let entry = read("job/1f", stored.to_bytes()).unwrap();
                assert_eq!(entry.stored, Some(stored));
                assert_eq!((entry.mode, entry.is_held()), (mode, fence.is_some()));
            }
        }
        let shared = stored(Mode::Exclusive, Some(7)).shared();
        assert_eq!(
            read("job/1f", shared.to_bytes()).unwrap().mode,
            Mode::Shared
        );
        let broken = stored(Mode::Exclusive, Some(7)).broken();
        assert!(read("job/1f", broken.to_bytes()).unwrap().is_held());
        assert!(WallTime::from_micros(1) < broken.client.since);
    }

    #[test]
    fn entries_of_other_libraries_have_no_owner() {
        for value in [&b""[..], b"text", b"{}"] {
            let entry = read("job/1f", value.into()).unwrap();
            assert_eq!((entry.owner(), entry.mode), (None, Mode::Exclusive));
            assert_eq!(read("job/r1f", value.into()).unwrap().mode, Mode::Shared);
        }
        assert_eq!(read("job/config", vec![]), None);
        assert_eq!(read("job/x/1f", vec![]), None, "another lock");
    }
}
