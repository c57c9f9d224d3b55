use std::time::Duration;

use leasehold::look::{BreakRecord, BrokenLease};
use leasehold::store::{Admin, BoxFuture};
use leasehold::{Error, ErrorKind, Key};

use super::inner::{EtcdInner, TRIES, too_many_changes};
use super::inspection::LIMIT;
use super::session::EtcdSession;
use crate::client::Failure;
use crate::locking::{Entry, SharedLease};
use crate::proto::{
    Compare, DeleteRangeRequest, LeaseGrantRequest, LeaseRevokeRequest, Operation, PutRequest,
    TxnRequest,
};

impl Admin for EtcdSession {
    fn break_lease<'a>(
        &'a self,
        key: &'a Key,
        record: &'a BreakRecord,
    ) -> BoxFuture<'a, Result<BrokenLease, Error>> {
        Box::pin(self.0.break_lease(key, record))
    }

    fn last_break<'a>(&'a self, key: &'a Key) -> BoxFuture<'a, Result<Option<BreakRecord>, Error>> {
        Box::pin(self.0.last_break(key))
    }
}

impl EtcdInner {
    async fn break_lease(&self, lock: &Key, record: &BreakRecord) -> Result<BrokenLease, Error> {
        let memory = self
            .shared_lease(&self.client, SharedLease::Memory, LIMIT)
            .await?;
        let mut existed = false;
        for _ in 0..TRIES {
            let entries = self.entries_of(lock).await?;
            let is_meant = |entry: &Entry| entry.is_held() && entry.owner() == Some(record.owner);
            let Some(mut entry) = entries.into_iter().find(is_meant) else {
                return Ok(BrokenLease::new(existed, None));
            };
            let kept = PutRequest {
                key: self.names.last_break(lock),
                value: serde_json::to_vec(record).unwrap_or_default(),
                lease: memory,
            };
            let question = TxnRequest {
                compare: vec![Compare::is_at(&entry.key, entry.modified)],
                success: vec![broken(&entry, record).into(), Operation::Put(kept).into()],
                failure: Vec::new(),
            };
            let answer = self.transact(&self.client, question, LIMIT).await?;
            if !answer.succeeded {
                continue;
            }
            existed = true;
            entry.modified = answer.revision();
            let closed_for = if record.at_once {
                None
            } else {
                let Some(rest) = self.close(&entry).await? else {
                    continue;
                };
                Some(rest)
            };
            // The lease of an entry that was closed before keeps it closed.
            let is_closed = entry.stored.is_some_and(|stored| stored.is_closed);
            if record.at_once || !is_closed {
                self.revoke_broken(entry.lease).await?;
            }
            return Ok(BrokenLease::new(true, closed_for));
        }
        Err(too_many_changes())
    }

    /// Keeps a lock closed for the rest of the lease that was broken: its entry gets another lease, so that the old owner can
    /// neither renew nor delete it. Returns for how long; `None` if the entry changed meanwhile.
    async fn close(&self, entry: &Entry) -> Result<Option<Duration>, Error> {
        // A renewal extends the lease, and reads the entry afterwards. The entry says now that the lease is broken, so the rest
        // includes all that the owner believes in.
        let rest = self.remaining(entry.lease).await?.unwrap_or_default();
        let Some(stored) = entry.stored.clone() else {
            return Ok(None);
        };
        if stored.is_closed {
            // By an earlier break.
            return Ok(Some(rest));
        }
        // The server rounds down.
        let ttl = i64::try_from(rest.as_secs() + 1).unwrap_or(i64::MAX);
        let id = (self.context.env().entropy.next_u64() as i64 & i64::MAX).max(1);
        let granted = self
            .client
            .call(LeaseGrantRequest { ttl, id }, LIMIT)
            .await?;
        let put = PutRequest {
            key: entry.key.clone(),
            value: stored.broken().closed().to_bytes(),
            lease: id,
        };
        let question = TxnRequest {
            compare: vec![Compare::is_at(&entry.key, entry.modified)],
            success: vec![Operation::Put(put).into()],
            failure: Vec::new(),
        };
        let answer = self.transact(&self.client, question, LIMIT).await?;
        let closed_for = Duration::from_secs(u64::try_from(granted.ttl).unwrap_or_default());
        Ok(answer.succeeded.then_some(closed_for))
    }

    /// Ends the lease that a broken entry had, so that nothing late of its owner takes effect. The owner sees the break in what
    /// is left of the entry, so its client does not use the lease again.
    async fn revoke_broken(&self, id: i64) -> Result<(), Error> {
        match self.client.call(LeaseRevokeRequest { id }, LIMIT).await {
            Ok(_) | Err(Failure::NoLease) => Ok(()),
            Err(failure) => Err(failure.into_error().with_unknown_effect()),
        }
    }

    pub(super) async fn last_break(&self, lock: &Key) -> Result<Option<BreakRecord>, Error> {
        let found = self.value(self.names.last_break(lock)).await?;
        found.map(|kv| read_break(&kv.value)).transpose()
    }
}

/// Returns what happens to the entry of a broken lease at first.
fn broken(entry: &Entry, record: &BreakRecord) -> Operation {
    match entry.stored.clone() {
        Some(stored) if !record.at_once => Operation::Put(PutRequest {
            key: entry.key.clone(),
            value: stored.broken().to_bytes(),
            lease: entry.lease,
        }),
        _ => Operation::Delete(DeleteRangeRequest::one(&entry.key)),
    }
}

fn read_break(bytes: &[u8]) -> Result<BreakRecord, Error> {
    serde_json::from_slice(bytes).map_err(|error| {
        let text = "the record of the last break has another form";
        Error::new(ErrorKind::Corrupt, text).with_source(error)
    })
}

/// Reads bytes as the record of a break, for the fuzz target.
#[cfg(any(test, fuzzing))]
pub(super) fn read_any(bytes: &[u8]) {
    let _ = read_break(bytes);
}
