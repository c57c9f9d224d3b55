//! The format of a record file. Pure logic, without I/O.
//!
//! A writer writes a whole new file next to the old one and puts it in its place, so a reader never
//! finds part of a file. The checksum detects damage by disks and people.

use leasehold::clock::WallTime;
use leasehold::store::{KeptValue, RecordState, Version};
use leasehold::{Fence, Key};

use crate::format::file_name;

/// One key's record, by the wall clock, which goes on over a restart.
pub(crate) type Content = RecordState<WallTime>;

/// Why a record file cannot be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Damage {
    /// Its checksum, its beginning or its length is wrong.
    Broken,
    /// It is the record of another key.
    OtherKey,
    /// A later version wrote it.
    Version(u32),
}

/// Reads the file of `key`'s record, or of any key's record if `key` is `None`. An empty file was
/// made and not yet written.
pub(crate) fn decode(bytes: &[u8], key: Option<&Key>) -> Result<Content, Damage> {
    if bytes.is_empty() {
        return Ok(Content::default());
    }
    let mut fields = Fields(bytes);
    if fields.take(MAGIC.len())? != MAGIC {
        return Err(Damage::Broken);
    }
    let version = fields.u32()?;
    if version != VERSION {
        return Err(Damage::Version(version));
    }
    let (whole, checksum) = bytes.split_at(bytes.len() - CHECKSUM_LENGTH);
    if crc32fast::hash(whole).to_le_bytes() != checksum {
        return Err(Damage::Broken);
    }
    let hash = fields.take(HASH_LENGTH)?;
    if key.is_some_and(|key| hash != file_name::hash(key)) {
        return Err(Damage::OtherKey);
    }
    let seen = fields.version()?;
    let value = fields.version()?;
    let length = bytes.len() - fields.0.len();
    let value = value.map(|(version, end)| KeptValue {
        version,
        end,
        bytes: whole[length..].into(),
    });
    Ok(Content { seen, value })
}

/// The bytes of the file.
pub(crate) fn encode(content: &Content, key: &Key) -> Vec<u8> {
    let mut bytes = MAGIC.to_vec();
    bytes.extend(VERSION.to_le_bytes());
    bytes.extend(file_name::hash(key));
    let value = content.value.as_ref();
    for version in [content.seen, value.map(|value| (value.version, value.end))] {
        let (fence, step, end) = version.map_or((0, 0, 0), |(version, end)| {
            (version.fence.get(), version.step, end.as_micros())
        });
        bytes.extend(fence.to_le_bytes());
        bytes.extend(step.to_le_bytes());
        bytes.extend(end.to_le_bytes());
    }
    if let Some(value) = value {
        bytes.extend(&*value.bytes);
    }
    let checksum = crc32fast::hash(&bytes);
    bytes.extend(checksum.to_le_bytes());
    bytes
}

/// The part of a file that is not read yet.
struct Fields<'a>(&'a [u8]);

impl<'a> Fields<'a> {
    fn take(&mut self, count: usize) -> Result<&'a [u8], Damage> {
        // The checksum is behind all fields.
        if self.0.len() < count + CHECKSUM_LENGTH {
            return Err(Damage::Broken);
        }
        let (taken, rest) = self.0.split_at(count);
        self.0 = rest;
        Ok(taken)
    }

    fn u32(&mut self) -> Result<u32, Damage> {
        let bytes = self.take(4)?.try_into().map_err(|_| Damage::Broken)?;
        Ok(u32::from_le_bytes(bytes))
    }

    fn u64(&mut self) -> Result<u64, Damage> {
        let bytes = self.take(8)?.try_into().map_err(|_| Damage::Broken)?;
        Ok(u64::from_le_bytes(bytes))
    }

    /// A version with its end; a fence of 0 is none.
    fn version(&mut self) -> Result<Option<(Version, WallTime)>, Damage> {
        let (fence, step, end) = (self.u64()?, self.u32()?, self.u64()?);
        let version = Fence::new(fence).map(|fence| Version { fence, step });
        Ok(version.map(|version| (version, WallTime::from_micros(end))))
    }
}

const MAGIC: &[u8] = b"LHrecord";
const VERSION: u32 = 1;
const HASH_LENGTH: usize = 32;
const CHECKSUM_LENGTH: usize = 4;

#[cfg(test)]
mod tests {
    use super::*;

    fn key(name: &str) -> Key {
        Key::new(name).unwrap()
    }

    fn at(seconds: u64) -> WallTime {
        WallTime::from_micros(seconds * 1_000_000)
    }

    fn version(fence: u64, step: u32) -> Version {
        let fence = Fence::new(fence).unwrap();
        Version { fence, step }
    }

    fn written(text: &str) -> Content {
        Content {
            seen: Some((version(7, 1), at(200))),
            value: Some(KeptValue {
                version: version(7, 1),
                end: at(100),
                bytes: text.as_bytes().into(),
            }),
        }
    }

    #[test]
    fn what_was_encoded_is_decoded() {
        let opened = Content {
            seen: Some((
                version(Fence::MAX.get(), u32::MAX),
                WallTime::from_micros(u64::MAX),
            )),
            value: None,
        };
        let mut unseen = written("x");
        unseen.seen = None;
        let contents = [
            Content::default(),
            opened,
            unseen,
            written(""),
            written("x\0y"),
        ];
        for content in contents {
            let bytes = encode(&content, &key("deploy"));
            assert_eq!(decode(&bytes, Some(&key("deploy"))), Ok(content));
        }
        assert_eq!(decode(&[], Some(&key("deploy"))), Ok(Content::default()));
    }

    #[test]
    fn no_damage_goes_unnoticed() {
        let bytes = encode(&written("what is to be kept"), &key("deploy"));
        for length in 1..bytes.len() {
            let cut = decode(&bytes[..length], Some(&key("deploy")));
            assert!(cut.is_err(), "{length} bytes: {cut:?}");
        }
        for bit in 0..bytes.len() * 8 {
            let mut flipped = bytes.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            let read = decode(&flipped, Some(&key("deploy")));
            assert!(read.is_err(), "bit {bit}: {read:?}");
        }
        let other = decode(&bytes, Some(&key("other")));
        assert_eq!(other, Err(Damage::OtherKey));
        let mut newer = bytes;
        newer[8] = 2;
        let newer = decode(&newer, Some(&key("deploy")));
        assert_eq!(newer, Err(Damage::Version(2)));
    }
}
