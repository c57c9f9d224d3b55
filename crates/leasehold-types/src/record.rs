use std::fmt;
use std::num::ParseIntError;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use crate::{Error, ErrorKind, Fence, Key, exact_span};

/// The shortest time for which a store remembers the fence that opened a record, even if nothing is
/// written: as long as it remembers a key's fences.
pub const RECORD_MEMORY: Duration = Duration::from_secs(7 * 24 * 60 * 60);

/// Identifies a record.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct RecordKey {
    /// The key of the lock whose fences write it.
    pub key: Key,
    /// How long values are kept in a record that must outlive restarts and lost disks. On a quorum, only
    /// members count that keep what they acknowledged across a restart, and that have lost nothing for that
    /// long. Other stores ignore it.
    pub lasting: Option<Duration>,
}

impl RecordKey {
    /// The record of `key`, on all members that count.
    pub fn new(key: Key) -> Self {
        Self { key, lasting: None }
    }
}

/// The position of a write among all writes of its record: by fence, and for the same fence by step. Each
/// fence belongs to one writer, which counts its steps from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Version {
    /// The fence of the writer.
    pub fence: Fence,
    /// The number of this write among those of its writer.
    pub step: u32,
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.fence, self.step)
    }
}

/// The form of its `Display`: `fence.step`.
impl FromStr for Version {
    type Err = ParseIntError;

    fn from_str(text: &str) -> Result<Self, ParseIntError> {
        let (fence, step) = text.split_once('.').unwrap_or((text, ""));
        let (fence, step) = (fence.parse()?, step.parse()?);
        Ok(Self { fence, step })
    }
}

/// A value to write.
#[derive(Clone)]
pub struct RecordWrite {
    /// The position among all writes.
    pub version: Version,
    /// The value.
    pub bytes: Arc<[u8]>,
    /// How long the store keeps it.
    pub retention: Duration,
}

impl RecordWrite {
    /// The maximum size of a value, in bytes.
    pub const BYTES_MAX: usize = 1 << 20;
    /// The shortest time for which a value is kept.
    pub const RETENTION_MIN: Duration = Duration::from_secs(1);
    /// The longest time for which a value is kept: ten years.
    pub const RETENTION_MAX: Duration = Duration::from_secs(315_576_000);

    /// Returns the write, if its values obey the rules.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::InvalidInput`], which names the value and the rule.
    pub fn new(
        version: Version,
        bytes: impl Into<Arc<[u8]>>,
        retention: Duration,
    ) -> Result<Self, Error> {
        let bytes = bytes.into();
        Self::check(&bytes, retention)?;
        Ok(Self {
            version,
            bytes,
            retention,
        })
    }

    /// Checks a value and a retention against the rules.
    ///
    /// # Errors
    ///
    /// As [`new`](Self::new).
    pub fn check(bytes: &[u8], retention: Duration) -> Result<(), Error> {
        let refuse = |text: String| Err(Error::new(ErrorKind::InvalidInput, text));
        if bytes.len() > Self::BYTES_MAX {
            return refuse(format!(
                "the record has {} bytes; the maximum is {}",
                bytes.len(),
                Self::BYTES_MAX
            ));
        }
        if !(Self::RETENTION_MIN..=Self::RETENTION_MAX).contains(&retention) {
            return refuse(format!(
                "a retention of {}: it must be from {} to {}",
                exact_span(retention),
                exact_span(Self::RETENTION_MIN),
                exact_span(Self::RETENTION_MAX)
            ));
        }
        Ok(())
    }
}

impl fmt::Debug for RecordWrite {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RecordWrite")
            .field("version", &self.version)
            .field("bytes", &self.bytes.len())
            .field("retention", &self.retention)
            .finish()
    }
}

/// The value of a record. `Debug` omits its bytes: they may be anyone's data.
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Written {
    /// The fence and the step of its writer.
    pub version: Version,
    /// The value.
    pub bytes: Arc<[u8]>,
    /// How much longer the store keeps it, counted from the time of the request.
    pub remaining: Duration,
}

impl Written {
    /// Returns the value that was written with `version`.
    pub fn new(version: Version, bytes: impl Into<Arc<[u8]>>, remaining: Duration) -> Self {
        Self {
            version,
            bytes: bytes.into(),
            remaining,
        }
    }
}

impl fmt::Debug for Written {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Written")
            .field("version", &self.version)
            .field("bytes", &self.bytes.len())
            .field("remaining", &self.remaining)
            .finish()
    }
}

/// The result of reading a record.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Reading {
    /// The value with the greatest version that was found; `None` if the record is empty.
    pub written: Option<Written>,
    /// Whether every later reader finds this value, unless a greater version writes. On a quorum, a value
    /// that fewer than a majority of the members have is not settled: it may yet be forgotten, or the next
    /// holder may adopt it. Always true if no value was found: if a majority has none, none is committed. A
    /// member that was not asked, or not waited for, may still have a value that is not settled.
    pub settled: bool,
}

impl Reading {
    /// Returns the answer of a single store, which is always settled.
    pub fn settled(written: Option<Written>) -> Self {
        Self {
            written,
            settled: true,
        }
    }
}

/// The outcome of opening a record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Opened {
    /// Smaller fences are shut out, and this is the current value. Before a caller relies on a value that
    /// is not settled, it must write it again with its own fence.
    Open(Reading),
    /// A greater fence, this one, has opened or written the record.
    Superseded(Fence),
}

/// The outcome of a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WriteOutcome {
    /// The value is written.
    Written,
    /// A greater version, of this fence, was there: nothing was written, on any member.
    Superseded(Fence),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn version_is_read_whole_or_not() {
        let fence = Fence::MAX;
        for step in [0, u32::MAX] {
            let version = Version { fence, step };
            assert_eq!(version.to_string().parse(), Ok(version));
        }
        for wrong in [
            "", "7", "7.", ".7", "0.1", "7.x", "7.-1", "7.1.1", "\u{fffd}",
        ] {
            assert!(wrong.parse::<Version>().is_err(), "{wrong}");
        }
    }
}
