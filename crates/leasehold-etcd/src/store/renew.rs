use std::time::Duration;

use futures_util::future;
use leasehold::store::{Held, LockRequest, RenewReply, Term};
use leasehold::{Error, ErrorKind, LostReason, Mode};

use super::inner::{EtcdInner, TRIES, too_many_changes};
use super::leases::{Holding, OwnLease, seconds};
use super::pool::Lease;
use crate::locking::{Entry, EntryState, one_key};
use crate::proto::{Compare, Operation, PutRequest, TxnRequest};

/// A server takes up to this many operations in a transaction, unless it is set to take more.
const OPERATIONS_MAX: usize = 128;

/// What the client knows of one lease; `None` if that has no entry.
type Own = Result<Option<OwnLease>, Error>;

/// What a transaction found of one lease: its entry, if it has one, or the entry of a break.
type Found = Result<Option<Entry>, Error>;

impl EtcdInner {
    /// Renews the leases. A lease that lives is no lock that is held, since an operator may have deleted the entry. So
    /// transactions read the entries, and only afterwards: a break counts on it that a renewal that comes later sees it.
    pub(super) async fn renew(&self, leases: &[Held]) -> Vec<RenewReply> {
        let limits = leases.iter().map(|lease| lease.request.limit());
        let Some(limit) = limits.min() else {
            return Vec::new();
        };
        let own = leases.iter().map(|lease| self.own_lease(&lease.request));
        let own = future::join_all(own).await;
        let since = self.now();
        let renewing = own.iter().map(async |own| match own {
            Ok(Some(own)) => self.client.keep_alive(own.lease.id, limit).await,
            Ok(None) => Ok(None),
            Err(error) => Err(error.clone()),
        });
        let terms = future::join_all(renewing).await;
        let entries = self.entries(leases, &own, limit).await;
        let verdicts = leases.iter().zip(terms).zip(entries);
        let replies = verdicts.map(async |((lease, ttl), found)| {
            let term = ttl.map(|ttl| ttl.map(|ttl| Term::new(since, ttl)));
            let reply = self.verdict(&lease.request, term, found, limit).await;
            let owner = lease.request.owner;
            match &reply {
                RenewReply::Renewed(term) => self.own.renewed(owner, *term),
                RenewReply::Lost(_) => drop(self.own.remove(owner)),
                RenewReply::Unknown(_) => {}
            }
            reply
        });
        future::join_all(replies).await
    }

    async fn verdict(
        &self,
        request: &LockRequest,
        term: Result<Option<Term>, Error>,
        found: Found,
        limit: Duration,
    ) -> RenewReply {
        let mut entry = match found {
            Ok(entry) => entry,
            Err(error) => return RenewReply::Unknown(error),
        };
        for _ in 0..TRIES {
            entry = match (&term, entry) {
                (_, Some(entry)) if entry.state() == Some(EntryState::Broken) => {
                    return RenewReply::Lost(LostReason::Broken);
                }
                (Ok(Some(term)), Some(entry)) if entry.mode == request.mode => {
                    return RenewReply::Renewed(*term);
                }
                (Ok(Some(term)), Some(entry)) if request.mode == Mode::Shared => {
                    match self.share(entry, request, limit).await {
                        Ok(entry) => entry,
                        Err(error) => return RenewReply::Unknown(error),
                    }
                }
                (Err(error), Some(_)) => return RenewReply::Unknown(error.clone()),
                _ => return self.lost(request).await,
            };
        }
        RenewReply::Unknown(too_many_changes())
    }

    /// Returns the entry of each lease.
    async fn entries(&self, leases: &[Held], own: &[Own], limit: Duration) -> Vec<Found> {
        let chunks = leases
            .chunks(OPERATIONS_MAX)
            .zip(own.chunks(OPERATIONS_MAX));
        let reading = chunks.map(|(leases, own)| self.read_entries(leases, own, limit));
        future::join_all(reading).await.concat()
    }

    /// Returns what the client knows of the lease of an owner; `None` if the owner has no entry.
    async fn own_lease(&self, request: &LockRequest) -> Own {
        if let Some(own) = self.own.get(request.owner) {
            return Ok(Some(own));
        }
        // Another process took the lock.
        let entry = self.find_entry(request).await?;
        Ok(entry.map(|entry| {
            let lease = Lease {
                id: entry.lease,
                seconds: seconds(request.ttl),
                term: Term::new(self.now(), Duration::ZERO),
            };
            let own = OwnLease::new(entry.key, lease, Holding::Elsewhere);
            self.own.insert(request.owner, own.clone());
            own
        }))
    }

    async fn read_entries(&self, leases: &[Held], own: &[Own], limit: Duration) -> Vec<Found> {
        let known = own.iter().filter_map(|own| own.as_ref().ok()?.as_ref());
        let gets: Vec<_> = known
            .map(|own| Operation::Range(one_key(own.key.clone())).into())
            .collect();
        let question = TxnRequest {
            compare: Vec::new(),
            success: gets,
            failure: Vec::new(),
        };
        let mut ranges = if question.success.is_empty() {
            None
        } else {
            match self.client.call(question, limit).await {
                Ok(answer) => Some(answer.ranges()),
                Err(failure) => {
                    let error = failure.into_error();
                    return leases.iter().map(|_| Err(error.clone())).collect();
                }
            }
        };
        let read = leases.iter().zip(own).map(|(lease, own)| {
            let Some(own) = own.clone()? else {
                return Ok(None);
            };
            let range = ranges.as_mut().and_then(Iterator::next);
            let range = range.ok_or_else(|| {
                let text = "the answer to a transaction is too short";
                Error::new(ErrorKind::InvalidResponse, text)
            })?;
            let lock = lease.request.key.as_str();
            let mut kvs = range.kvs.into_iter();
            let entry = kvs.find_map(|kv| Entry::read(&self.names, lock, kv));
            Ok(entry.filter(|entry| is_of(entry, &lease.request, own.lease.id)))
        });
        read.collect()
    }

    /// Makes an exclusive entry a shared one. Readers look past it from then on. It keeps its place in the queue, so no
    /// writer can come in between. Returns what the entry is now: another client, as one that breaks the lock, may have
    /// written or deleted it since it was read.
    async fn share(&self, mut entry: Entry, request: &LockRequest, limit: Duration) -> Found {
        if let Some(stored) = entry.stored.clone() {
            let put = PutRequest {
                key: entry.key.clone(),
                value: stored.shared().to_bytes(),
                lease: entry.lease,
            };
            let question = TxnRequest {
                compare: vec![Compare::is_at(&entry.key, entry.modified)],
                success: vec![Operation::Put(put).into()],
                failure: vec![Operation::Range(one_key(entry.key.clone())).into()],
            };
            self.own.writes(request.owner, None);
            let answer = self.client.call(question, limit).await?;
            if !answer.succeeded {
                let mut kvs = answer.ranges().flat_map(|range| range.kvs);
                let lock = request.key.as_str();
                let now = kvs.find_map(|kv| Entry::read(&self.names, lock, kv));
                return Ok(now.filter(|now| is_of(now, request, entry.lease)));
            }
            self.own.writes(request.owner, Some(answer.revision()));
        }
        entry.mode = Mode::Shared;
        Ok(Some(entry))
    }

    /// Returns why a lease has no entry.
    async fn lost(&self, request: &LockRequest) -> RenewReply {
        match self.last_break(&request.key).await {
            Ok(Some(record)) if record.owner == request.owner => {
                RenewReply::Lost(LostReason::Broken)
            }
            Ok(_) => RenewReply::Lost(LostReason::Gone),
            Err(error) => RenewReply::Unknown(error),
        }
    }
}

/// Whether an entry holds the lock for the owner with this lease, or did until an operator broke it.
fn is_of(entry: &Entry, request: &LockRequest, lease: i64) -> bool {
    let is_held = match entry.state() {
        Some(EntryState::Held) => entry.lease == lease,
        Some(EntryState::Broken) => true,
        _ => false,
    };
    is_held && entry.owner() == Some(request.owner)
}
