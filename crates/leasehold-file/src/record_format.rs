//! What a record file says: who was here last, and what is written. Pure; times are the wall clock's,
//! which goes on over a restart.
//!
//! The file is written whole, beside the old one, and put in its place: it is never found in part. The
//! checksum is for what disks and people do to it.

use std::sync::Arc;

use leasehold::clock::WallTime;
use leasehold::{Fence, Key, Opened, RECORD_MEMORY, Reading, RecordWrite, Stamp, Written, Wrote};

use crate::file_name;

/// One key's record.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct RecordContent {
    /// The greatest stamp that was here, and until when it is remembered.
    seen: Option<(Stamp, WallTime)>,
    value: Option<Value>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Value {
    stamp: Stamp,
    end: WallTime,
    bytes: Arc<[u8]>,
}

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

impl RecordContent {
    /// Reads the file of `key`'s record. An empty one was made and not yet written.
    pub(crate) fn decode(bytes: &[u8], key: &Key) -> Result<Self, Damage> {
        Self::decode_of(bytes, Some(key))
    }

    /// Whether the file, of whichever key, says nothing any more.
    pub(crate) fn is_over(bytes: &[u8], now: WallTime) -> bool {
        Self::decode_of(bytes, None).is_ok_and(|content| content.at(now) == Self::default())
    }

    fn decode_of(bytes: &[u8], key: Option<&Key>) -> Result<Self, Damage> {
        if bytes.is_empty() {
            return Ok(Self::default());
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
        let seen = fields.stamp()?;
        let value = fields.stamp()?;
        let length = bytes.len() - fields.0.len();
        let value = value.map(|(stamp, end)| Value {
            stamp,
            end,
            bytes: whole[length..].into(),
        });
        Ok(Self { seen, value })
    }

    /// The bytes of the file.
    pub(crate) fn encode(&self, key: &Key) -> Vec<u8> {
        let mut bytes = MAGIC.to_vec();
        bytes.extend(VERSION.to_le_bytes());
        bytes.extend(file_name::hash(key));
        let value = self.value.as_ref();
        for stamp in [self.seen, value.map(|value| (value.stamp, value.end))] {
            let (fence, step, end) = stamp.map_or((0, 0, 0), |(stamp, end)| {
                (stamp.fence.get(), stamp.step, end.as_micros())
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

    /// The same without what is over.
    pub(crate) fn at(mut self, now: WallTime) -> Self {
        self.seen.take_if(|(_, end)| now >= *end);
        self.value.take_if(|value| now >= value.end);
        self
    }

    pub(crate) fn open(&mut self, fence: Fence, now: WallTime) -> Opened {
        let greatest = self.greatest();
        if let Some(greatest) = greatest.filter(|greatest| greatest.fence > fence) {
            return Opened::Superseded(greatest.fence);
        }
        let opening = Stamp { fence, step: 0 };
        self.see(
            greatest.map_or(opening, |greatest| greatest.max(opening)),
            now,
        );
        Opened::Open(self.read(now))
    }

    pub(crate) fn write(&mut self, write: &RecordWrite, now: WallTime) -> Wrote {
        match self.greatest() {
            Some(greatest) if greatest > write.stamp => Wrote::Superseded(greatest.fence),
            _ => {
                self.see(write.stamp, now);
                self.value = Some(Value {
                    stamp: write.stamp,
                    end: later(now, write.retention),
                    bytes: Arc::clone(&write.bytes),
                });
                Wrote::Written
            }
        }
    }

    pub(crate) fn read(&self, now: WallTime) -> Reading {
        Reading::settled(self.value.as_ref().map(|value| {
            let remaining = value.end.distance(now);
            Written::new(value.stamp, Arc::clone(&value.bytes), remaining)
        }))
    }

    /// A value is often kept for longer than it is remembered who was here.
    fn greatest(&self) -> Option<Stamp> {
        let seen = self.seen.map(|(stamp, _)| stamp);
        seen.max(self.value.as_ref().map(|value| value.stamp))
    }

    fn see(&mut self, stamp: Stamp, now: WallTime) {
        self.seen = Some((stamp, later(now, RECORD_MEMORY)));
    }
}

fn later(now: WallTime, span: std::time::Duration) -> WallTime {
    let micros = u64::try_from(span.as_micros()).unwrap_or(u64::MAX);
    WallTime::from_micros(now.as_micros().saturating_add(micros))
}

/// What is left of a file to be read.
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

    /// A stamp with its end; a fence of 0 is none.
    fn stamp(&mut self) -> Result<Option<(Stamp, WallTime)>, Damage> {
        let (fence, step, end) = (self.u64()?, self.u32()?, self.u64()?);
        let stamp = Fence::new(fence).map(|fence| Stamp { fence, step });
        Ok(stamp.map(|stamp| (stamp, WallTime::from_micros(end))))
    }
}

const MAGIC: &[u8] = b"LHrecord";
const VERSION: u32 = 1;
const HASH_LENGTH: usize = 32;
const CHECKSUM_LENGTH: usize = 4;

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn key(name: &str) -> Key {
        Key::new(name).unwrap()
    }

    fn at(seconds: u64) -> WallTime {
        WallTime::from_micros(seconds * 1_000_000)
    }

    fn stamp(fence: u64, step: u32) -> Stamp {
        let fence = Fence::new(fence).unwrap();
        Stamp { fence, step }
    }

    fn written(text: &str) -> RecordContent {
        let mut content = RecordContent::default();
        let write = RecordWrite::new(stamp(7, 1), text.as_bytes(), Duration::from_secs(60));
        assert_eq!(content.write(&write.unwrap(), at(100)), Wrote::Written);
        content
    }

    #[test]
    fn what_was_encoded_is_decoded() {
        let mut opened = RecordContent::default();
        opened.open(Fence::MAX, at(1));
        for content in [
            RecordContent::default(),
            opened,
            written(""),
            written("x\0y"),
        ] {
            let bytes = content.encode(&key("deploy"));
            assert_eq!(RecordContent::decode(&bytes, &key("deploy")), Ok(content));
        }
        assert_eq!(
            RecordContent::decode(&[], &key("deploy")),
            Ok(RecordContent::default())
        );
    }

    #[test]
    fn no_damage_goes_unnoticed() {
        let bytes = written("what is to be kept").encode(&key("deploy"));
        for length in 1..bytes.len() {
            let cut = RecordContent::decode(&bytes[..length], &key("deploy"));
            assert!(cut.is_err(), "{length} bytes: {cut:?}");
        }
        for bit in 0..bytes.len() * 8 {
            let mut flipped = bytes.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            let read = RecordContent::decode(&flipped, &key("deploy"));
            assert!(read.is_err(), "bit {bit}: {read:?}");
        }
        let other = RecordContent::decode(&bytes, &key("other"));
        assert_eq!(other, Err(Damage::OtherKey));
        let mut newer = bytes;
        newer[8] = 2;
        let newer = RecordContent::decode(&newer, &key("deploy"));
        assert_eq!(newer, Err(Damage::Version(2)));
    }

    #[test]
    fn a_value_is_over_before_who_was_here_is_forgotten() {
        let content = written("x");
        assert_eq!(content.clone().at(at(159)), content);
        let mut over = content.clone().at(at(160));
        assert_eq!(over.read(at(160)).written, None);
        let late = over.open(Fence::new(6).unwrap(), at(160));
        assert_eq!(late, Opened::Superseded(Fence::new(7).unwrap()));
        let forgotten = content.at(at(100 + 7 * 86_400));
        assert_eq!(forgotten, RecordContent::default());
    }
    #[test]
    fn a_value_keeps_out_smaller_stamps_after_who_was_here_is_forgotten() {
        let write = |stamp, days: u64| {
            let retention = Duration::from_secs(days * 24 * 60 * 60);
            RecordWrite::new(stamp, *b"x", retention).unwrap()
        };
        let mut content = RecordContent::default();
        assert_eq!(
            content.write(&write(stamp(7, 2), 30), at(0)),
            Wrote::Written
        );
        let later = at(8 * 24 * 60 * 60);
        let content = content.at(later);
        let shut_out = Wrote::Superseded(stamp(7, 2).fence);
        for late in [stamp(6, 9), stamp(7, 1)] {
            assert_eq!(content.clone().write(&write(late, 1), later), shut_out);
        }
        let opened = content.clone().open(stamp(6, 1).fence, later);
        assert_eq!(opened, Opened::Superseded(stamp(7, 2).fence));
        assert_eq!(
            content.clone().write(&write(stamp(7, 3), 1), later),
            Wrote::Written
        );
    }
}
