use std::time::Duration;

use futures_util::future;
use leasehold::clock::WallTime;
use leasehold::look::Pattern;
use leasehold::store::kit::{LoadedRecord, RecordCell};
use leasehold::store::{KeptValue, RecordKey, RecordState};
use leasehold::{Error, ErrorKind, Key};

use super::inner::EtcdInner;
use super::inspection::LIMIT;
use super::leases::seconds;
use super::session::EtcdSession;
use crate::locking::{SharedLease, one_key};
use crate::proto::{
    Compare, KeyValue, LeaseGrantRequest, LeaseRevokeRequest, Operation, PutRequest, RequestOp,
    TxnRequest,
};

/// The revisions at which the keys of a record were written last: 0 for a key that does not exist.
pub(super) struct Revisions {
    version: i64,
    value: i64,
    /// The lease of the value.
    lease: i64,
}

/// A key that was read just now counts for at least this long. The server ends it.
const AT_LEAST: Duration = Duration::from_millis(1);

impl RecordCell for EtcdSession {
    type Revision = Revisions;

    async fn load(&self, record: &RecordKey) -> Result<LoadedRecord<Revisions>, Error> {
        let names = &self.0.names;
        let keys = [names.record_version(&record.key), names.record(&record.key)];
        let gets = keys.map(|key| Operation::Range(one_key(key)).into());
        let question = TxnRequest {
            compare: Vec::new(),
            success: gets.into(),
            failure: Vec::new(),
        };
        let answer = self.0.client.call(question, LIMIT).await?;
        let mut kvs = answer.ranges().map(|range| range.kvs.into_iter().next());
        let (version, value) = (kvs.next().flatten(), kvs.next().flatten());
        let revision = |kv: &Option<KeyValue>| kv.as_ref().map_or(0, |kv| kv.mod_revision);
        let now = self.0.context.env().clock.wall();
        let least = WallTime::from_micros(now.as_micros() + AT_LEAST.as_micros() as u64);
        Ok(LoadedRecord {
            revision: Revisions {
                version: revision(&version),
                value: revision(&value),
                lease: value.as_ref().map_or(0, |kv| kv.lease),
            },
            state: state(version, value, least)?,
            now,
        })
    }

    /// Writes the value with a lease of its own, whose end is the end of its retention.
    async fn swap(
        &self,
        record: &RecordKey,
        loaded: &Revisions,
        state: &RecordState<WallTime>,
        retention: Option<Duration>,
    ) -> Result<bool, Error> {
        let Self(inner) = self;
        let memory = inner.shared_lease(&inner.client, SharedLease::Memory, LIMIT);
        let (granted, memory) = future::join(inner.lease_of_value(retention), memory).await;
        let lease = granted?;
        let puts = inner.puts(&record.key, state, lease, memory?);
        let written = inner.write(&record.key, loaded, puts).await;
        let unused = match written {
            Ok(true) => lease.and(Some(loaded.lease).filter(|lease| *lease != 0)),
            Ok(false) => lease,
            // The value may have been written.
            Err(_) => None,
        };
        if let Some(id) = unused {
            // Otherwise it ends by itself.
            let _ = inner.client.call(LeaseRevokeRequest { id }, LIMIT).await;
        }
        written
    }

    async fn keys(&self, pattern: &Pattern, limit: usize) -> Result<Vec<Key>, Error> {
        let mut found = Vec::new();
        let mut rest = Some(self.0.names.records(pattern.prefix()));
        while let Some(range) = rest.take_if(|_| found.len() < limit) {
            let (page, next) = self.0.page(range, true).await?;
            let locks = page
                .iter()
                .filter_map(|kv| self.0.names.lock_of_record(&kv.key));
            found.extend(locks.filter(|lock| pattern.matches(lock.as_str())));
            rest = next;
        }
        found.truncate(limit);
        Ok(found)
    }
}

impl EtcdInner {
    /// Asks for the lease of a new value, if there is one.
    async fn lease_of_value(&self, retention: Option<Duration>) -> Result<Option<i64>, Error> {
        let Some(retention) = retention else {
            return Ok(None);
        };
        let id = (self.context.env().entropy.next_u64() as i64 & i64::MAX).max(1);
        let ttl = seconds(retention);
        let granted = self.client.call(LeaseGrantRequest { ttl, id }, LIMIT).await;
        granted.map_err(|failure| failure.into_error().without_effect())?;
        Ok(Some(id))
    }

    /// Returns what to write: the version and, with its lease, a new value.
    fn puts(
        &self,
        key: &Key,
        state: &RecordState<WallTime>,
        lease: Option<i64>,
        memory: i64,
    ) -> Vec<RequestOp> {
        let version = state.seen.map(|(version, _)| version.to_string());
        let version = PutRequest {
            key: self.names.record_version(key),
            value: version.unwrap_or_default().into_bytes(),
            lease: memory,
        };
        let value = state.value.as_ref().zip(lease);
        let value = value.map(|(value, lease)| PutRequest {
            key: self.names.record(key),
            value: value_text(value),
            lease,
        });
        let puts = [version].into_iter().chain(value);
        puts.map(|put| Operation::Put(put).into()).collect()
    }

    /// Writes if the record is as it was loaded. Returns whether it was.
    async fn write(
        &self,
        key: &Key,
        loaded: &Revisions,
        success: Vec<RequestOp>,
    ) -> Result<bool, Error> {
        let question = TxnRequest {
            compare: vec![
                Compare::is_at(&self.names.record_version(key), loaded.version),
                Compare::is_at(&self.names.record(key), loaded.value),
            ],
            success,
            failure: Vec::new(),
        };
        let answer = self.transact(&self.client, question, LIMIT).await?;
        Ok(answer.succeeded)
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
fn value_text(value: &KeptValue<WallTime>) -> Vec<u8> {
    let head = format!("{} {}\n", value.version, value.end.as_micros());
    [head.as_bytes(), &value.bytes].concat()
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
