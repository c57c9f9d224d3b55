use std::sync::Arc;

use leasehold::store::{LockRequest, ReleaseReply};
use leasehold::{Error, ErrorKind, Fence, Mode};

use super::inner::EtcdInner;
use super::leases::{Holding, OwnLease};
use super::successors::HandOver;
use crate::client::{EtcdClient, Failure};
use crate::locking::{Attempt, Entry, EntryState, Standing, range, read_pass_on};
use crate::proto::{Compare, DeleteRangeRequest, LeaseRevokeRequest, Operation, TxnRequest};

/// Revokes the lease of the owner, which deletes its entry, whether it holds or waits. The server then refuses everything
/// that arrives late with that lease.
pub(super) async fn release(
    inner: &Arc<EtcdInner>,
    request: &Arc<LockRequest>,
) -> Result<ReleaseReply, Error> {
    let context = &inner.context;
    let own = inner.own.get(request.owner);
    let Some(own) = own.filter(|own| own.holding != Holding::Elsewhere) else {
        return context.in_runtime(inner.remove_entry(request)).await;
    };
    if let Holding::Here { granted } = own.holding {
        // The caller drives this connection, so the usual release wakes no other thread.
        let here = inner.here().await;
        if here.is_open() {
            if context
                .in_runtime(pass_on(inner, &here, request, (&own.key, granted)))
                .await
            {
                // The lease has no entry now, so the caller need not wait for its end.
                revoke_in_background(inner, &inner.client, request);
                return Ok(ReleaseReply::Released);
            }
            return context
                .in_runtime(revoke(inner, &here, request, &own))
                .await;
        }
    }
    context
        .in_runtime(revoke(inner, &inner.client, request, &own))
        .await
}

/// Revokes the lease of an owner without an entry, on the connection of its attempt. A request that follows there finds it gone.
/// Without an answer, the lease ends by itself.
pub(super) fn revoke_in_background(
    inner: &Arc<EtcdInner>,
    client: &Arc<EtcdClient>,
    request: &Arc<LockRequest>,
) {
    let Some(own) = inner.own.remove(request.owner) else {
        return;
    };
    let revoking = {
        let (inner, client, request) = (Arc::clone(inner), Arc::clone(client), Arc::clone(request));
        async move {
            let context = inner.context.clone();
            let revoking = revoke(&inner, &client, &request, &own);
            context.in_runtime(revoking).await
        }
    };
    drop(client.spawn_with_answer(inner.leftovers.track_future(revoking)));
}

/// Revokes a lease that only this client uses, and only for this owner.
async fn revoke(
    inner: &EtcdInner,
    client: &EtcdClient,
    request: &LockRequest,
    own: &OwnLease,
) -> Result<ReleaseReply, Error> {
    let question = LeaseRevokeRequest { id: own.lease };
    let reply = match client.call(question, request.limit()).await {
        Ok(_) => {
            inner.used.put(&inner.names, &own.key);
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

/// Passes the lock to the waiter directly behind the owner, if that is one of this client, and returns whether it got the
/// lock. One transaction deletes one entry and writes the other. If its answer is lost, the waiter asks the server.
async fn pass_on(
    inner: &EtcdInner,
    client: &EtcdClient,
    request: &LockRequest,
    (key, granted): (&[u8], Option<i64>),
) -> bool {
    let Some(granted) = granted.filter(|_| request.mode == Mode::Exclusive) else {
        return false;
    };
    let Some(next) = inner.successors.take(request.owner) else {
        return false;
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
        return false;
    };
    let question = attempt.pass_on((key, granted), next.created, fence);
    let answer = inner.transact(client, question, request.limit()).await;
    let passed = answer.ok().and_then(|answer| read_pass_on(answer, fence));
    let Some((fence, revision)) = passed else {
        return false;
    };
    // A waiter that has ended is released by its own client.
    let _ = next.granted.send(HandOver { fence, revision });
    true
}

/// How often an entry is read again because another client wrote it at the same moment.
const TRIES: usize = 10;

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
            let key = entry.key.clone();
            let question = TxnRequest {
                compare: vec![Compare::is_at(&entry.key, entry.modified)],
                success: vec![Operation::Delete(DeleteRangeRequest { key }).into()],
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
        let text = "the entry of the lock changed again and again";
        Err(Error::new(ErrorKind::Unreachable, text))
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
