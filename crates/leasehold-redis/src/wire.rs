//! Wire v1: the names of the records at a server, and what the lock key may hold.

use leasehold::{ClientId, Key, Owner};

/// What the lock key holds while readers share the lock; `lua/lease.lua` has it too.
pub(crate) const SHARED: &str = "leasehold:shared";

/// The entry of the fence counter; `lua/lease.lua` has it too.
pub(crate) const COUNTER: &str = "f";

/// What the member knows about its set: one for each database, whatever the prefix of the locks.
pub(crate) const CARD: &str = "leasehold:card";

/// How long a counter outlives the last use of its lock; `lua/lease.lua` has it too.
pub(crate) const REST_MS: u64 = 7 * 24 * 60 * 60 * 1000;

/// The records of one lock, all in one slot of a cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Records {
    pub(crate) lock: String,
    pub(crate) fence: String,
    pub(crate) readers: String,
}

impl Records {
    pub(crate) fn of(prefix: &str, key: &Key) -> Self {
        let lock = format!("{prefix}{key}");
        let tag = hash_tag(&lock);
        Self {
            fence: format!("leasehold:fence:0:{{{tag}}}:{lock}"),
            readers: format!("leasehold:readers:{{{tag}}}:{lock}"),
            lock,
        }
    }
}

/// What decides the slot of `key`: the text between the first `{` and the next `}` unless that is
/// empty, else the whole key (Redis Cluster specification, "Hash tags").
pub(crate) fn hash_tag(key: &str) -> &str {
    let tagged = key
        .split_once('{')
        .and_then(|(_, rest)| rest.split_once('}'));
    match tagged {
        Some((tag, _)) if !tag.is_empty() => tag,
        _ => key,
    }
}

/// Where a client says who it is.
pub(crate) fn client_record(client: ClientId) -> String {
    format!("leasehold:client:{client}")
}

/// What a lock key holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LockValue {
    /// One holder of ours.
    Owner(Owner),
    /// Readers.
    Shared,
    /// A token of another library, or what an operator left who broke the lock.
    Foreign,
}

impl LockValue {
    pub(crate) fn read(value: &[u8]) -> Self {
        match std::str::from_utf8(value) {
            Ok(SHARED) => Self::Shared,
            Ok(text) => text.parse().map_or(Self::Foreign, Self::Owner),
            Err(_) => Self::Foreign,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn records(prefix: &str, name: &str) -> Records {
        Records::of(prefix, &Key::new(name).unwrap())
    }

    #[test]
    fn the_records_of_a_lock_share_its_slot() {
        let plain = records("", "deploy");
        assert_eq!(plain.lock, "deploy");
        assert_eq!(plain.fence, "leasehold:fence:0:{deploy}:deploy");
        assert_eq!(plain.readers, "leasehold:readers:{deploy}:deploy");
        let tagged = records("app:", "{user7}/cart");
        assert_eq!(tagged.lock, "app:{user7}/cart");
        assert_eq!(tagged.fence, "leasehold:fence:0:{user7}:app:{user7}/cart");
        assert_eq!(hash_tag("a{}b{c}"), "a{}b{c}");
        assert_eq!(hash_tag("a{b"), "a{b");
    }

    #[test]
    fn the_scripts_use_the_same_words() {
        let lua = include_str!("lua/lease.lua");
        assert!(lua.contains(&format!("local SHARED = '{SHARED}'\n")));
        assert!(lua.contains(&format!("local COUNTER = '{COUNTER}'\n")));
        assert!(lua.contains("local REST_MS = 7 * 24 * 60 * 60 * 1000\n"));
        assert_eq!(REST_MS, 604_800_000);
    }

    #[test]
    fn values_of_other_libraries_are_foreign() {
        assert_eq!(LockValue::read(b"leasehold:shared"), LockValue::Shared);
        assert_eq!(LockValue::read(b"\xff\x00"), LockValue::Foreign);
        assert_eq!(LockValue::read(b"job-1"), LockValue::Foreign);
        let broken = LockValue::read(b"leasehold:broken:by ann");
        assert_eq!(broken, LockValue::Foreign);
        let owner = format!("{:016x}.{:032x}", 7, 9);
        let parsed = owner.parse().unwrap();
        assert_eq!(LockValue::read(owner.as_bytes()), LockValue::Owner(parsed));
    }
}
