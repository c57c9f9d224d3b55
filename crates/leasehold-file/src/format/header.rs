//! The first 2048 bytes of a lock file: two slots with the fence counter, and the key as text.
//!
//! A slot lies within one disk sector, which a disk writes whole or not at all. The two slots lie in
//! different sectors and are written in turn. So an interrupted write harms at most the older of the
//! two counters, whose successor was already granted.

use leasehold::Key;

use crate::format::file_name;

pub(crate) const LENGTH: usize = 2048;

/// What the header says about the fences granted so far.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Counter {
    /// None was granted: the file is new or empty, or its first write was interrupted.
    Fresh,
    /// The greatest one granted, and the slot that holds it.
    At { value: u64, slot: HeaderSlot },
}

impl Counter {
    pub(crate) fn value(self) -> u64 {
        match self {
            Self::Fresh => 0,
            Self::At { value, .. } => value,
        }
    }

    /// Returns the slot that the next counter goes into, and leaves the slot of the present one as it
    /// is.
    pub(crate) fn next_slot(self) -> HeaderSlot {
        match self {
            Self::At {
                slot: HeaderSlot::First,
                ..
            } => HeaderSlot::Second,
            Self::Fresh | Self::At { .. } => HeaderSlot::First,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum HeaderSlot {
    First,
    Second,
}

impl HeaderSlot {
    pub(crate) const fn offset(self) -> usize {
        match self {
            Self::First => 0,
            Self::Second => 512,
        }
    }
}

/// Why a header cannot be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Damage {
    /// No slot is whole, and the file is not a new one.
    NoSlot,
    /// The file keeps the counter of another key.
    OtherKey,
    /// A later version wrote it.
    Version(u32),
}

/// Reads the header of `key`'s file. `bytes` is the part of it that the file has.
pub(crate) fn read(bytes: &[u8], key: &Key) -> Result<Counter, Damage> {
    let hash = file_name::hash(key);
    let (first, second) = (
        read_slot(bytes, HeaderSlot::First, &hash)?,
        read_slot(bytes, HeaderSlot::Second, &hash)?,
    );
    let counter = |value, slot| Ok(Counter::At { value, slot });
    match (first, second) {
        (SlotState::Whole(first), SlotState::Whole(second)) if second > first => {
            counter(second, HeaderSlot::Second)
        }
        (SlotState::Whole(first), _) => counter(first, HeaderSlot::First),
        (_, SlotState::Whole(second)) => counter(second, HeaderSlot::Second),
        (SlotState::Blank, SlotState::Blank) if rest_is_ours(bytes, key) => Ok(Counter::Fresh),
        _ => Err(Damage::NoSlot),
    }
}

/// The bytes of a slot with `counter`.
pub(crate) fn slot(key: &Key, counter: u64) -> [u8; SLOT_LENGTH] {
    let mut bytes = [0; SLOT_LENGTH];
    bytes[..8].copy_from_slice(MAGIC);
    bytes[8..12].copy_from_slice(&VERSION.to_le_bytes());
    bytes[12..44].copy_from_slice(&file_name::hash(key));
    bytes[44..52].copy_from_slice(&counter.to_le_bytes());
    let checksum = crc32fast::hash(&bytes[..52]);
    bytes[52..].copy_from_slice(&checksum.to_le_bytes());
    bytes
}

/// The whole header of a new file, its first slot at `counter`.
pub(crate) fn fresh(key: &Key, counter: u64) -> [u8; LENGTH] {
    let mut bytes = [0; LENGTH];
    bytes[..SLOT_LENGTH].copy_from_slice(&slot(key, counter));
    let name = name(key);
    bytes[NAME_OFFSET..NAME_OFFSET + name.len()].copy_from_slice(&name);
    bytes
}

/// Encodes the key as the text at [`NAME_OFFSET`]. It is only for listing: nothing depends on it.
pub(crate) fn name(key: &Key) -> Vec<u8> {
    let text = key.as_str().as_bytes();
    // A key has at most 512 bytes.
    let mut bytes = (text.len() as u16).to_le_bytes().to_vec();
    bytes.extend_from_slice(text);
    bytes.extend_from_slice(&crc32fast::hash(text).to_le_bytes());
    bytes
}

/// The key that the header names, if the text is whole.
pub(crate) fn named_key(bytes: &[u8]) -> Option<Key> {
    let length: [u8; 2] = bytes.get(NAME_OFFSET..NAME_OFFSET + 2)?.try_into().ok()?;
    let end = NAME_OFFSET + 2 + usize::from(u16::from_le_bytes(length));
    let text = bytes.get(NAME_OFFSET + 2..end)?;
    let checksum: [u8; 4] = bytes.get(end..end + 4)?.try_into().ok()?;
    if crc32fast::hash(text) != u32::from_le_bytes(checksum) {
        return None;
    }
    Key::new(std::str::from_utf8(text).ok()?).ok()
}

pub(crate) const NAME_OFFSET: usize = 1024;
const MAGIC: &[u8; 8] = b"leasehld";
const VERSION: u32 = 1;
const SLOT_LENGTH: usize = 56;

enum SlotState {
    Blank,
    Torn,
    Whole(u64),
}

fn read_slot(bytes: &[u8], slot: HeaderSlot, hash: &[u8; 32]) -> Result<SlotState, Damage> {
    let start = slot.offset().min(bytes.len());
    let bytes = &bytes[start..(start + SLOT_LENGTH).min(bytes.len())];
    if is_blank(bytes) {
        return Ok(SlotState::Blank);
    }
    let Some((text, checksum)) = bytes.split_last_chunk::<4>() else {
        return Ok(SlotState::Torn);
    };
    let whole = bytes.len() == SLOT_LENGTH
        && text.starts_with(MAGIC)
        && crc32fast::hash(text) == u32::from_le_bytes(*checksum);
    if !whole {
        return Ok(SlotState::Torn);
    }
    let (mut version, mut counter) = ([0; 4], [0; 8]);
    version.copy_from_slice(&text[8..12]);
    counter.copy_from_slice(&text[44..52]);
    match u32::from_le_bytes(version) {
        VERSION if text[12..44] == *hash => Ok(SlotState::Whole(u64::from_le_bytes(counter))),
        VERSION => Err(Damage::OtherKey),
        later => Err(Damage::Version(later)),
    }
}

/// With two blank slots, a file is new only if no other program wrote into it. The name may be there
/// already, because sectors reach a disk in any order.
fn rest_is_ours(bytes: &[u8], key: &Key) -> bool {
    is_blank(bytes) || named_key(bytes).as_ref() == Some(key)
}

fn is_blank(bytes: &[u8]) -> bool {
    bytes.iter().all(|byte| *byte == 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key() -> Key {
        Key::new("deploy").unwrap()
    }

    fn with_slots(first: u64, second: u64) -> [u8; LENGTH] {
        let mut bytes = fresh(&key(), first);
        let second = slot(&key(), second);
        bytes[HeaderSlot::Second.offset()..][..second.len()].copy_from_slice(&second);
        bytes
    }

    fn at(value: u64, slot: HeaderSlot) -> Result<Counter, Damage> {
        Ok(Counter::At { value, slot })
    }

    #[test]
    fn greater_valid_slot_counts() {
        assert_eq!(read(&fresh(&key(), 7), &key()), at(7, HeaderSlot::First));
        assert_eq!(read(&with_slots(7, 8), &key()), at(8, HeaderSlot::Second));
        assert_eq!(read(&with_slots(9, 8), &key()), at(9, HeaderSlot::First));
        for bytes in [with_slots(7, 8), with_slots(9, 8)] {
            let Ok(Counter::At { slot, .. }) = read(&bytes, &key()) else {
                panic!("both slots are whole");
            };
            let counter = read(&bytes, &key()).unwrap();
            assert_ne!(counter.next_slot(), slot);
        }
    }

    /// No matter which part of a slot's write reached the disk, the other slot's counter is found.
    #[test]
    fn torn_write_keeps_the_other_slot() {
        let (before, after) = (with_slots(9, 8), with_slots(9, 10));
        for torn in 0..SLOT_LENGTH {
            let mut bytes = before;
            let from = HeaderSlot::Second.offset();
            bytes[from..from + torn].copy_from_slice(&after[from..from + torn]);
            let value = read(&bytes, &key()).unwrap().value();
            assert!(value == 9 || value == 10, "torn at {torn}: {value}");
        }
    }

    #[test]
    fn any_flipped_bit_of_a_slot_is_noticed() {
        let bytes = fresh(&key(), 7);
        for position in 0..SLOT_LENGTH {
            for bit in 0..8 {
                let mut damaged = bytes;
                damaged[position] ^= 1 << bit;
                assert_eq!(
                    read(&damaged, &key()),
                    Err(Damage::NoSlot),
                    "{position}.{bit}"
                );
            }
        }
    }

    #[test]
    fn empty_and_partial_first_writes_are_new() {
        let whole = fresh(&key(), 7);
        let mut only_name = whole;
        only_name[..SLOT_LENGTH].fill(0);
        for bytes in [&[][..], &[0; 10], &[0; LENGTH], &only_name] {
            assert_eq!(read(bytes, &key()), Ok(Counter::Fresh));
        }
        assert_eq!(Counter::Fresh.next_slot(), HeaderSlot::First);
    }

    #[test]
    fn foreign_content_is_damage() {
        for text in ["1234\n", "x", &"some other file. ".repeat(200)] {
            assert_eq!(read(text.as_bytes(), &key()), Err(Damage::NoSlot), "{text}");
        }
        let mut tail = [0; LENGTH];
        tail[LENGTH - 1] = 1;
        assert_eq!(read(&tail, &key()), Err(Damage::NoSlot));
    }

    #[test]
    fn other_key_and_later_version_are_distinguished() {
        let other = Key::new("Deploy").unwrap();
        assert_eq!(read(&fresh(&other, 7), &key()), Err(Damage::OtherKey));
        let mut later = slot(&key(), 7);
        later[8..12].copy_from_slice(&2_u32.to_le_bytes());
        let checksum = crc32fast::hash(&later[..52]);
        later[52..].copy_from_slice(&checksum.to_le_bytes());
        assert_eq!(read(&later, &key()), Err(Damage::Version(2)));
    }

    #[test]
    fn the_header_names_keys_of_any_length() {
        for name in ["a".to_owned(), "é/".repeat(170)] {
            let key = Key::new(name).unwrap();
            assert_eq!(named_key(&fresh(&key, 1)), Some(key));
        }
        let mut damaged = fresh(&key(), 1);
        damaged[NAME_OFFSET + 3] ^= 1;
        assert_eq!(named_key(&damaged), None);
        assert_eq!(named_key(b""), None);
    }
}
