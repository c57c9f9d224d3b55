use std::time::Duration;

use crate::env::BoxFuture;
use crate::env::clock::WallTime;
use crate::look::Pattern;
use crate::store::{Opened, Reading, RecordKey, RecordState, RecordWrite, Records, WriteOutcome};
use crate::types::{Error, ErrorKind, Fence, Key};

/// Records in a database that can compare and swap, but not decide: it replaces a record only if nothing wrote it since it
/// was read.
///
/// A session that implements this has [`Records`]: [`RecordState`] decides, and a record that another client wrote meanwhile
/// is loaded again.
pub trait RecordCell: Send + Sync {
    /// What tells one writing of a record from the next, such as a revision of the database.
    type Revision: Send + Sync;

    /// Reads a record. One that does not exist is the default state.
    ///
    /// # Errors
    ///
    /// Any failure to send the request or to understand the answer.
    ///
    /// # Cancel safety
    ///
    /// May be dropped at any time.
    fn load(
        &self,
        record: &RecordKey,
    ) -> impl Future<Output = Result<LoadedRecord<Self::Revision>, Error>> + Send;

    /// Replaces the record by `state` if it is as it was `loaded`. Returns whether it was. `retention` is that of a new
    /// value, and `None` if only what the record has [seen](RecordState::seen) is new.
    ///
    /// # Errors
    ///
    /// `effect` is `Unknown` if the record may have been replaced, or may yet be.
    ///
    /// # Cancel safety
    ///
    /// May be dropped at any time; the record is replaced as a whole or not at all.
    fn swap(
        &self,
        record: &RecordKey,
        loaded: &Self::Revision,
        state: &RecordState<WallTime>,
        retention: Option<Duration>,
    ) -> impl Future<Output = Result<bool, Error>> + Send;

    /// Returns the keys of records, as [`Records::list_records`] does.
    ///
    /// # Errors
    ///
    /// As [`load`](Self::load).
    ///
    /// # Cancel safety
    ///
    /// May be dropped at any time.
    fn keys(
        &self,
        pattern: &Pattern,
        limit: usize,
    ) -> impl Future<Output = Result<Vec<Key>, Error>> + Send;
}

/// A record as a [`RecordCell`] read it.
#[derive(Clone, Debug)]
pub struct LoadedRecord<R> {
    /// Its version and its value.
    pub state: RecordState<WallTime>,
    /// The time that decides whether its parts are over.
    pub now: WallTime,
    /// What [`RecordCell::swap`] compares.
    pub revision: R,
}

/// How often a record is loaded again because another client wrote it at the same moment.
const TRIES: usize = 100;

impl<C: RecordCell> Records for C {
    fn open_record<'a>(
        &'a self,
        record: &'a RecordKey,
        fence: Fence,
    ) -> BoxFuture<'a, Result<Opened, Error>> {
        let open = move |state: &mut RecordState<_>, now| {
            let opened = state.open(fence, now);
            (matches!(opened, Opened::Open(_)), opened)
        };
        Box::pin(change(self, record, None, open))
    }

    fn write_record<'a>(
        &'a self,
        record: &'a RecordKey,
        write: &'a RecordWrite,
    ) -> BoxFuture<'a, Result<WriteOutcome, Error>> {
        let retention = Some(write.retention);
        Box::pin(change(self, record, retention, |state, now| {
            let outcome = state.write(write, now);
            (outcome == WriteOutcome::Written, outcome)
        }))
    }

    fn read_record<'a>(&'a self, record: &'a RecordKey) -> BoxFuture<'a, Result<Reading, Error>> {
        Box::pin(async move {
            let LoadedRecord { state, now, .. } = self.load(record).await?;
            Ok(state.read(now))
        })
    }

    fn list_records<'a>(
        &'a self,
        pattern: &'a Pattern,
        limit: usize,
    ) -> BoxFuture<'a, Result<Vec<Key>, Error>> {
        Box::pin(self.keys(pattern, limit))
    }
}

/// Changes a record. `change` returns its answer, and whether it changed the state.
async fn change<C: RecordCell, T>(
    cell: &C,
    record: &RecordKey,
    retention: Option<Duration>,
    change: impl Fn(&mut RecordState<WallTime>, WallTime) -> (bool, T),
) -> Result<T, Error> {
    for _ in 0..TRIES {
        let mut loaded = cell.load(record).await?;
        let (is_new, answer) = change(&mut loaded.state, loaded.now);
        let (state, revision) = (&loaded.state, &loaded.revision);
        if !is_new || cell.swap(record, revision, state, retention).await? {
            return Ok(answer);
        }
    }
    let text = "other clients wrote the record again and again";
    Err(Error::new(ErrorKind::Unreachable, text))
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;
    use crate::env::locked;
    use crate::store::Version;

    /// One record, which other clients write at the same moment this many times.
    #[derive(Default)]
    struct Contended {
        state: std::sync::Mutex<RecordState<WallTime>>,
        conflicts: usize,
        swaps: AtomicUsize,
    }

    impl RecordCell for Contended {
        type Revision = ();

        async fn load(&self, _: &RecordKey) -> Result<LoadedRecord<()>, Error> {
            Ok(LoadedRecord {
                state: locked(&self.state).clone(),
                now: WallTime::from_micros(7),
                revision: (),
            })
        }

        async fn swap(
            &self,
            _: &RecordKey,
            (): &(),
            state: &RecordState<WallTime>,
            _: Option<Duration>,
        ) -> Result<bool, Error> {
            let is_free = self.swaps.fetch_add(1, Ordering::Relaxed) >= self.conflicts;
            if is_free {
                locked(&self.state).clone_from(state);
            }
            Ok(is_free)
        }

        async fn keys(&self, _: &Pattern, _: usize) -> Result<Vec<Key>, Error> {
            Ok(Vec::new())
        }
    }

    fn record() -> RecordKey {
        RecordKey::new(Key::new("deploy").unwrap())
    }

    fn write(fence: u64) -> RecordWrite {
        let fence = Fence::new(fence).unwrap();
        let version = Version { fence, step: 1 };
        RecordWrite::new(version, *b"x", Duration::from_secs(60)).unwrap()
    }

    #[tokio::test]
    async fn record_written_meanwhile_is_loaded_again() {
        let (record, conflicts) = (record(), TRIES - 1);
        let cell = Contended {
            conflicts,
            ..Contended::default()
        };
        let written = cell.write_record(&record, &write(7)).await.unwrap();
        assert_eq!(written, WriteOutcome::Written);
        let reading = cell.read_record(&record).await.unwrap();
        assert_eq!(reading.written.unwrap().version, write(7).version);
        assert_eq!(cell.swaps.into_inner(), TRIES);
    }

    #[tokio::test]
    async fn endless_contention_ends_as_an_error() {
        let conflicts = usize::MAX;
        let cell = Contended {
            conflicts,
            ..Contended::default()
        };
        let error = cell.write_record(&record(), &write(7)).await.unwrap_err();
        assert!(error.is_retryable(), "{error}");
        assert_eq!(cell.swaps.into_inner(), TRIES);
    }

    #[tokio::test]
    async fn smaller_fence_swaps_nothing() {
        let (record, cell) = (record(), Contended::default());
        let greatest = Fence::new(7).unwrap();
        cell.open_record(&record, greatest).await.unwrap();
        let late = cell.write_record(&record, &write(6)).await.unwrap();
        assert_eq!(late, WriteOutcome::Superseded(greatest));
        let late = Fence::new(6).unwrap();
        let late = cell.open_record(&record, late).await.unwrap();
        assert_eq!(late, Opened::Superseded(greatest));
        assert_eq!(cell.swaps.into_inner(), 1);
    }
}
