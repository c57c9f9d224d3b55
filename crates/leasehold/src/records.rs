use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use crate::BoxFuture;
use crate::error::{Error, ErrorKind};
use crate::fence::Fence;
use crate::key::Key;

/// What a store can do beside granting locks: keep a *record* for a key, a small value that is written
/// by fence alone.
///
/// Who has opened the record with a fence shuts out all smaller ones: what an earlier holder sends
/// late changes nothing. So a record is what one holder of a lock leaves for the next. It needs no
/// lease to be safe; that one holder writes at a time is what makes it live.
///
/// A [`Stamp`] orders the writes: by fence, then by the writer's own step.
///
/// # Contract
///
/// - **P1** What was written last, by stamp, is what reading and opening show, through every handle
///   on the same place, until its retention is over; keys do not touch each other.
/// - **P2** After a record was opened or written with a fence, a smaller one neither opens nor
///   writes it: it is told the greatest, and changes nothing.
/// - **P3** The same fence opens again, and writes with the same step or a later one. An earlier step
///   that comes late is superseded by its own fence, and changes nothing.
/// - **P4** A value is gone once its retention is over, by the store's clock, and not before; each
///   write begins it anew. That smaller fences are shut out outlives it: for [`RECORD_MEMORY`] after
///   the last opening or writing.
/// - **P5** Reading changes nothing: whoever could write before can do so afterwards.
/// - **P6** A record is no lock. It shows neither in `holders` nor in `list`; grants, renewals and
///   releases of its key leave it as it is, and it leaves them.
pub trait Records: Send + Sync {
    /// Opens the record with `fence`: shuts out smaller ones from now on, and says what is written.
    ///
    /// # Errors
    ///
    /// `effect` is `Unknown` if smaller fences may be shut out, which harms nobody.
    ///
    /// # Cancel safety
    ///
    /// May be dropped at any time; smaller fences may or may not be shut out.
    fn open_record<'a>(
        &'a self,
        record: &'a RecordKey,
        fence: Fence,
    ) -> BoxFuture<'a, Result<Opened, Error>>;

    /// Writes the record, unless a greater stamp was there. A store that keeps its data across a restart
    /// has what it acknowledged here, and to [`open_record`](Self::open_record), afterwards too.
    ///
    /// # Errors
    ///
    /// `effect` is `Unknown` if the value may have been written, or may yet be.
    ///
    /// # Cancel safety
    ///
    /// May be dropped at any time; the value may or may not be written, never in part.
    fn write_record<'a>(
        &'a self,
        record: &'a RecordKey,
        write: &'a RecordWrite,
    ) -> BoxFuture<'a, Result<Wrote, Error>>;

    /// What is written, for whoever does not write.
    ///
    /// # Errors
    ///
    /// Any failure to ask or to understand the answer.
    ///
    /// # Cancel safety
    ///
    /// May be dropped at any time.
    fn read_record<'a>(&'a self, record: &'a RecordKey) -> BoxFuture<'a, Result<Reading, Error>>;
}

/// For how long a store remembers at least who opened a record, also where nothing is written: as long
/// as it remembers a key's fences.
pub const RECORD_MEMORY: Duration = Duration::from_secs(7 * 24 * 60 * 60);

/// Which record is meant.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct RecordKey {
    /// The key of the lock whose fences write it.
    pub key: Key,
    /// For how long the values of a record are kept that must outlive restarts and lost disks. Only members
    /// count for it that keep what they acknowledged across a restart, and have lost nothing for that long.
    /// Of no concern to a store that is no quorum.
    pub lasting: Option<Duration>,
}

impl RecordKey {
    /// The record of `key`, at all members that count.
    pub fn new(key: Key) -> Self {
        Self { key, lasting: None }
    }
}

/// The place of a write among all writes of its record: by fence, and of one fence by step. Each fence
/// has one writer, which counts its own steps, from 1 on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Stamp {
    /// The fence of the writer.
    pub fence: Fence,
    /// Which of its writes it is.
    pub step: u32,
}

impl fmt::Display for Stamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.fence, self.step)
    }
}

/// A value to be written.
#[derive(Clone)]
pub struct RecordWrite {
    /// Its place among all writes.
    pub stamp: Stamp,
    /// The value.
    pub bytes: Arc<[u8]>,
    /// For how long the store keeps it.
    pub retention: Duration,
}

impl RecordWrite {
    /// The longest value.
    pub const BYTES_MAX: usize = 1 << 20;
    /// The shortest time for which a value is kept.
    pub const RETENTION_MIN: Duration = Duration::from_secs(1);
    /// The longest time for which a value is kept: ten years.
    pub const RETENTION_MAX: Duration = Duration::from_secs(10 * 366 * 24 * 60 * 60);

    /// The write, if its values keep the rules.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::InvalidInput`], naming the value and the rule.
    pub fn new(
        stamp: Stamp,
        bytes: impl Into<Arc<[u8]>>,
        retention: Duration,
    ) -> Result<Self, Error> {
        let bytes = bytes.into();
        Self::check(&bytes, retention)?;
        Ok(Self {
            stamp,
            bytes,
            retention,
        })
    }

    pub(crate) fn check(bytes: &[u8], retention: Duration) -> Result<(), Error> {
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
                "a retention of {retention:?}: it must be from {:?} to {:?}",
                Self::RETENTION_MIN,
                Self::RETENTION_MAX
            ));
        }
        Ok(())
    }
}

impl fmt::Debug for RecordWrite {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RecordWrite")
            .field("stamp", &self.stamp)
            .field("bytes", &self.bytes.len())
            .field("retention", &self.retention)
            .finish()
    }
}

/// A value that stands in a record. Its bytes show in no `Debug`: they may be anybody's.
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Written {
    /// Who wrote it, and in which step.
    pub stamp: Stamp,
    /// The value.
    pub bytes: Arc<[u8]>,
    /// For how much longer the store keeps it, counted from when it was asked.
    pub remaining: Duration,
}

impl Written {
    /// The value that was written with `stamp`.
    pub fn new(stamp: Stamp, bytes: impl Into<Arc<[u8]>>, remaining: Duration) -> Self {
        Self {
            stamp,
            bytes: bytes.into(),
            remaining,
        }
    }
}

impl fmt::Debug for Written {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Written")
            .field("stamp", &self.stamp)
            .field("bytes", &self.bytes.len())
            .field("remaining", &self.remaining)
            .finish()
    }
}

/// What somebody sees who looks at a record.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Reading {
    /// The value with the greatest stamp that was found; `None`: nothing is written.
    pub written: Option<Written>,
    /// Whether that is what everybody finds from now on, unless a greater stamp writes. On a quorum a
    /// value that fewer than a majority have is not settled: it may yet be forgotten, or be taken up by
    /// the next holder. Always true where nothing was found: if a majority has nothing, nothing is
    /// committed, though a member that was not asked, or not waited for, may have a value of which the same
    /// holds.
    pub settled: bool,
}

impl Reading {
    /// What a single store says: that is settled.
    pub fn settled(written: Option<Written>) -> Self {
        Self {
            written,
            settled: true,
        }
    }
}

/// What became of an attempt to open a record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Opened {
    /// Smaller fences are shut out; this is written. Who relies on what is not settled writes it anew,
    /// with the own fence, first.
    Open(Reading),
    /// This greater fence was there.
    Superseded(Fence),
}

/// What became of a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wrote {
    /// The value stands.
    Written,
    /// A greater stamp, of this fence, was there: nothing was written, anywhere.
    Superseded(Fence),
}
