//! A record, as clients and the holders of its lock see it.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use crate::env::BoxFuture;
use crate::guard::Guard;
use crate::lease::ClientCore;
use crate::store::{
    Opened, Reading, RecordKey, RecordWrite, Records, Version, WriteOutcome, Written,
};
use crate::types::{Effect, Error, ErrorKind, Fence, Key, exact_span, rough_span};

/// The record of a lock, for clients that do not hold the lock. Created by
/// [`Client::record`](crate::Client::record).
#[derive(Clone, Debug)]
#[must_use = "a record does nothing until it is read"]
pub struct Record {
    client: Arc<ClientCore>,
    record: Result<RecordKey, Error>,
}

impl Record {
    pub(crate) fn new(client: Arc<ClientCore>, key: Result<Key, Error>) -> Self {
        Self {
            client,
            record: key.map(RecordKey::new),
        }
    }

    /// On a quorum, counts only members that keep what they acknowledged across a restart, and that have
    /// lost nothing for `retention`: the longest time for which values of this record are kept.
    pub fn lasting(mut self, retention: Duration) -> Self {
        self.record = self.record.map(|record| as_lasting(record, retention));
        self
    }

    /// Reads the current value. The holders' order does not include this read: a moment later the record
    /// may have another value.
    ///
    /// # Errors
    ///
    /// An invalid name; [`ErrorKind::Unsupported`] if the store keeps no records; a store that does not
    /// answer.
    ///
    /// # Cancel safety
    ///
    /// May be dropped at any time.
    pub async fn read(&self) -> Result<Reading, Error> {
        let record = self.record.clone()?;
        let key = record.key.clone();
        let context = Arc::clone(&self.client.context);
        let reading = async move { context.records()?.read_record(&record).await };
        self.client.ask(Some(key), reading).await
    }
}

/// The record of a lock, for the holder of the lock. Created by [`Guard::record`].
///
/// A holder cannot overwrite what the holder of a greater fence opened or wrote: a write that comes too
/// late is [`ErrorKind::Fenced`]. A write needs no valid guard to be safe. But a guard writes nothing if
/// its deadline passed longer ago than a store must remember ([`HeldRecord::TOO_LATE`]).
///
/// # Examples
///
/// ```
/// # pollster::block_on(async {
/// use std::time::Duration;
/// use leasehold::{Client, memory::MemoryStore};
///
/// let locks = Client::new(MemoryStore::new());
/// let guard = locks.lock("leader").acquire().await?;
/// let record = guard.record();
/// assert_eq!(record.open().await?, None);
/// record.write(*b"10.0.0.7:8080", Duration::from_secs(3600)).await?;
///
/// let seen = locks.record("leader").read().await?.written.unwrap();
/// assert_eq!((&*seen.bytes, seen.version.fence), (&b"10.0.0.7:8080"[..], guard.fence()));
/// # Ok::<(), leasehold::Error>(()) }).unwrap();
/// ```
#[must_use = "a record does nothing until it is opened or written"]
pub struct HeldRecord<'a> {
    guard: &'a Guard,
    record: RecordKey,
}

impl Guard {
    /// Returns the record of this lock, which is opened and written with this guard's fence. Only exclusive
    /// guards should write: shared ones have fences too, and the greatest wins.
    pub fn record(&self) -> HeldRecord<'_> {
        HeldRecord {
            guard: self,
            record: RecordKey::new(self.key().clone()),
        }
    }
}

impl HeldRecord<'_> {
    /// How long after its deadline a guard can still open and write: a day less than the shortest time for
    /// which stores remember the fences of later holders.
    pub const TOO_LATE: Duration = Duration::from_secs(6 * 24 * 60 * 60);

    /// On a quorum, counts only members that keep what they acknowledged across a restart, and that have
    /// lost nothing for `retention`: the longest time for which values of this record are kept.
    pub fn lasting(mut self, retention: Duration) -> Self {
        self.record = as_lasting(self.record, retention);
        self
    }

    /// Shuts out all smaller fences, and returns the current value. That value is settled: on a quorum, a
    /// value that too few members have is first written again, with this guard's fence.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Fenced`] if a greater fence has opened or written the record;
    /// [`ErrorKind::Unsupported`] if the store keeps no records; [`ErrorKind::Lost`] if the guard ended too
    /// long ago. The error has [`Effect::Unknown`] if the store did not decide;
    /// calling again is fine.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future only discards the answer.
    pub async fn open(&self) -> Result<Option<Written>, Error> {
        let (record, fence) = (self.record.clone(), self.guard.fence());
        let opened = self
            .ask(move |records| Box::pin(async move { records.open_record(&record, fence).await }));
        let reading = match opened.await? {
            Opened::Open(reading) => reading,
            Opened::Superseded(greatest) => return Err(self.fenced(greatest)),
        };
        match reading.written {
            Some(written) if !reading.settled => self.adopt(written).await.map(Some),
            written => Ok(written),
        }
    }

    /// Writes the record. The store keeps the value for `retention` from then on, by its own clock. A later
    /// write of the same guard replaces it, even if this one arrives after it. While the store does not
    /// decide, the write is retried until the guard's deadline as it was at the call; if the guard is lost,
    /// it is sent only once.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Fenced`] if a greater fence has opened or written the record. Then nothing was written,
    /// unless the error has [`Effect::Unknown`]: an earlier try was not answered,
    /// or a member accepted the value that the others refused. [`ErrorKind::InvalidInput`] for a value
    /// longer than [`RecordWrite::BYTES_MAX`] or a retention out of its bounds, and
    /// [`ErrorKind::Unsupported`] if the store keeps no records; both change nothing. [`ErrorKind::Lost`]
    /// if the guard ended too long ago. The error has [`Effect::Unknown`] if the
    /// store did not decide: the value may be written, or the next holder may find it; calling again is
    /// fine.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future only discards the answer.
    pub async fn write(
        &self,
        bytes: impl Into<Arc<[u8]>>,
        retention: Duration,
    ) -> Result<(), Error> {
        self.write_versioned(bytes.into(), retention)
            .await
            .map(drop)
    }

    /// Writes with the next step, and retries until the store decides or the deadline has passed.
    async fn write_versioned(
        &self,
        bytes: Arc<[u8]>,
        retention: Duration,
    ) -> Result<Version, Error> {
        let version = Version {
            fence: self.guard.fence(),
            step: self.guard.held_lease().next_step(),
        };
        let record = self.record.clone();
        let write = RecordWrite::new(version, bytes, retention)
            .map_err(|error| error.with_key(self.guard.key()))?;
        let held_lease = Arc::clone(&self.guard.hold.held_lease);
        // The deadline as it is now: each renewal moves it, and a store may stay undecided indefinitely.
        let until = self.guard.deadline();
        let env = self.guard.hold.client.context.env.clone();
        let wrote = self.ask(move |records| {
            Box::pin(async move {
                let mut is_uncertain = false;
                loop {
                    let error = match records.write_record(&record, &write).await {
                        Ok(wrote) => return Ok((wrote, is_uncertain)),
                        Err(error) => error,
                    };
                    is_uncertain |= error.effect() == Effect::Unknown;
                    let now = env.clock.now();
                    let in_time =
                        held_lease.check(now).is_ok() && until.is_none_or(|until| now < until);
                    if !error.is_unreachable() || !in_time {
                        let unknown = error.clone().with_unknown_effect();
                        return Err(if is_uncertain { unknown } else { error });
                    }
                    env.poll_pause().await;
                }
            })
        });
        match wrote.await? {
            (WriteOutcome::Written, _) => Ok(version),
            (WriteOutcome::Superseded(greatest), false) => Err(self.fenced(greatest)),
            // A later holder may have adopted the value of an earlier try.
            (WriteOutcome::Superseded(greatest), true) => {
                Err(self.fenced(greatest).with_unknown_effect())
            }
        }
    }

    /// Writes an earlier holder's value again, so that every later holder finds it until its retention is
    /// over.
    async fn adopt(&self, written: Written) -> Result<Written, Error> {
        let Written {
            bytes, remaining, ..
        } = written;
        let retention = remaining.max(RecordWrite::RETENTION_MIN);
        let version = self.write_versioned(Arc::clone(&bytes), retention).await?;
        Ok(Written::new(version, bytes, retention))
    }

    /// Sends the request in the background and completes it, even if the caller no longer waits for the
    /// answer.
    async fn ask<T: Send + 'static>(
        &self,
        question: impl for<'r> FnOnce(&'r dyn Records) -> Asked<'r, T> + Send + 'static,
    ) -> Result<T, Error> {
        self.in_time()?;
        let client = &self.guard.hold.client;
        let context = Arc::clone(&client.context);
        let asking = async move { question(context.records()?).await };
        client.ask(Some(self.guard.key().clone()), asking).await
    }

    fn in_time(&self) -> Result<(), Error> {
        let now = self.guard.hold.client.now();
        let late = self.guard.deadline().map(|deadline| now.since(deadline));
        match late {
            Some(late) if late > Self::TOO_LATE => {
                let text = format!(
                    "the guard ended {} ago: after {} its record is not touched any more",
                    rough_span(late),
                    exact_span(Self::TOO_LATE)
                );
                Err(Error::new(ErrorKind::Lost, text).with_key(self.guard.key()))
            }
            _ => Ok(()),
        }
    }

    fn fenced(&self, greatest: Fence) -> Error {
        let fence = self.guard.fence();
        let text = format!("fence {fence} comes too late: the record has seen {greatest}");
        Error::new(ErrorKind::Fenced, text).with_key(self.guard.key())
    }
}

impl fmt::Debug for HeldRecord<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HeldRecord")
            .field("guard", self.guard)
            .finish_non_exhaustive()
    }
}

type Asked<'a, T> = BoxFuture<'a, Result<T, Error>>;

fn as_lasting(mut record: RecordKey, retention: Duration) -> RecordKey {
    record.lasting = Some(retention);
    record
}
