//! The names of keys, and the ids of leases.
#![deny(clippy::disallowed_types)]

use std::time::Duration;

use leasehold::Key;
use leasehold::clock::WallTime;
use leasehold::look::{BreakRecord, Owner};
use leasehold::store::RECORD_MEMORY;

/// The names of the keys under one prefix. The keys of a lock lie in a directory called like the lock, as those of
/// `etcdctl lock` and of Go's `concurrency.Mutex` do.
#[derive(Clone, Debug)]
pub(crate) struct Names {
    prefix: String,
}

/// Which of the three parts of a lock's directory a key is in. The parts follow each other in the order of keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Position {
    /// A writer or a permit in the queue: the lease id alone, as other clients write it.
    Queue,
    /// A reader in the queue.
    Reader,
    /// A holder that went ahead of the queue. All others come after it, also with lower revisions.
    Ahead,
}

/// What the keys of records begin with, after the prefix.
const RECORD: &str = "leasehold:record/";

/// A range of keys: its first key, and the first key after it.
pub(crate) type Range = (Vec<u8>, Vec<u8>);

impl Position {
    const READER: &'static str = "r";
    const AHEAD: &'static str = "s";

    fn letter(self) -> &'static str {
        match self {
            Self::Queue => "",
            Self::Reader => Self::READER,
            Self::Ahead => Self::AHEAD,
        }
    }
}

impl Names {
    pub(crate) fn new(prefix: &str) -> Self {
        let prefix = prefix.to_owned();
        Self { prefix }
    }

    /// Returns the key with this number in the directory of a lock. Numbers are random, and used again.
    pub(crate) fn entry(&self, lock: &Key, position: Position, number: i64) -> Vec<u8> {
        let letter = position.letter();
        self.directory(lock, &format!("{letter}{number:x}"))
    }

    /// Returns the writers and permits in the queue of a lock. Hexadecimal digits sort before `g`.
    pub(crate) fn writers(&self, lock: &Key) -> Range {
        (self.directory(lock, "0"), self.directory(lock, "g"))
    }

    /// Returns the holders of a lock that went ahead of its queue.
    pub(crate) fn ahead(&self, lock: &Key) -> Range {
        (
            self.directory(lock, Position::AHEAD),
            self.directory(lock, "t"),
        )
    }

    /// Returns all keys of a lock. The keys of locks whose names begin with this one and a slash can lie among them.
    pub(crate) fn all(&self, lock: &Key) -> Range {
        (self.directory(lock, "0"), self.directory(lock, "t"))
    }

    /// Returns all keys of locks whose names begin with `start`.
    pub(crate) fn starting_with(&self, start: &str) -> Range {
        let first = format!("{}{start}", self.prefix).into_bytes();
        let mut end = first.clone();
        // The first key after all that begin so. An empty prefix has none: a zero byte stands for the end.
        while let Some(last) = end.pop() {
            if last < u8::MAX {
                end.push(last + 1);
                break;
            }
        }
        if end.is_empty() {
            end.push(0);
        }
        (if first.is_empty() { vec![0] } else { first }, end)
    }

    /// Returns the key with the last fence of a lock.
    pub(crate) fn fence(&self, lock: &Key) -> Vec<u8> {
        self.own("fence", lock)
    }

    /// Returns the key with the last break of a lock.
    pub(crate) fn last_break(&self, lock: &Key) -> Vec<u8> {
        self.own("broken", lock)
    }

    /// Returns the key with the value of a lock's record.
    pub(crate) fn record(&self, lock: &Key) -> Vec<u8> {
        self.own("record", lock)
    }

    /// Returns the keys of the records of locks whose names begin with `start`.
    pub(crate) fn records(&self, start: &str) -> Range {
        self.starting_with(&format!("{RECORD}{start}"))
    }

    /// Returns the lock whose record has this key.
    pub(crate) fn lock_of_record(&self, key: &[u8]) -> Option<Key> {
        let rest = key.strip_prefix(self.prefix.as_bytes())?;
        let lock = std::str::from_utf8(rest).ok()?.strip_prefix(RECORD)?;
        Key::new(lock).ok()
    }

    /// Returns the key with the greatest version of a lock's record.
    pub(crate) fn record_version(&self, lock: &Key) -> Vec<u8> {
        self.own("version", lock)
    }

    /// Returns the lock, the part of its directory and the number of a key. Returns `None` for a key that
    /// is no entry of a lock.
    pub(crate) fn parse<'a>(&self, key: &'a [u8]) -> Option<(&'a str, Position, i64)> {
        let rest = key.strip_prefix(self.prefix.as_bytes())?;
        let (lock, last) = std::str::from_utf8(rest).ok()?.rsplit_once('/')?;
        let (position, digits) = if let Some(digits) = last.strip_prefix(Position::READER) {
            (Position::Reader, digits)
        } else if let Some(digits) = last.strip_prefix(Position::AHEAD) {
            (Position::Ahead, digits)
        } else {
            (Position::Queue, last)
        };
        let is_digit = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
        if !digits.bytes().all(is_digit) || lock.starts_with(Key::RESERVED_PREFIX) {
            return None;
        }
        let number = i64::from_str_radix(digits, 16).ok()?;
        Some((lock, position, number))
    }

    fn directory(&self, lock: &Key, last: &str) -> Vec<u8> {
        format!("{}{lock}/{last}", self.prefix).into_bytes()
    }

    /// No lock has such a name, so no key of a lock is called like this.
    fn own(&self, kind: &str, lock: &Key) -> Vec<u8> {
        let reserved = Key::RESERVED_PREFIX;
        format!("{}{reserved}{kind}/{lock}", self.prefix).into_bytes()
    }
}

/// Returns the random bits of an owner: a number for its key, and for a lease that the client has granted for it. No other owner has
/// the same.
pub(crate) fn random_number(owner: Owner) -> i64 {
    let (_, nonce) = owner.to_bits();
    ((nonce >> 64) as i64 & i64::MAX).max(1)
}

/// A lease that many keys of all clients share, for values that must outlive their writers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum SharedLease {
    /// For fences. They must outlive the difference between the clocks of clients.
    Fences,
    /// For the versions of records, and for breaks.
    Memory,
}

impl SharedLease {
    /// The keys that were written in one such span end together. A lease for each hour keeps their number small.
    const SPAN: Duration = Duration::from_secs(60 * 60);

    /// Returns for how long it lives after its begin: a key that is written last in the span lives for a span less.
    pub(crate) fn ttl(self) -> Duration {
        match self {
            Self::Fences => Duration::from_secs(48 * 60 * 60),
            Self::Memory => RECORD_MEMORY.max(BreakRecord::KEPT) + Self::SPAN * 2,
        }
    }

    /// Returns the span that `now` is in.
    pub(crate) fn span(now: WallTime) -> u64 {
        now.as_micros() / Self::SPAN.as_micros() as u64
    }

    /// Returns the id in this span, the same for all clients with this prefix. Users with rights on other prefixes must
    /// not share it, since a server checks the rights on all keys of a lease.
    pub(crate) fn id(self, names: &Names, span: u64) -> i64 {
        let text = format!("leasehold {self:?} {span} {}", names.prefix);
        // FNV-1a: the same in every process.
        let hash = text.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
        });
        (hash as i64 & i64::MAX).max(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(name: &str) -> Key {
        Key::new(name).unwrap()
    }

    #[test]
    fn entries_are_called_like_those_of_other_clients() {
        let names = Names::new("app/");
        let entry = |position| String::from_utf8(names.entry(&key("job"), position, 0x1f)).unwrap();
        assert_eq!(entry(Position::Queue), "app/job/1f");
        assert_eq!(entry(Position::Reader), "app/job/r1f");
        assert_eq!(entry(Position::Ahead), "app/job/s1f");
        for position in [Position::Queue, Position::Reader, Position::Ahead] {
            let entry = names.entry(&key("a/b"), position, i64::MAX);
            assert_eq!(names.parse(&entry), Some(("a/b", position, i64::MAX)));
        }
    }

    #[test]
    fn key_of_a_record_leads_to_its_lock() {
        let names = Names::new("app/");
        let lock = key("a/b");
        let record = names.record(&lock);
        let (first, end) = names.records("a/");
        assert!(first < record && record < end);
        assert_eq!(names.lock_of_record(&record), Some(lock.clone()));
        for other in [names.record_version(&lock), names.fence(&lock)] {
            assert_eq!(names.lock_of_record(&other), None);
        }
    }

    #[test]
    fn other_keys_are_no_entries() {
        let names = Names::new("");
        for other in [
            "job",
            "job/",
            "job/config",
            "job/rr1",
            "job/1F",
            "job/r",
            "job/11111111111111111",
            "leasehold:fence/job/1f",
        ] {
            assert_eq!(names.parse(other.as_bytes()), None, "{other}");
        }
        assert_eq!(Names::new("app/").parse(b"job/1f"), None);
    }

    #[test]
    fn parts_of_a_directory_follow_each_other() {
        let (names, job) = (Names::new("p"), key("job"));
        let is_in = |range: &Range, key: &Vec<u8>| range.0 <= *key && *key < range.1;
        let entry = |position, lease| names.entry(&job, position, lease);
        for lease in [0, 9, 0xa, 0xffff, i64::MAX] {
            let [queue, reader, ahead] =
                [Position::Queue, Position::Reader, Position::Ahead].map(|p| entry(p, lease));
            let writers = names.writers(&job);
            assert!(is_in(&writers, &queue) && !is_in(&writers, &reader));
            let before = names.ahead(&job);
            assert!(is_in(&before, &ahead) && !is_in(&before, &reader));
            let all = names.all(&job);
            assert!(
                [&queue, &reader, &ahead]
                    .into_iter()
                    .all(|key| is_in(&all, key))
            );
        }
    }

    #[test]
    fn ranges_of_names_end_after_the_last_one() {
        let names = Names::new("");
        assert_eq!(names.starting_with("ab"), (b"ab".to_vec(), b"ac".to_vec()));
        assert_eq!(names.starting_with(""), (vec![0], vec![0]));
        let start = "a\u{10ffff}";
        let (first, end) = names.starting_with(start);
        assert!(first < end && end > format!("{start}z").into_bytes());
    }

    #[test]
    fn shared_leases_change_each_hour() {
        let at = |lease: SharedLease, prefix: &str, seconds: u64| {
            let now = WallTime::from_micros(seconds * 1_000_000);
            lease.id(&Names::new(prefix), SharedLease::span(now))
        };
        let first = at(SharedLease::Fences, "", 3600);
        assert_eq!(at(SharedLease::Fences, "", 7199), first);
        assert_ne!(at(SharedLease::Fences, "", 7200), first);
        assert_ne!(at(SharedLease::Fences, "x", 3600), first);
        assert_ne!(at(SharedLease::Memory, "", 3600), first);
    }
}
