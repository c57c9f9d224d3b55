use super::{Opened, Reading, RecordKey, RecordWrite, WriteOutcome};
use crate::env::BoxFuture;
use crate::types::{Error, Fence, Key, Pattern};

/// The part of a store that keeps *records*: a small value for each key, which only a fence can write.
///
/// Opening the record with a fence shuts out all smaller fences, so late writes of an earlier holder have
/// no effect. A holder of a lock thus leaves a record for the next one. A record needs no lease to be safe;
/// it makes progress because one holder writes at a time.
///
/// A [`Version`](super::Version) orders the writes: by fence, then by the writer's own step.
///
/// # Contract
///
/// - **P1** Reading and opening return the value with the greatest version, through every store that is opened
///   on the same place, until its retention is over; keys do not affect each other.
/// - **P2** After a record was opened or written with a fence, a smaller fence can neither open nor write
///   it: the store returns the greatest fence, and changes nothing.
/// - **P3** The same fence can open the record again, and write it with the same step or a later one. An
///   earlier step that comes late is superseded by its own fence, and changes nothing.
/// - **P4** A value ends when its retention is over, by the store's clock, and not before; each write
///   starts it again. The record shuts out smaller fences for longer than that: for [`RECORD_MEMORY`](super::RECORD_MEMORY) after
///   the last opening or write.
/// - **P5** Reading changes nothing: a holder that could write before can do so afterwards.
/// - **P6** A record is not a lock. Neither `holders` nor `list` shows it. Grants, renewals and releases of
///   its key do not change it, and it does not change them.
/// - **P7** A listing names every record that has a value, and perhaps some whose value is over. Listing changes nothing.
pub trait Records: Send + Sync {
    /// Opens the record with `fence`: shuts out smaller fences from now on, and returns the current value.
    ///
    /// # Errors
    ///
    /// `effect` is `Unknown` if smaller fences may be shut out, which does no harm.
    ///
    /// # Cancel safety
    ///
    /// May be dropped at any time; smaller fences may or may not be shut out.
    fn open_record<'a>(
        &'a self,
        record: &'a RecordKey,
        fence: Fence,
    ) -> BoxFuture<'a, Result<Opened, Error>>;

    /// Writes the record, unless it has seen a greater version. A store that keeps its data across a restart
    /// still has what it acknowledged here, and to [`open_record`](Self::open_record), after the restart.
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
    ) -> BoxFuture<'a, Result<WriteOutcome, Error>>;

    /// Reads the current value, for clients that do not write.
    ///
    /// # Errors
    ///
    /// Any failure to send the request or to understand the answer.
    ///
    /// # Cancel safety
    ///
    /// May be dropped at any time.
    fn read_record<'a>(&'a self, record: &'a RecordKey) -> BoxFuture<'a, Result<Reading, Error>>;

    /// Returns the keys of the first `limit` records that match `pattern`, by name, for people. Sends few requests for many
    /// records; each request occupies a server only briefly.
    ///
    /// # Errors
    ///
    /// A store, or a majority of its members, that does not answer.
    ///
    /// # Cancel safety
    ///
    /// May be dropped at any time.
    fn list_records<'a>(
        &'a self,
        pattern: &'a Pattern,
        limit: usize,
    ) -> BoxFuture<'a, Result<Vec<Key>, Error>>;
}
