//! Wire v1: the names of the records at a server, and what the lock key may hold.

use std::borrow::Cow;
use std::ops::Range;

use leasehold::clock::WallTime;
use leasehold::{ClientId, Key, Mode, Owner, Permits, Ticket};

use crate::foreign::Form;

/// What the lock key holds while readers share the lock; `lua/lease.lua` has it too.
pub(crate) const SHARED: &str = "leasehold:shared";

/// In front of the number of permits in what the lock key holds while some of them are held;
/// `lua/lease.lua` has it too.
pub(crate) const PERMITS: &str = "leasehold:permits:";

/// The entry of the fence counter; `lua/words.lua` has it too.
pub(crate) const COUNTER: &str = "f";

/// In front of what the lock key holds while the lock is reserved; `lua/words.lua` has it too.
pub(crate) const RESERVED: &str = "leasehold:next:";

/// In front of the owner in what the lock key holds after its lease was broken; `lua/lease.lua` has it
/// too.
pub(crate) const BROKEN: &str = "leasehold:broken:";

/// Behind the identity of one who waits for the lock in shared mode; `lua/words.lua` has it too.
const SHARED_MARK: &str = "/s";

/// Behind the identity of one who waits for a permit, and in front of their number; `lua/queue.lua` has
/// it too.
const PERMIT_MARK: &str = "/p";

/// What the member knows about its set: one for each database, whatever the prefix of the locks.
pub(crate) const CARD: &str = "leasehold:card";

/// How long a counter outlives the last use of its lock; `lua/words.lua` has it too.
pub(crate) const REST_MS: u64 = 7 * 24 * 60 * 60 * 1000;

/// The records of one lock, all in one slot of a cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Records<'k> {
    lock: Cow<'k, str>,
    /// What decides the slot, within `lock`: each name of a record has it.
    tag: Range<usize>,
}

impl<'k> Records<'k> {
    pub(crate) fn of(prefix: &str, key: &'k Key) -> Self {
        // Mostly there is no prefix, and a name need not be put together for each request.
        Self::at(if prefix.is_empty() {
            Cow::Borrowed(key.as_str())
        } else {
            Cow::Owned([prefix, key.as_str()].concat())
        })
    }

    /// Those of the lock whose key at the server is `lock`.
    pub(crate) fn at(lock: impl Into<Cow<'k, str>>) -> Self {
        let lock = lock.into();
        let tag = hash_tag(&lock);
        Self { lock, tag }
    }

    /// The lock key.
    pub(crate) fn lock(&self) -> &str {
        &self.lock
    }

    pub(crate) fn fence(&self) -> Record<'_> {
        self.named("leasehold:fence:0:{")
    }

    pub(crate) fn readers(&self) -> Record<'_> {
        self.named("leasehold:readers:{")
    }

    pub(crate) fn slots(&self) -> Record<'_> {
        self.named("leasehold:slots:{")
    }

    pub(crate) fn queue(&self) -> Record<'_> {
        self.named("leasehold:queue:{")
    }

    pub(crate) fn offered(&self) -> Record<'_> {
        self.named("leasehold:offered:{")
    }

    /// How the lock was broken last.
    pub(crate) fn broken(&self) -> Record<'_> {
        self.named("leasehold:broken:{")
    }

    pub(crate) fn record(&self) -> Record<'_> {
        self.named("leasehold:record:{")
    }

    pub(crate) fn stamp(&self) -> Record<'_> {
        self.named("leasehold:stamp:{")
    }

    fn named<'a>(&'a self, kind: &'static str) -> Record<'a> {
        [kind, &self.lock[self.tag.clone()], "}:", &self.lock]
    }
}

/// The parts of a name, put together where they are needed.
pub(crate) type Record<'a> = [&'a str; 4];

/// What decides the slot of `key`: the text between the first `{` and the next `}` unless that is
/// empty, else the whole key (Redis Cluster specification, "Hash tags").
pub(crate) fn hash_tag(key: &str) -> Range<usize> {
    let place = |of: u8, from: usize| {
        let rest = key.as_bytes().get(from..)?;
        Some(from + rest.iter().position(|byte| *byte == of)?)
    };
    let open = place(b'{', 0);
    let close = open.and_then(|open| place(b'}', open));
    match (open, close) {
        (Some(open), Some(close)) if open + 1 < close => open + 1..close,
        _ => 0..key.len(),
    }
}

/// Where a client says who it is.
pub(crate) fn client_record(client: ClientId) -> String {
    format!("leasehold:client:{client}")
}

/// The channel on which a client is told what concerns its waiters; `lua/words.lua` has it too.
pub(crate) fn inbox(client: ClientId) -> String {
    format!("leasehold:inbox:{client}")
}

/// An entry of the queue.
pub(crate) fn read_entry(text: &str) -> Option<(Owner, Mode)> {
    let (waiter, mode) = match (text.strip_suffix(SHARED_MARK), text.split_once(PERMIT_MARK)) {
        (Some(waiter), _) => (waiter, Mode::Shared),
        (None, Some((waiter, count))) => (waiter, Mode::Permit(read_permits(count)?)),
        (None, None) => (text, Mode::Exclusive),
    };
    Some((waiter.parse().ok()?, mode))
}

fn read_permits(text: &str) -> Option<Permits> {
    let permits = Permits::new(text.parse().ok()?).ok()?;
    (permits.to_string() == text).then_some(permits)
}

/// What a lock key holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LockValue {
    /// One holder of ours.
    Owner(Owner),
    /// Readers.
    Shared,
    /// Owners of some of so many permits.
    Permits(Permits),
    /// Nobody yet: it is kept for the one whose turn it is.
    Reserved(Ticket, Mode),
    /// Nobody any more: an operator broke the lease of this owner.
    Broken(Owner),
    /// A token of another library.
    Foreign(Form),
}

impl LockValue {
    pub(crate) fn read(value: &[u8]) -> Self {
        match std::str::from_utf8(value) {
            Ok(SHARED) => Self::Shared,
            Ok(text) => Self::read_text(text).unwrap_or_else(|| Self::Foreign(Form::of(value))),
            Err(_) => Self::Foreign(Form::Text),
        }
    }

    fn read_text(text: &str) -> Option<Self> {
        if let Some(permits) = text.strip_prefix(PERMITS) {
            return read_permits(permits).map(Self::Permits);
        }
        if let Some(owner) = text.strip_prefix(BROKEN) {
            return owner.parse().ok().map(Self::Broken);
        }
        if let Some((ticket, mode)) = read_reservation(text) {
            return Some(Self::Reserved(ticket, mode));
        }
        text.parse().ok().map(Self::Owner)
    }
}

fn read_reservation(text: &str) -> Option<(Ticket, Mode)> {
    let (since, entry) = text.strip_prefix(RESERVED)?.split_once(':')?;
    let since = WallTime::from_micros(since.parse().ok()?);
    let (waiter, mode) = read_entry(entry)?;
    Some((Ticket { since, waiter }, mode))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn records(prefix: &str, name: &str) -> Records<'static> {
        Records::at([prefix, name].concat())
    }

    #[test]
    fn the_key_of_a_lock_is_its_name_behind_the_prefix() {
        let name = Key::new("deploy").unwrap();
        assert_eq!(Records::of("", &name), records("", "deploy"));
        assert_eq!(Records::of("app:", &name), records("app:", "deploy"));
    }

    #[test]
    fn the_records_of_a_lock_share_its_slot() {
        let plain = records("", "deploy");
        assert_eq!(plain.lock(), "deploy");
        assert_eq!(plain.fence().concat(), "leasehold:fence:0:{deploy}:deploy");
        assert_eq!(
            plain.readers().concat(),
            "leasehold:readers:{deploy}:deploy"
        );
        assert_eq!(plain.slots().concat(), "leasehold:slots:{deploy}:deploy");
        assert_eq!(plain.queue().concat(), "leasehold:queue:{deploy}:deploy");
        assert_eq!(
            plain.offered().concat(),
            "leasehold:offered:{deploy}:deploy"
        );
        assert_eq!(plain.broken().concat(), "leasehold:broken:{deploy}:deploy");
        assert_eq!(plain.record().concat(), "leasehold:record:{deploy}:deploy");
        assert_eq!(plain.stamp().concat(), "leasehold:stamp:{deploy}:deploy");
        let tagged = records("app:", "{user7}/cart");
        assert_eq!(tagged.lock(), "app:{user7}/cart");
        assert_eq!(
            tagged.fence().concat(),
            "leasehold:fence:0:{user7}:app:{user7}/cart"
        );
        for (key, tag) in [
            ("a{}b{c}", "a{}b{c}"),
            ("a{b", "a{b"),
            ("a}b{c}d}", "c"),
            ("{{b}", "{b"),
        ] {
            assert_eq!(&key[hash_tag(key)], tag, "{key}");
        }
    }

    #[test]
    fn the_scripts_use_the_same_words() {
        let lua = include_str!("lua/lease.lua");
        assert!(lua.contains(&format!("local SHARED = '{SHARED}'\n")));
        assert!(lua.contains(&format!("local PERMITS = '{PERMITS}'\n")));
        assert!(lua.contains(&format!("local BROKEN = '{BROKEN}'\n")));
        assert!(lua.contains("  return 'leasehold:' .. mode\n"));
        let permits = Permits::new(3).unwrap();
        for (mode, sentinel) in [
            (Mode::Shared, SHARED.to_owned()),
            (Mode::Permit(permits), format!("{PERMITS}3")),
        ] {
            assert_eq!(format!("leasehold:{}", crate::lease::word(mode)), sentinel);
        }
        let lua = include_str!("lua/queue.lua");
        assert!(lua.contains(&format!("local PERMIT_MARK = '{PERMIT_MARK}'\n")));
        let lua = include_str!("lua/words.lua");
        assert!(lua.contains(&format!("local COUNTER = '{COUNTER}'\n")));
        assert!(lua.contains(&format!("local RESERVED = '{RESERVED}'\n")));
        assert!(lua.contains("local REST_MS = 7 * 24 * 60 * 60 * 1000\n"));
        assert_eq!(REST_MS, 604_800_000);
        for ours in [SHARED, PERMITS, RESERVED] {
            assert!(ours.starts_with("leasehold:"), "{ours}");
        }
        assert!(lua.contains("local OURS = 'leasehold:'\n"));
        let client = "0123456789abcdef";
        let inbox = inbox(client.parse().unwrap());
        let inbox = inbox.strip_suffix(client).unwrap();
        assert!(lua.contains(&format!("local INBOX = '{inbox}'\n")));
        assert!(lua.contains(&format!("local SHARED_MARK = '{SHARED_MARK}'\n")));
        assert!(lua.contains(&format!("local CLIENT_LENGTH = {}\n", client.len())));
        let waiter = format!("{:016x}.{:032x}", 7, 9);
        assert!(lua.contains(&format!("local WAITER_LENGTH = {}\n", waiter.len())));
        let reservation = leasehold::RESERVATION.as_millis();
        assert!(lua.contains(&format!("local RESERVATION_MS = {reservation}\n")));
    }

    #[test]
    fn values_of_other_libraries_are_foreign() {
        assert_eq!(LockValue::read(b"leasehold:shared"), LockValue::Shared);
        assert_eq!(LockValue::read(b"\xff\x00"), LockValue::Foreign(Form::Text));
        assert_eq!(LockValue::read(b"job-1"), LockValue::Foreign(Form::Text));
        let damaged = LockValue::read(b"leasehold:broken:by ann");
        assert_eq!(damaged, LockValue::Foreign(Form::Text));
        for damaged in [
            "leasehold:permits:",
            "leasehold:permits:+3",
            "leasehold:permits:0",
        ] {
            assert_eq!(
                LockValue::read(damaged.as_bytes()),
                LockValue::Foreign(Form::Text)
            );
        }
        let three = LockValue::Permits(Permits::new(3).unwrap());
        assert_eq!(LockValue::read(b"leasehold:permits:3"), three);
        let owner = format!("{:016x}.{:032x}", 7, 9);
        let parsed = owner.parse().unwrap();
        assert_eq!(LockValue::read(owner.as_bytes()), LockValue::Owner(parsed));
        let broken = format!("leasehold:broken:{owner}");
        let read = LockValue::read(broken.as_bytes());
        assert_eq!(read, LockValue::Broken(parsed));
    }

    #[test]
    fn a_reservation_is_read_whole_or_is_foreign() {
        let waiter = format!("{:016x}.{:032x}", 7, 9);
        let ticket = Ticket {
            since: WallTime::from_micros(1_763_637_400_000_001),
            waiter: waiter.parse().unwrap(),
        };
        let most = Mode::Permit(Permits::new(Permits::MAX).unwrap());
        for (mark, mode) in [("", Mode::Exclusive), ("/s", Mode::Shared), ("/p128", most)] {
            let value = format!("leasehold:next:1763637400000001:{waiter}{mark}");
            let reserved = LockValue::Reserved(ticket, mode);
            assert_eq!(LockValue::read(value.as_bytes()), reserved);
        }
        for wrong in [
            "leasehold:next:",
            "leasehold:next:7:",
            "leasehold:next:7:somebody",
            &format!("leasehold:next::{waiter}"),
            &format!("leasehold:next:7:{waiter}/x"),
            &format!("leasehold:next:7:{waiter}/s/s"),
            &format!("leasehold:next:7:{waiter}/p"),
            &format!("leasehold:next:7:{waiter}/p0"),
            &format!("leasehold:next:7:{waiter}/p03"),
            &format!("leasehold:next:7:{waiter}/p129"),
            &format!("leasehold:next:7:{waiter}/p3/s"),
        ] {
            let read = LockValue::read(wrong.as_bytes());
            assert_eq!(read, LockValue::Foreign(Form::Text), "{wrong}");
        }
    }
}
