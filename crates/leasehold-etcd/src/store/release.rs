use std::sync::Arc;

use leasehold::store::{LockRequest, ReleaseReply};
use leasehold::{Error, Fence, Mode};

use super::inner::{EtcdInner, TRIES, too_many_changes};
use super::leases::{Holding, OwnLease};
use super::successors::HandOver;
use crate::client::{EtcdClient, Failure};
use crate::locking::{Attempt, Entry, EntryState, Standing, range, read_pass_on};
use crate::proto::{
    Compare, DeleteRangeRequest, KeyValue, LeaseRevokeRequest, Operation, TxnRequest,
};

/// Frees what the owner has. A holder deletes its entry, and its lease goes back into the pool. In all other cases the client revokes the
/// lease, which deletes the entry, and the server then refuses everything that arrives late with that lease.
pub(super) async fn release(
    inner: &Arc<EtcdInner>,
    request: &Arc<LockRequest>,
) -> Result<ReleaseReply, Error> {
    let context = &inner.context;
    let own = inner.own.begin_release(request.owner);
    let Some(own) = own.filter(|own| own.holding != Holding::Elsewhere) else {
        return context.in_runtime(inner.remove_entry(request)).await;
    };
    if let Some(written) = own.settled() {
        // The caller drives this connection, so the usual release wakes no other thread.
        let here = inner.here().await;
        if here.is_open() {
            let releasing = Releasing {
                inner,
                client: &here,
                request,
                own,
                written,
            };
            return context.in_runtime(releasing.run()).await;
        }
    }
    context
        .in_runtime(revoke(inner, &inner.client, request, &own))
        .await
}

/// The release of a holder whose requests have all been answered.
struct Releasing<'a> {
    inner: &'a EtcdInner,
    client: &'a Arc<EtcdClient>,
    request: &'a LockRequest,
    own: OwnLease,
    /// When the entry was written last.
    written: i64,
}

impl Releasing<'_> {
    async fn run(mut self) -> Result<ReleaseReply, Error> {
        let inner = self.inner;
        if self.request.mode == Mode::Exclusive {
            match self.pass_on().await {
                Ok(true) => return Ok(self.done()),
                Ok(false) => {}
                Err(_) => {
                    self.own.writes(None);
                    return self.revoke().await;
                }
            }
        }
        if !inner.pool.has_room(self.own.lease.seconds, inner.now()) {
            return self.revoke().await;
        }
        self.delete().await
    }

    /// Deletes the entry. The key is this client's alone, and all requests that could delete it earlier were answered.
    async fn delete(mut self) -> Result<ReleaseReply, Error> {
        let question = DeleteRangeRequest {
            key: self.own.key.clone(),
            prev_kv: true,
        };
        let (lock, limit) = (&self.request.key, self.request.limit());
        let deleting = self.client.call_batched(lock, question, limit);
        let deleted = deleting.await?.prev_kvs.into_iter().next();
        let is_own = |kv: &KeyValue| kv.lease == self.own.lease.id;
        if let Some(kv) = deleted.as_ref().filter(|kv| is_own(kv))
            && kv.mod_revision == self.written
        {
            return Ok(self.done());
        }
        // Another client changed the entry: perhaps an operator, who revokes the lease later.
        let lock = self.request.key.as_str();
        let deleted = deleted.and_then(|kv| Entry::read(&self.inner.names, lock, kv));
        let was_held = deleted.is_some_and(|entry| {
            entry.owner() == Some(self.request.owner) && entry.state() == Some(EntryState::Held)
        });
        self.own.writes(None);
        let revoked = self.revoke().await?;
        Ok(if was_held {
            revoked
        } else {
            ReleaseReply::WasLost
        })
    }

    async fn revoke(&self) -> Result<ReleaseReply, Error> {
        revoke(self.inner, self.client, self.request, &self.own).await
    }

    /// The server has deleted the entry as the owner left it. So no other client saw its lease and may still revoke it.
    fn done(self) -> ReleaseReply {
        let (inner, own) = (self.inner, &self.own);
        let is_unused = inner.own.end(self.request.owner, own.releases + 1);
        inner.give_back(&inner.client, (&own.key, own.lease), is_unused);
        ReleaseReply::Released
    }

    /// Passes the lock to the waiter directly behind the owner, if that is one of this client, and returns whether it got the
    /// lock. One transaction deletes one entry and writes the other. If its answer is lost, the waiter asks the server.
    async fn pass_on(&self) -> Result<bool, Failure> {
        let inner = self.inner;
        let Holding::Here {
            passes_on: true, ..
        } = self.own.holding
        else {
            return Ok(false);
        };
        let Some(next) = inner.successors.take(self.request.owner) else {
            return Ok(false);
        };
        let attempt = Attempt {
            names: &inner.names,
            request: &next.request,
            lease: next.lease,
            number: next.number,
            fence_lease: next.fence_lease,
            standing: Standing::Queued(next.created),
            announces: false,
        };
        let wall = inner.context.env().clock.wall();
        let Ok(fence) = Fence::after(None, wall.max(next.request.proposal)) else {
            return Ok(false);
        };
        let question = attempt.pass_on((&self.own.key, self.written), next.created, fence);
        let question = (self.request, question);
        let answer = inner.transact_batched(self.client, question).await?;
        let Some((fence, revision)) = read_pass_on(answer, fence) else {
            return Ok(false);
        };
        // A waiter that has ended is released by its own client.
        let _ = next.granted.send(HandOver { fence, revision });
        Ok(true)
    }
}

/// Revokes a lease that only this client uses, and only for this owner.
async fn revoke(
    inner: &EtcdInner,
    client: &EtcdClient,
    request: &LockRequest,
    own: &OwnLease,
) -> Result<ReleaseReply, Error> {
    let question = LeaseRevokeRequest { id: own.lease.id };
    let reply = match client.call(question, request.limit()).await {
        Ok(_) => {
            // No delete that arrives late finds the key of another owner.
            if own.holding == Holding::No || own.settled().is_some() {
                inner.used.put(&inner.names, &own.key);
            }
            match own.holding {
                Holding::Here { .. } => ReleaseReply::Released,
                _ => ReleaseReply::WasLost,
            }
        }
        Err(Failure::NoLease) => {
            // An operator may have closed the lock. If this fails, it opens when the lease would have ended.
            let _ = inner.remove_entry(request).await;
            ReleaseReply::WasLost
        }
        Err(failure) => return Err(failure.into_error()),
    };
    inner.own.remove(request.owner);
    Ok(reply)
}

impl EtcdInner {
    /// Deletes the entry of an owner whose lease is not this client's alone: the process that took the lock may have released it, and
    /// use the lease for another lock. So the lease is revoked only after the entry was deleted as it was read: that process finds
    /// no entry then, and does not use the lease again.
    async fn remove_entry(&self, request: &LockRequest) -> Result<ReleaseReply, Error> {
        let limit = request.limit();
        for _ in 0..TRIES {
            let Some(entry) = self.find_entry(request).await? else {
                self.own.remove(request.owner);
                return Ok(ReleaseReply::WasLost);
            };
            let delete = DeleteRangeRequest::one(&entry.key);
            let question = TxnRequest {
                compare: vec![Compare::is_at(&entry.key, entry.modified)],
                success: vec![Operation::Delete(delete).into()],
                failure: Vec::new(),
            };
            if self.client.call(question, limit).await?.succeeded {
                self.own.remove(request.owner);
                // Without an answer, the lease ends by itself.
                let revoking = LeaseRevokeRequest { id: entry.lease };
                let _ = self.client.call(revoking, limit).await;
                return Ok(match entry.state() {
                    Some(EntryState::Held) => ReleaseReply::Released,
                    _ => ReleaseReply::WasLost,
                });
            }
        }
        Err(too_many_changes())
    }

    /// Returns the entry of an owner, by its value.
    pub(super) async fn find_entry(&self, request: &LockRequest) -> Result<Option<Entry>, Failure> {
        let question = range(self.names.all(&request.key));
        let found = self.client.call(question, request.limit()).await?;
        let read = |kv| Entry::read(&self.names, request.key.as_str(), kv);
        let mut entries = found.kvs.into_iter().filter_map(read);
        Ok(entries.find(|entry| entry.owner() == Some(request.owner)))
    }
}
