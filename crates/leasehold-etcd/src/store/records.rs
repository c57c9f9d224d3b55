use std::time::Duration;

use futures_util::future;
use leasehold::clock::WallTime;
use leasehold::look::Pattern;
use leasehold::store::{
    BoxFuture, KeptValue, Opened, Reading, RecordKey, RecordState, RecordWrite, Records,
    WriteOutcome,
};
use leasehold::{Error, ErrorKind, Fence, Key};

use super::inner::EtcdInner;
use super::inspection::LIMIT;
use super::leases::seconds;
use super::session::EtcdSession;
use crate::locking::{SharedLease, one_key};
use crate::proto::{
    Compare, KeyValue, LeaseGrantRequest, LeaseRevokeRequest, Operation, PutRequest, TxnRequest,
};

/// A record as it was read, with the revisions at which its keys were written last: 0 for a key that does not exist.
struct Found {
    state: RecordState<WallTime>,
    version: i64,
    value: i64,
    /// The lease of the value.
    lease: i64,
}

/// How often a record is read again because another client wrote it at the same moment.
const TRIES: usize = 100;

/// A key that was read just now counts for at least this long. The server ends it.
const AT_LEAST: Duration = Duration::from_millis(1);

impl Records for EtcdSession {
    fn open_record<'a>(
        &'a self,
        record: &'a RecordKey,
        fence: Fence,
    ) -> BoxFuture<'a, Result<Opened, Error>> {
        Box::pin(self.0.open_record(&record.key, fence))
    }

    fn write_record<'a>(
        &'a self,
        record: &'a RecordKey,
        write: &'a RecordWrite,
    ) -> BoxFuture<'a, Result<WriteOutcome, Error>> {
        Box::pin(self.0.write_record(&record.key, write))
    }

    fn read_record<'a>(&'a self, record: &'a RecordKey) -> BoxFuture<'a, Result<Reading, Error>> {
        Box::pin(async move {
            let found = self.0.find_record(&record.key).await?;
            Ok(found.state.read(self.0.wall()))
        })
    }

    fn list_records<'a>(
        &'a self,
        pattern: &'a Pattern,
        limit: usize,
    ) -> BoxFuture<'a, Result<Vec<Key>, Error>> {
        Box::pin(self.0.list_records(pattern, limit))
    }
}

impl EtcdInner {
    async fn list_records(&self, pattern: &Pattern, limit: usize) -> Result<Vec<Key>, Error> {
        let mut found = Vec::new();
        let mut rest = Some(self.names.records(pattern.prefix()));
        while let Some(range) = rest.take_if(|_| found.len() < limit) {
            let (page, next) = self.page(range, true).await?;
            let locks = page
                .iter()
                .filter_map(|kv| self.names.lock_of_record(&kv.key));
            found.extend(locks.filter(|lock| pattern.matches(lock.as_str())));
            rest = next;
        }
        found.truncate(limit);
        Ok(found)
    }

    async fn open_record(&self, key: &Key, fence: Fence) -> Result<Opened, Error> {
        let memory = self
            .shared_lease(&self.client, SharedLease::Memory, LIMIT)
            .await?;
        for _ in 0..TRIES {
            let mut found = self.find_record(key).await?;
            let opened = found.state.open(fence, self.wall());
            if matches!(opened, Opened::Superseded(_)) {
                return Ok(opened);
            }
            let put = self.put_version(key, &found.state, memory);
            if self.write(key, &found, vec![put.into()]).await? {
                return Ok(opened);
            }
        }
        Err(contended())
    }

    /// Writes the value with a lease of its own, whose end is the end of its retention.
    async fn write_record(&self, key: &Key, write: &RecordWrite) -> Result<WriteOutcome, Error> {
        let id = (self.context.env().entropy.next_u64() as i64 & i64::MAX).max(1);
        let ttl = seconds(write.retention);
        let granting = self.client.call(LeaseGrantRequest { ttl, id }, LIMIT);
        let memory = self.shared_lease(&self.client, SharedLease::Memory, LIMIT);
        let (granted, memory) = future::join(granting, memory).await;
        granted.map_err(|failure| failure.into_error().without_effect())?;
        let written = match memory {
            Ok(memory) => self.write_with(key, write, (id, memory)).await,
            Err(error) => Err(error),
        };
        let unused = match &written {
            Ok((WriteOutcome::Written, old)) => *old,
            Ok((WriteOutcome::Superseded(_), _)) => id,
            // The value may have been written.
            Err(_) => 0,
        };
        if unused != 0 {
            // Otherwise it ends by itself.
            let _ = self
                .client
                .call(LeaseRevokeRequest { id: unused }, LIMIT)
                .await;
        }
        written.map(|(outcome, _)| outcome)
    }

    /// Also returns the lease that the value had before.
    async fn write_with(
        &self,
        key: &Key,
        write: &RecordWrite,
        (lease, memory): (i64, i64),
    ) -> Result<(WriteOutcome, i64), Error> {
        for _ in 0..TRIES {
            let mut found = self.find_record(key).await?;
            let now = self.wall();
            let outcome = found.state.write(write, now);
            if matches!(outcome, WriteOutcome::Superseded(_)) {
                return Ok((outcome, 0));
            }
            let value = PutRequest {
                key: self.names.record(key),
                value: value_text(write, now),
                lease,
            };
            let version = self.put_version(key, &found.state, memory);
            let puts = vec![version.into(), Operation::Put(value).into()];
            if self.write(key, &found, puts).await? {
                return Ok((outcome, found.lease));
            }
        }
        Err(contended())
    }

    fn put_version(&self, key: &Key, state: &RecordState<WallTime>, memory: i64) -> Operation {
        let text = state.seen.map(|(version, _)| version.to_string());
        Operation::Put(PutRequest {
            key: self.names.record_version(key),
            value: text.unwrap_or_default().into_bytes(),
            lease: memory,
        })
    }

    /// Writes if the record is as it was found. Returns whether it was.
    async fn write(
        &self,
        key: &Key,
        found: &Found,
        success: Vec<crate::proto::RequestOp>,
    ) -> Result<bool, Error> {
        let question = TxnRequest {
            compare: vec![
                Compare::is_at(&self.names.record_version(key), found.version),
                Compare::is_at(&self.names.record(key), found.value),
            ],
            success,
            failure: Vec::new(),
        };
        Ok(self
            .transact(&self.client, question, LIMIT)
            .await?
            .succeeded)
    }

    async fn find_record(&self, key: &Key) -> Result<Found, Error> {
        let keys = [self.names.record_version(key), self.names.record(key)];
        let gets = keys.map(|key| Operation::Range(one_key(key)).into());
        let question = TxnRequest {
            compare: Vec::new(),
            success: gets.into(),
            failure: Vec::new(),
        };
        let answer = self.client.call(question, LIMIT).await?;
        let mut kvs = answer.ranges().map(|range| range.kvs.into_iter().next());
        let (version, value) = (kvs.next().flatten(), kvs.next().flatten());
        let revision = |kv: &Option<KeyValue>| kv.as_ref().map_or(0, |kv| kv.mod_revision);
        let least = WallTime::from_micros(self.wall().as_micros() + AT_LEAST.as_micros() as u64);
        Ok(Found {
            version: revision(&version),
            value: revision(&value),
            lease: value.as_ref().map_or(0, |kv| kv.lease),
            state: state(version, value, least)?,
        })
    }

    fn wall(&self) -> WallTime {
        self.context.env().clock.wall()
    }
}

/// Returns the state that the keys of a record stand for. The keys end with their leases, so all that exists counts until
/// `least`, also if the clock of this client is ahead.
fn state(
    version: Option<KeyValue>,
    value: Option<KeyValue>,
    least: WallTime,
) -> Result<RecordState<WallTime>, Error> {
    let mut state = RecordState::default();
    if let Some(kv) = version {
        let text = std::str::from_utf8(&kv.value).ok();
        let version = text
            .and_then(|text| text.parse().ok())
            .ok_or_else(corrupt)?;
        state.seen = Some((version, least));
    }
    if let Some(kv) = value {
        let mut parts = kv.value.splitn(2, |byte| *byte == b'\n');
        let (head, bytes) = (parts.next(), parts.next());
        let head = head.and_then(|head| std::str::from_utf8(head).ok());
        let head = head.and_then(|head| head.split_once(' '));
        let (version, end) = head.ok_or_else(corrupt)?;
        let end = WallTime::from_micros(end.parse().map_err(|_| corrupt())?);
        state.value = Some(KeptValue {
            version: version.parse().map_err(|_| corrupt())?,
            end: end.max(least),
            bytes: bytes.ok_or_else(corrupt)?.into(),
        });
    }
    Ok(state)
}

/// Returns the version, the end of the retention by the clock of the writer, and the bytes.
fn value_text(write: &RecordWrite, now: WallTime) -> Vec<u8> {
    let end = now.as_micros() + write.retention.as_micros() as u64;
    let mut text = format!("{} {end}\n", write.version).into_bytes();
    text.extend_from_slice(&write.bytes);
    text
}

/// Reads bytes as both keys of a record, for the fuzz target.
#[cfg(any(test, fuzzing))]
pub(super) fn read_any(bytes: &[u8]) {
    let kv = || {
        let value = bytes.to_vec();
        Some(KeyValue {
            value,
            ..KeyValue::default()
        })
    };
    let least = WallTime::from_micros(7);
    let _ = (state(kv(), None, least), state(None, kv(), least));
}

fn corrupt() -> Error {
    let text = "the record of the lock has another form; delete its keys with `etcdctl del`";
    Error::new(ErrorKind::Corrupt, text)
}

fn contended() -> Error {
    let text = "other clients wrote the record again and again";
    Error::new(ErrorKind::Unreachable, text)
}
