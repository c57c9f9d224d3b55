//! The rules of one record, for every store that decides on its own: pure.
#![deny(clippy::disallowed_types)]

use std::fmt;
use std::sync::Arc;

use super::{Opened, RECORD_MEMORY, Reading, RecordWrite, Version, WriteOutcome, Written};
use crate::env::clock::Moment;
use crate::types::Fence;

/// The record of one key in a store that keeps [records](crate::store::Records): the greatest version and the value.
///
/// It takes each request and the store's time, and decides as P1 to P5 demand. `T` is the type of that
/// time. Its clock must keep running for as long as the record is kept. A store that keeps the record
/// elsewhere reads and restores its public fields.
///
/// # Examples
///
/// ```
/// use std::time::Duration;
/// use leasehold::clock::WallTime;
/// use leasehold::Fence;
/// use leasehold::store::{RecordState, RecordWrite, Version, WriteOutcome};
///
/// let fence = |number| Fence::new(number).unwrap();
/// let now = WallTime::from_micros(0);
/// let mut slot = RecordState::default();
/// slot.open(fence(7), now);
/// let late = Version { fence: fence(6), step: 1 };
/// let late = RecordWrite::new(late, *b"late", Duration::from_secs(60))?;
/// assert_eq!(slot.write(&late, now), WriteOutcome::Superseded(fence(7)));
/// # Ok::<(), leasehold::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordState<T> {
    /// The greatest version so far, and until when the store remembers it. Opening with a fence counts as the
    /// step before its first write.
    pub seen: Option<(Version, T)>,
    /// The current value.
    pub value: Option<KeptValue<T>>,
}

/// A value in a [`RecordState`].
#[derive(Clone, PartialEq, Eq)]
pub struct KeptValue<T> {
    /// The fence and the step of its writer.
    pub version: Version,
    /// Until when it is kept.
    pub end: T,
    /// The value.
    pub bytes: Arc<[u8]>,
}

impl<T: Moment> RecordState<T> {
    /// Opens the record and shuts out smaller fences, unless it has seen a greater one.
    pub fn open(&mut self, fence: Fence, now: T) -> Opened {
        self.expire(now);
        let opening = Version { fence, step: 0 };
        let greatest = self
            .greatest()
            .map_or(opening, |version| version.max(opening));
        if greatest.fence > fence {
            return Opened::Superseded(greatest.fence);
        }
        self.see(greatest, now);
        Opened::Open(self.read(now))
    }

    /// Writes the record, unless it has seen a greater version.
    pub fn write(&mut self, write: &RecordWrite, now: T) -> WriteOutcome {
        self.expire(now);
        match self.greatest() {
            Some(greatest) if greatest > write.version => WriteOutcome::Superseded(greatest.fence),
            _ => {
                self.see(write.version, now);
                self.value = Some(KeptValue {
                    version: write.version,
                    end: now.after(write.retention),
                    bytes: Arc::clone(&write.bytes),
                });
                WriteOutcome::Written
            }
        }
    }

    /// Returns the current value.
    pub fn read(&self, now: T) -> Reading {
        let value = self.value.as_ref().filter(|value| now < value.end);
        Reading::settled(value.map(|value| {
            let bytes = Arc::clone(&value.bytes);
            Written::new(value.version, bytes, value.end.since(now))
        }))
    }

    /// Returns whether the record holds nothing that the store must remember.
    pub fn is_over(&self, now: T) -> bool {
        let seen = self.seen.map(|(_, end)| end);
        let ends = seen.max(self.value.as_ref().map(|value| value.end));
        ends.is_none_or(|end| now >= end)
    }

    fn expire(&mut self, now: T) {
        self.seen.take_if(|(_, end)| now >= *end);
        self.value.take_if(|value| now >= value.end);
    }

    /// The version of the value counts too: a value is often kept for longer than `seen`.
    fn greatest(&self) -> Option<Version> {
        let seen = self.seen.map(|(version, _)| version);
        seen.max(self.value.as_ref().map(|value| value.version))
    }

    fn see(&mut self, version: Version, now: T) {
        self.seen = Some((version, now.after(RECORD_MEMORY)));
    }
}

impl<T> Default for RecordState<T> {
    /// A record that has not been opened or written.
    fn default() -> Self {
        Self {
            seen: None,
            value: None,
        }
    }
}

impl<T: fmt::Debug> fmt::Debug for KeptValue<T> {
    /// Omits the bytes: they may be anyone's data.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KeptValue")
            .field("version", &self.version)
            .field("end", &self.end)
            .field("bytes", &self.bytes.len())
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::env::clock::{BootInstant, WallTime};

    fn fence(number: u64) -> Fence {
        Fence::new(number).unwrap()
    }

    fn version(number: u64, step: u32) -> Version {
        let fence = fence(number);
        Version { fence, step }
    }

    fn write(version: Version, seconds: u64) -> RecordWrite {
        RecordWrite::new(version, *b"x", Duration::from_secs(seconds)).unwrap()
    }

    fn at(seconds: u64) -> WallTime {
        WallTime::from_micros(seconds * 1_000_000)
    }

    const WEEK: u64 = 7 * 24 * 60 * 60;

    #[test]
    fn value_expires_before_its_writer_is_forgotten() {
        let mut slot = RecordState::default();
        assert_eq!(
            slot.write(&write(version(7, 1), 60), at(100)),
            WriteOutcome::Written
        );
        let written = slot.read(at(159)).written.unwrap();
        assert_eq!(written.remaining, Duration::from_secs(1));
        assert_eq!(slot.read(at(160)).written, None);
        let late = slot.open(fence(6), at(160));
        assert_eq!(late, Opened::Superseded(fence(7)));
        assert_eq!(slot.value, None, "what is over is dropped");
        assert!(!slot.is_over(at(99 + WEEK)));
        assert!(slot.is_over(at(100 + WEEK)));
        let opened = slot.open(fence(6), at(100 + WEEK));
        assert_eq!(opened, Opened::Open(Reading::settled(None)));
    }

    #[test]
    fn value_rejects_smaller_versions_after_forgetting() {
        let mut slot = RecordState::default();
        slot.write(&write(version(7, 2), 2 * WEEK), at(0));
        let later = at(WEEK);
        let shut_out = WriteOutcome::Superseded(fence(7));
        for late in [version(6, 9), version(7, 1)] {
            assert_eq!(slot.write(&write(late, 60), later), shut_out);
            assert!(slot.seen.is_none() && slot.value.is_some());
        }
        let opened = slot.clone().open(fence(6), later);
        assert_eq!(opened, Opened::Superseded(fence(7)));
        assert!(!slot.is_over(later));
        // Opened again, it remembers the step, too, for another week.
        let opened = slot.open(fence(7), later);
        assert_eq!(opened, Opened::Open(slot.read(later)));
        assert_eq!(slot.seen, Some((version(7, 2), at(2 * WEEK))));
        assert_eq!(
            slot.write(&write(version(7, 3), 60), later),
            WriteOutcome::Written
        );
    }

    #[test]
    fn greatest_version_rejects_only_smaller_ones() {
        let mut slot = RecordState::default();
        let now = BootInstant::from_nanos(0);
        slot.write(&write(version(7, 2), 60), now);
        slot.open(fence(8), now);
        let before = slot.clone();
        for late in [version(7, 3), version(6, 1)] {
            let shut_out = WriteOutcome::Superseded(fence(8));
            assert_eq!(slot.write(&write(late, 60), now), shut_out);
        }
        assert_eq!(slot.open(fence(7), now), Opened::Superseded(fence(8)));
        assert_eq!(slot, before, "who is shut out changes nothing");
        for step in [1, 1, 2] {
            assert_eq!(
                slot.write(&write(version(8, step), 60), now),
                WriteOutcome::Written
            );
        }
        let shut_out = WriteOutcome::Superseded(fence(8));
        assert_eq!(slot.write(&write(version(8, 1), 60), now), shut_out);
    }

    #[test]
    fn a_value_does_not_show_in_debug() {
        let mut slot = RecordState::default();
        let secret = RecordWrite::new(version(7, 1), *b"secret", RECORD_MEMORY).unwrap();
        slot.write(&secret, at(0));
        let shown = format!("{slot:?}");
        assert!(shown.contains("7") && shown.contains("bytes: 6"), "{shown}");
        assert!(!shown.contains("115"), "{shown}");
    }
}
